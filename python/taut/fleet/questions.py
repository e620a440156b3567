"""What people ask of a fleet. The engine merges; what is left is small. docs/schemas/fleet.schema.json says what the answers are."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from pathlib import Path
from statistics import median_low
from typing import Any, Concatenate, ParamSpec

import ibis
import ibis.expr.types as ir

from taut.fleet import engines, expressions
from taut.fleet.engines import NoFleet
from taut.fleet.expressions import BEYOND, PLACE, QUANTILES
from taut.fleet.intervals import Change, change

SCHEMA_VERSION = 2
Row = dict[str, Any]
# Of a report: as many of the worst robots are named.
NAMED = 5


def open(
    place: str,
    *,
    engine: str = "duckdb",
    since: str | None = None,
    until: str | None = None,
    chain: str | None = None,
    revision: str | None = None,
) -> "Fleet":
    """A folder that `taut fleet add` filled, or a server's table (clickhouse://HOST:8123/DATABASE/TABLE). Dates as 2026-11-22, both
    included."""
    if engine not in engines.ENGINES:
        raise NoFleet(f"no engine {engine!r}; there are {', '.join(engines.ENGINES)}")
    for day in (since, until):
        if day is not None:
            checked_day(day)

    def opened(damaged: dict[Path, str]) -> Fleet:
        rows = engines.rows(place, engine, since, until, damaged)
        about: Row = {"place": place, "engine": engine, "since": since, "until": until, "revision": revision}
        about["set_aside"] = [{"file": str(file), "why": why} for file, why in damaged.items()]
        return Fleet(rows, about, chain, revision)

    def without_damaged() -> Fleet | None:
        damaged = engines.damaged(engines.files(engines.days(place, since, until))) if engine == "duckdb" else {}
        return opened(damaged) if damaged else None

    try:
        fleet = opened({})
    except NoFleet:
        raise
    except Exception:
        again = without_damaged()
        if again is None:
            raise
        return again
    fleet.without_damaged = without_damaged
    return fleet


Asked = ParamSpec("Asked")


def of_what_can_be_read(
    question: "Callable[Concatenate[Fleet, Asked], Row]",
) -> "Callable[Concatenate[Fleet, Asked], Row]":
    """Asks again without the files that cannot be read, if there are such: they are no reason to know nothing of the others."""

    @wraps(question)
    def asked(fleet: "Fleet", /, *given: Asked.args, **named: Asked.kwargs) -> Row:
        try:
            return question(fleet, *given, **named)
        except NoFleet:
            raise
        except Exception:
            again = fleet.without_damaged() if fleet.without_damaged else None
            if again is None:
                raise
            fleet.__dict__ = again.__dict__
            return question(fleet, *given, **named)

    return asked


class Fleet:
    """Histogram rows of many robots, and common questions about them."""

    def __init__(self, rows: ir.Table, about: Row, chain: str | None = None, revision: str | None = None) -> None:
        self.rows = rows
        """The Ibis table: one row for each filled bucket of each run, chain, hop and cause."""
        self.about = about
        self.without_damaged: Callable[[], Fleet | None] | None = None
        """Opens the same without the files that cannot be read; `None` when there are none."""
        if chain is not None:
            self.rows = self.rows.filter(self.rows["chain"] == chain)
        if revision is not None:
            self.rows = self.rows.filter(self.rows["revision"] == revision)
        if not self.extents:
            raise NoFleet(f"{about['place']}: {self.why_nothing(rows, chain, revision)}")

    def __repr__(self) -> str:
        chains = ", ".join(f"{of['chain']!r} of {of['robots']} robots" for of in self.extents)
        return f"<fleet {self.about['place']}: {chains}>"

    @cached_property
    def presence(self) -> list[Row]:
        """For each chain, revision and robot: messages, first and last day."""
        return collected(expressions.presence(self.rows))

    @cached_property
    def extents(self) -> list[Row]:
        """For each chain: robots, messages, first and last day; the busiest chain first."""
        return sorted(extents(self.presence, "chain"), key=lambda of: (-of["messages"], of["chain"]))

    @of_what_can_be_read
    def report(self) -> Row:
        """How late, over all robots: chain by chain, hop by hop, cause by cause, week by week, revision by revision."""
        merged = here(expressions.merged(expressions.weekly(self.rows), ["week", "revision", *PLACE]))
        places = by_place(collected(expressions.distributions(merged, PLACE)))
        weeks = by_place(collected(expressions.distributions(merged, ["week", *PLACE])))
        ways = collected(expressions.distributions(expressions.whole(merged), ["chain", "revision"]))
        revisions = {(row["chain"], row["revision"]): row for row in ways}
        robots = self.by_robot("", "", None)
        chains = []
        for chain in self.extents:
            name = chain["chain"]
            of_revisions = [
                extent(of) | {"revision": of["revision"], "figures": figures(revisions[name, of["revision"]])}
                for of in extents(self.presence, "chain", "revision")
                if of["chain"] == name
            ]
            chains.append(
                extent(chain)
                | {
                    "chain": name,
                    "revisions": sorted(of_revisions, key=lambda of: (of["first"], of["last"], of["revision"])),
                    "robots_p99": spread([row for row in robots if row["chain"] == name], "p99"),
                    "places": [place(places, weeks, name, *where) for where in wheres(name, places)],
                }
            )
        return self.document("fleet-report") | extent(extents(self.presence)[0]) | {"chains": chains}

    @of_what_can_be_read
    def worst(self, *, hop: str = "", cause: str = "", figure: str = "p99", limit: int = 10) -> Row:
        """Robots by a figure of one chain, the busiest unless the fleet was opened with one; and what is special about each."""
        if figure not in QUANTILES:
            raise NoFleet(f"no figure {figure!r}; there are {', '.join(QUANTILES)}")
        chain = self.extents[0]
        name = chain["chain"]
        rows = self.rows.filter(self.rows["chain"] == name)
        robots = self.by_robot(hop, cause, name)
        if not robots:
            known = sorted({(row["hop"], row["cause"]) for row in collected(expressions.times(rows, ["hop", "cause"]))})
            if hop not in {known_hop for known_hop, _ in known}:
                hops = ", ".join(repr(known_hop) for known_hop in dict(known) if known_hop)
                raise NoFleet(f"{self.about['place']}: chain {name!r} has no hop {hop!r}; there are {hops}")
            causes = ", ".join(known_cause for known_hop, known_cause in known if known_hop == hop and known_cause)
            raise NoFleet(f"{self.about['place']}: no message spent time on {cause!r}; there are {causes}")
        ranked = [row for row in robots if is_carried(row, figure)]
        ranked.sort(key=lambda row: (-row[f"{figure}_high"], row["robot"]))
        named = [row["robot"] for row in ranked[:limit]]
        theirs = rows.filter(rows["robot"].isin(named))
        details = defaultdict(list)
        for row in collected(expressions.distributions(theirs, ["robot", *PLACE])):
            details[row["robot"]].append(row)
        runs = defaultdict(list)
        for row in self.presence:
            if row["chain"] == name:
                runs[row["robot"]].append(row)
        everybody = collected(expressions.distributions(rows, PLACE))
        return (
            self.document("fleet-worst")
            | {"robots": len(robots), "first": str(chain["first"]), "last": str(chain["last"])}
            | {"chain": name, "hop": hop, "cause": cause, "figure": figure}
            | {"too_few": len(robots) - len(ranked), "median": middle(ranked, figure)}
            | {
                "ranked": [
                    {
                        "robot": row["robot"],
                        "revisions": sorted({of["revision"] for of in runs[row["robot"]]}),
                        "first": str(min(of["first"] for of in runs[row["robot"]])),
                        "last": str(max(of["last"] for of in runs[row["robot"]])),
                        "figures": figures(row),
                        "stands_out_by_hop": None if hop else hop_out(details[row["robot"]], everybody, figure),
                        "stands_out_by_cause": None if cause else cause_out(details[row["robot"]], everybody, hop),
                    }
                    for row in ranked[:limit]
                ]
            }
        )

    @of_what_can_be_read
    def compare(self, a: str, b: str, *, by: str = "revision") -> Row:
        """Revision B against revision A (or robot against robot): hop by hop, cause by cause; intervals by robots."""
        if a == b:
            raise NoFleet(f"A and B are both {a!r}: name two that differ")
        rows = self.rows
        column = rows[by]
        rows = rows.filter(column.isin([a, b])).mutate(side=ibis.ifelse(column == a, "a", "b"))
        sides = {
            (side, of["chain"]): of
            for side, name in (("a", a), ("b", b))
            for of in extents([row for row in self.presence if row[by] == name], "chain")
        }
        for side, name in (("a", a), ("b", b)):
            if not any(of == side for of, _ in sides):
                names = sorted({row[by] for row in self.presence})
                listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
                raise NoFleet(f"{self.about['place']}: no {by} {name!r}; there are {listed}")
        merged = collected(expressions.distributions(rows, ["side", *PLACE]))
        places = {side: by_place(row for row in merged if row["side"] == side) for side in "ab"}
        robots = Robots(rows) if by == "revision" else None
        chains = []
        for name in [of["chain"] for of in self.extents]:
            if ("a", name) in sides and ("b", name) in sides:
                both = wheres(name, places["a"], places["b"])
                compared = [compared_place(places, robots, name, *where) for where in both]
                how_much = {side: extent(sides[side, name]) for side in "ab"}
                chains.append({"chain": name} | how_much | {"places": compared})
        if not chains:
            raise NoFleet(f"{self.about['place']}: {a} and {b} have no chain in common")
        return self.document("fleet-compare") | {"by": by, "a": a, "b": b, "chains": chains}

    def by_robot(self, hop: str, cause: str, chain: str | None) -> list[Row]:
        rows = self.rows.filter((self.rows["hop"] == hop) & (self.rows["cause"] == cause))
        if chain is not None:
            rows = rows.filter(rows["chain"] == chain)
        return collected(expressions.distributions(rows, ["chain", "robot"]))

    def document(self, kind: str) -> Row:
        return {"schema_version": SCHEMA_VERSION, "kind": kind} | self.about

    def why_nothing(self, rows: ir.Table, chain: str | None, revision: str | None) -> str:
        known = collected(expressions.presence(rows))
        chains, revisions = sorted({row["chain"] for row in known}), sorted({row["revision"] for row in known})
        if not known:
            return "holds no message that went all the way through a chain in that time"
        if chain is not None and chain not in chains:
            return f"no chain {chain!r}; there are {', '.join(map(repr, chains))}"
        return f"no revision {revision!r} of it; there are {', '.join(revisions)}"


class Robots:
    """Figures of single robots on both sides of a comparison."""

    def __init__(self, rows: ir.Table) -> None:
        self.values: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
        whole_time = rows.filter(rows["cause"] == "")
        messages: dict[tuple[Any, ...], int] = {}
        for row in collected(expressions.distributions(whole_time, ["side", "robot", *PLACE])):
            messages[row["side"], row["robot"], row["chain"], row["hop"]] = row["n"]
            for figure in QUANTILES:
                if is_carried(row, figure):
                    self.values[row["side"], row["chain"], row["hop"], "", figure][row["robot"]] = row[f"{figure}_high"]
        causes = rows.filter(rows["cause"] != "")
        for row in collected(expressions.times(causes, ["side", "robot", *PLACE])):
            n: int = messages.get((row["side"], row["robot"], row["chain"], row["hop"])) or row["n"]
            key = (row["side"], row["chain"], row["hop"], row["cause"], "mean")
            self.values[key][row["robot"]] = time_ns(row) / n

    def change(self, chain: str, hop: str, cause: str, figure: str) -> Row | None:
        found = change(*(self.values[side, chain, hop, cause, figure] for side in "ab"))
        return None if found is None else told(found)


def told(of: Change) -> Row:
    a, b = of.robots
    return {"factor": of.factor, "low": of.low, "high": of.high, "robots_a": a, "robots_b": b, "paired": of.paired}


def collected(table: ir.Table) -> list[Row]:
    """The engine's answer."""
    rows: list[Row] = table.to_pyarrow().to_pylist()
    return rows


