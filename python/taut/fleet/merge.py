"""A fleet in fewer, larger files: the runs of each robot merged by day, week or month. Counts add up, so no figure changes."""

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import ibis

from taut.fleet import engines, expressions
from taut.fleet.engines import NoFleet

PERIODS = {"day": "D", "week": "W", "month": "M"}
# The whole way first, then hop by hop: a question about one of them skips the rest of the file.
ORDER = ["chain", "position", "cause", "hop", "robot", "revision", "bucket"]


def merge(folder: str, into: str, by: str, since: str | None = None, until: str | None = None) -> dict[str, Any]:
    """Writes one file for each period; one that is there already is made anew from all its days."""
    if Path(into).resolve() == Path(folder).resolve():
        raise NoFleet(f"{into}: cannot merge a fleet into itself; name another folder")
    periods: dict[date, list[Path]] = defaultdict(list)
    wanted = {first_day(day, by) for day in engines.days(folder, since, until)}
    for day in engines.days(folder, None, None):
        first = first_day(day, by)
        if first in wanted:
            periods[first].append(day)
    rows = 0
    con = ibis.duckdb.connect()
    for first, days in sorted(periods.items()):
        table = con.read_parquet([f"{day}/**/*.parquet" for day in days], hive_partitioning=False)
        target = Path(into) / f"date={first}" / "merged.parquet"
        merged = expressions.coarser(table, PERIODS[by]).order_by(ORDER)
        with whole_or_not_at_all(target) as partial:
            con.to_parquet(merged, partial, compression="zstd")
            rows += con.raw_sql(f"SELECT num_rows FROM parquet_file_metadata({quoted(partial)})").fetchone()[0]
    return {"files": len(periods), "rows": rows, "first": str(min(periods)), "last": str(max(periods))}


@contextmanager
def whole_or_not_at_all(target: Path) -> Iterator[Path]:
    """Where to write what takes the target's place when all of it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def first_day(folder: Path, by: str) -> date:
    try:
        day = date.fromisoformat(folder.name.removeprefix("date="))
    except ValueError as error:
        raise NoFleet(f"{folder}: is no day's folder; `taut fleet add` names them date=2026-11-22") from error
    if by == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if by == "month" else day


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
