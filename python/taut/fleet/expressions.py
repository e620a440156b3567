"""The analysis, written once: Ibis makes SQL of it for each engine.

Figures come from merged histograms: counts of equal buckets are added (a GROUP BY), never percentiles averaged. A percentile is the
bucket in which its rank lies, so that it has two bounds, and they are the same whoever added the counts, in whatever order.
"""

import ibis
import ibis.expr.types as ir

# A place of a chain: the whole way (hop "") or a hop, all of its time (cause "") or a cause's. Its position may differ between revisions.
PLACE = ["chain", "hop", "cause"]
BUCKET = ["bucket", "low_ns", "high_ns"]
# Names of the quantiles, and how many of 1000 are at or below.
QUANTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999}
# A quantile is named when so many messages lie beyond it.
BEYOND = 10


def whole(rows: ir.Table) -> ir.Table:
    """The rows of the whole way: each message once."""
    return rows.filter((rows["position"] == 0) & (rows["cause"] == ""))


def merged(rows: ir.Table, by: list[str]) -> ir.Table:
    """One histogram for each `by`, and its first position in the chain."""
    return rows.group_by([*by, *BUCKET]).agg(count=rows["count"].sum(), position=rows["position"].min())


def distributions(rows: ir.Table, by: list[str]) -> ir.Table:
    """For each `by`: `n`, the bounds of quantiles and maximum, and `time_2ns`, twice the sum of all durations by the buckets' middles,
    as text: nanoseconds of many robots do not fit 64 bits."""
    table = merged(rows, by)
    count = table["count"]
    upto = count.sum().over(ibis.cumulative_window(group_by=by, order_by="bucket"))
    table = table.mutate(upto=upto, n=count.sum().over(ibis.window(group_by=by)))
    figures: dict[str, ir.Value] = {
        "position": table["position"].min(),
        "n": table["n"].max(),
        "max_low": table["low_ns"].max(),
        "max_high": table["high_ns"].max(),
        "time_2ns": twice_the_time(table).sum().cast("string"),
    }
    for name, per_mille in QUANTILES.items():
        # The nearest rank: the first bucket by which that share is reached. In whole numbers, so that all engines round alike.
        is_reached = table["upto"] * 1000 >= table["n"] * per_mille
        figures[f"{name}_low"] = table["low_ns"].min(where=is_reached)
        figures[f"{name}_high"] = table["high_ns"].min(where=is_reached)
    return table.group_by(by).agg(**figures).order_by(by)


def times(rows: ir.Table, by: list[str]) -> ir.Table:
    """For each `by`: `n` messages and `time_2ns` as above."""
    sums = {"n": rows["count"].sum(), "time_2ns": twice_the_time(rows).sum().cast("string")}
    return rows.group_by(by).agg(**sums).order_by(by)


def twice_the_time(rows: ir.Table) -> ir.Value:
    return rows["count"].cast("decimal(38, 0)") * (rows["low_ns"] + rows["high_ns"])


def presence(rows: ir.Table) -> ir.Table:
    """For each chain, revision and robot: how many messages, from when to when."""
    rows = whole(rows)
    figures = {"messages": rows["count"].sum(), "first": rows["date"].min(), "last": rows["date"].max()}
    by = ["chain", "revision", "robot"]
    return rows.group_by(by).agg(**figures).order_by(by)


def weekly(rows: ir.Table) -> ir.Table:
    """With the Monday of the run's week."""
    return rows.mutate(week=rows["date"].truncate("W"))


def coarser(rows: ir.Table, period: str) -> ir.Table:
    """The same fleet with the runs of a robot and period ("D", "W", "M") merged. No figure changes by it; the runs' names go. The
    columns have other types than a fleet's: a sum is wider than what it adds up."""
    rows = rows.mutate(date=rows["date"].truncate(period), run=ibis.literal(""))
    by = ["date", "robot", "run", "revision", "chain", "position", "hop", "cause", *BUCKET]
    return rows.group_by(by).agg(count=rows["count"].sum())