def here(table: ir.Table) -> ir.Table:
    """The engine's answer as a table to ask on: it is small, and its engine may be far."""
    return ibis.memtable(table.to_pyarrow())


def extents(presence: list[Row], *by: str) -> list[Row]:
    """For each `by`: robots, messages, first and last day."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in presence:
        groups[tuple(row[column] for column in by)].append(row)
    return [
        dict(zip(by, key, strict=True))
        | {
            "robots": len({row["robot"] for row in rows}),
            "messages": sum(row["messages"] for row in rows),
            "first": min(row["first"] for row in rows),
            "last": max(row["last"] for row in rows),
        }
        for key, rows in groups.items()
    ]


Places = dict[tuple[str, str, str], list[Row]]


def by_place(rows: Iterable[Row]) -> Places:
    places: Places = defaultdict(list)
    for row in rows:
        places[row["chain"], row["hop"], row["cause"]].append(row)
    return places


def wheres(chain: str, *sides: Places) -> list[tuple[int, str]]:
    """Position and hop, in order; where sides differ in a hop's position, the first one counts."""
    positions: dict[str, int] = {}
    for places in sides:
        for (name, hop, _), rows in places.items():
            if name == chain:
                positions[hop] = min([positions.get(hop, rows[0]["position"]), *(row["position"] for row in rows)])
    return sorted((position, hop) for hop, position in positions.items())


