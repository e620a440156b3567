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
from taut.fleet.engines import MERGED, NoFleet, kind

PERIODS = {"day": "D", "week": "W", "month": "M"}
SQL_TYPES = {
    name: {"string": "VARCHAR", "int32": "INTEGER", "int64": "BIGINT"}.get(of, of)
    for name, of in engines.COLUMNS.items()
}
# The whole way first, then hop by hop: a question about one of them skips the rest of the file.
ORDER = ["chain", "position", "cause", "hop", "robot", "revision", "bucket"]


def merge(folder: str, into: str, by: str, since: str | None = None, until: str | None = None) -> dict[str, Any]:
    """Writes one file for each period; one that exists is made again from all its days. Files that cannot be read are left out
    and named in `set_aside`."""
    if Path(into).resolve() == Path(folder).resolve():
        raise NoFleet(f"{into}: cannot merge a fleet into itself; name another folder")
    refuse_to_count_twice(folder, into, by)
    periods: dict[date, list[Path]] = defaultdict(list)
    wanted = {first_day(day, by) for day in engines.days(folder, since, until)}
    for day in engines.days(folder, None, None):
        first = first_day(day, by)
        if first in wanted:
            periods[first].append(day)
    rows, written = 0, []
    set_aside: dict[Path, str] = {}
    for first, days in sorted(periods.items()):
        target = Path(into) / f"date={first}" / f"{MERGED}{by}.parquet"
        files = engines.files(days)
        try:
            rows += merge_files(files, by, target)
        except Exception:
            damaged = engines.damaged(files)
            if not damaged:
                raise
            set_aside |= damaged
            files = [file for file in files if file not in damaged]
            if not files:
                continue
            rows += merge_files(files, by, target)
        written.append(first)
    if not written:
        raise NoFleet(f"{folder}: holds no file that can be read: {' '.join(str(file) for file in set_aside)}")
    about = {"files": len(written), "rows": rows, "first": str(min(written)), "last": str(max(written))}
    return about | {"set_aside": [{"file": str(file), "why": why} for file, why in set_aside.items()]}


def merge_files(files: list[Path], by: str, target: Path) -> int:
    """Writes them as one, and says how many rows that has."""
    con = engines.connected()
    table = con.read_parquet([str(file) for file in files], hive_partitioning=False)
    merged = expressions.coarser(engines.typed(table, str(files[0])), PERIODS[by])
    # DuckDB's sum is wider than Ibis takes it for, and its truncated date is a moment: only SQL's own cast is one.
    columns = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in SQL_TYPES.items())
    select = f"SELECT {columns} FROM ({ibis.to_sql(merged, dialect='duckdb')}) ORDER BY {', '.join(ORDER)}"
    with whole_or_not_at_all(target) as partial:
        con.raw_sql(f"COPY ({select}) TO {quoted(partial)} (FORMAT parquet, COMPRESSION zstd)")
        rows: int = con.raw_sql(f"SELECT num_rows FROM parquet_file_metadata({quoted(partial)})").fetchone()[0]
    return rows


def refuse_to_count_twice(folder: str, into: str, by: str) -> None:
    """What is written holds periods of this length only, as `engines.days` asks for. A period that does not lie in one of the longer ones
    cannot be merged into those."""
    for file in Path(into).glob("date=*/**/*.parquet"):
        if kind(file.name) != by:
            raise NoFleet(
                f"{into}: holds {held(file)} already, which would count twice; merge by {by} into another folder"
            )
    for file in Path(folder).glob("date=*/**/*.parquet"):
        if kind(file.name) not in ("run", "day", by):
            raise NoFleet(f"{folder}: holds {held(file)}, of which no {by} can be made; merge the runs by {by}")


def held(file: Path) -> str:
    of = kind(file.name)
    return f"runs ({file.name})" if of == "run" else f"{of}s"


@contextmanager
def whole_or_not_at_all(target: Path) -> Iterator[Path]:
    """Where to write what takes the target's place when all of it is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    # Two merges at once each have their own.
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
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