def causes_of(places: Places, chain: str, hop: str) -> list[str]:
    """Those that took most first."""
    found = [key for key in places if key[:2] == (chain, hop) and key[2]]
    return [key[2] for key in sorted(found, key=lambda key: (-time_ns(places[key][0]), key[2]))]


def place(places: Places, weeks: Places, chain: str, position: int, hop: str) -> Row:
    def of(cause: str) -> Row:
        key = (chain, hop, cause)
        here = places[key][0] if key in places else None
        whole = places[chain, hop, ""]
        whole_weeks = {row["week"]: row for row in weeks[chain, hop, ""]}
        trend = [
            {
                "week": str(day(row["week"])),
                "mean_ns": mean_ns(row, [whole_weeks.get(row["week"], row)]),
                "figures": figures(row),
            }
            for row in sorted(weeks[key], key=lambda row: str(row["week"]))
        ]
        return {"figures": figures(here), "mean_ns": mean_ns(here, whole), "weeks": trend}

    way = places[chain, "", ""]
    causes = [
        {"cause": cause, "time_share": share(places[chain, hop, cause], places[chain, hop, ""])} | of(cause)
        for cause in causes_of(places, chain, hop)
    ]
    return (
        {"position": position, "hop": hop, "time_share": share(places[chain, hop, ""], way)}
        | of("")
        | {"causes": causes}
    )


def compared_place(sides: dict[str, Places], robots: Robots | None, chain: str, position: int, hop: str) -> Row:
    def of(cause: str, wanted: list[str]) -> Row:
        found: Row = {}
        for side, places in sides.items():
            rows = places.get((chain, hop, cause), [])
            whole = places.get((chain, hop, ""), [])
            found[side] = {"figures": figures(rows[0]), "mean_ns": mean_ns(rows[0], whole)} if rows else None
        changes = {figure: robots.change(chain, hop, cause, figure) if robots else None for figure in wanted}
        return found | {"by_robots": changes}

    causes = {cause: None for places in sides.values() for cause in causes_of(places, chain, hop)}
    return (
        {"position": position, "hop": hop}
        | of("", list(QUANTILES))
        | {"causes": [{"cause": cause} | of(cause, ["mean"]) for cause in causes]}
    )


def extent(row: Row) -> Row:
    return {"robots": row["robots"], "messages": row["messages"], "first": str(row["first"]), "last": str(row["last"])}


def figures(row: Row | None) -> Row:
    """Each quantile by the bounds of its bucket; null where too few messages lie beyond it."""
    if row is None:
        return {"n": 0} | {name: None for name in [*QUANTILES, "max"]}
    named = {name: bounds(row, name) if is_carried(row, name) else None for name in QUANTILES}
    return {"n": row["n"]} | named | {"max": bounds(row, "max")}


def bounds(row: Row, name: str) -> Row:
    return {"above_ns": row[f"{name}_low"], "up_to_ns": row[f"{name}_high"]}


def is_carried(row: Row, quantile: str) -> bool:
    """Ten messages beyond: n less the rank, which is n · q rounded up."""
    rank = -(-row["n"] * QUANTILES[quantile] // 1000)
    return bool(row["n"] - rank >= BEYOND)


def spread(rows: list[Row], figure: str) -> Row:
    """How far robots are apart."""
    ranked = sorted(
        (row for row in rows if is_carried(row, figure)), key=lambda row: (-row[f"{figure}_high"], row["robot"])
    )
    worst = [{"robot": row["robot"], "figures": figures(row)} for row in ranked[:NAMED]]
    best = bounds(ranked[-1], figure) if ranked else None
    return {
        "robots": len(ranked),
        "too_few": len(rows) - len(ranked),
        "best": best,
        "median": middle(ranked, figure),
        "worst": worst,
    }


def middle(rows: list[Row], figure: str) -> Row | None:
    """Of the median robot."""
    if not rows:
        return None
    high = median_low(row[f"{figure}_high"] for row in rows)
    return next(bounds(row, figure) for row in rows if row[f"{figure}_high"] == high)


def hop_out(robot: list[Row], fleet: list[Row], figure: str) -> Row | None:
    """The hop whose figure is farthest above the fleet's."""
    usual = {row["hop"]: row for row in fleet if not row["cause"] and row["position"] and is_carried(row, figure)}
    mine = [row for row in robot if not row["cause"] and row["hop"] in usual and is_carried(row, figure)]
    over = [(row[f"{figure}_high"] - usual[row["hop"]][f"{figure}_high"], row["hop"], row) for row in mine]
    excess, hop, row = max(over, key=lambda of: of[:2], default=(0, "", {}))
    return None if excess <= 0 else {"hop": hop, "robot": bounds(row, figure), "fleet": bounds(usual[hop], figure)}


def cause_out(robot: list[Row], fleet: list[Row], hop: str) -> Row | None:
    """The cause that takes more of a message's time than in the fleet, by most."""

    def means(rows: list[Row]) -> dict[str, float]:
        here = [row for row in rows if row["hop"] == hop]
        whole = [row for row in here if not row["cause"]]
        return {row["cause"]: mean_ns(row, whole) for row in here if row["cause"]}

    mine, usual = means(robot), means(fleet)
    over = [(ns - usual.get(cause, 0.0), cause) for cause, ns in mine.items()]
    excess, cause = max(over, default=(0.0, ""))
    return (
        None if excess <= 0 else {"cause": cause, "robot_mean_ns": mine[cause], "fleet_mean_ns": usual.get(cause, 0.0)}
    )


def time_ns(row: Row) -> float:
    return int(row["time_2ns"].split(".")[0]) / 2


def mean_ns(row: Row | None, whole: list[Row]) -> float:
    """Time a message of the place, whether the cause took part in it or not."""
    n = whole[0]["n"] if whole else 0
    return time_ns(row) / n if row is not None and n else 0.0


def share(rows: list[Row], whole: list[Row]) -> float | None:
    total = time_ns(whole[0]) if whole else 0.0
    return time_ns(rows[0]) / total if rows and total else None


def day(value: datetime.date | datetime.datetime) -> datetime.date:
    return value.date() if isinstance(value, datetime.datetime) else value


def checked_day(text: str) -> None:
    try:
        datetime.date.fromisoformat(text)
    except ValueError as error:
        raise NoFleet(f"{text!r} is no day; write it like 2026-11-22") from error
