"""Where the rows are and which engine computes: an Ibis table for each. All that differs between engines is in this file."""

import os
from collections.abc import Callable, Collection, Iterable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import ibis
import ibis.expr.types as ir

ENGINES = ("duckdb", "clickhouse", "spark")
# What `taut fleet add` writes, in docs/reference/fleet.md's order, with the types that a question reckons with. Files may hold others: an engine
# that adds up counts writes a wider type, and one that truncates dates writes moments.
COLUMNS = {
    "date": "date",
    "robot": "string",
    "run": "string",
    "revision": "string",
    "chain": "string",
    "position": "int32",
    "hop": "string",
    "cause": "string",
    "bucket": "int32",
    "low_ns": "int64",
    "high_ns": "int64",
    "count": "int64",
}
# What the file of a period is called before the period's length.
MERGED = "merged-by-"
# Of views: an engine that a process has once may be asked for several fleets.
NAMES = (f"taut_fleet_{number}" for number in count())


class NoFleet(ValueError):
    """There is no answer; the one line says why."""


def rows(
    place: str, engine: str, since: str | None, until: str | None, without: Collection[Path] = frozenset()
) -> ir.Table:
    """The histogram rows of a folder or of a server's table. The columns are the files' own, never the folders' names: every engine
    guesses the types of those in its own way, and robot 007 is not robot 7. Of a folder, DuckDB leaves the files `without` out."""
    engines: dict[str, Callable[[str, str | None, str | None], ir.Table]] = {
        "duckdb": lambda place, since, until: duckdb(place, since, until, without),
        "clickhouse": clickhouse,
        "spark": spark,
    }
    table = typed(engines[engine](place, since, until), place)
    if since:
        table = table.filter(table["date"] >= ibis.date(since))
    if until:
        table = table.filter(table["date"] <= ibis.date(until))
    return table


def typed(table: ir.Table, place: str) -> ir.Table:
    """A fleet's columns, each of its type."""
    for column in COLUMNS:
        if column not in table.columns:
            raise NoFleet(f"{place}: is no fleet: it has no column {column!r}; `taut fleet add` makes one")
    return table.select(**{name: table[name].cast(type_) for name, type_ in COLUMNS.items()})


def connected() -> Any:
    """DuckDB in this process, without the progress bar that it prints on stdout where a query of `python -c` takes over two seconds."""
    con = ibis.duckdb.connect()
    con.raw_sql("SET enable_progress_bar = false").fetchall()
    return con


def duckdb(place: str, since: str | None, until: str | None, without: Collection[Path]) -> ir.Table:
    all_days = days(place, since, until)
    read = [f"{day}/**/*.parquet" for day in all_days]
    if without:
        read = [str(file) for file in files(all_days) if file not in without]
        if not read:
            raise NoFleet(f"{place}: holds no file that can be read")
    return connected().read_parquet(read, hive_partitioning=False)


def files(all_days: Iterable[Path]) -> list[Path]:
    """The files of these days."""
    return sorted(file for day in all_days for file in day.rglob("*.parquet"))


def damaged(all_files: Iterable[Path]) -> dict[Path, str]:
    """The files that cannot be read to their end as a fleet's, and why. Reads groups of files and halves those that fail: a fleet has many
    files, and mostly one is damaged."""
    con, found = connected(), {}
    groups = [list(all_files)]
    while groups:
        if not (group := groups.pop()):
            continue
        try:
            table = typed(con.read_parquet([str(file) for file in group], hive_partitioning=False), str(group[0]))
            table.aggregate(**{name: table[name].hash().max() for name in COLUMNS}).execute()
        except Exception as error:
            if len(group) > 1:
                groups += [group[: len(group) // 2], group[len(group) // 2 :]]
                continue
            # DuckDB names a page of its documentation below; the first line is the reason.
            found[group[0]] = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")
    return found


def clickhouse(place: str, since: str | None, until: str | None) -> ir.Table:
    """A server's table, clickhouse://USER:PASSWORD@HOST:PORT/DATABASE/TABLE; a folder is read by the same engine in this process."""
    try:
        import clickhouse_connect
    except ModuleNotFoundError as error:
        raise missing("clickhouse-connect chdb", error) from error
    if "://" in place:
        *database, table = urlparse(place).path.strip("/").split("/")
        if len(database) != 1 or not table:
            raise NoFleet(f"{place}: name the table: clickhouse://USER:PASSWORD@HOST:8123/DATABASE/TABLE")
        server = ibis.connect(place.rsplit("/", 1)[0])
        return server.table(table)
    days(place, since, until)
    try:
        client = clickhouse_connect.get_client(interface="chdb")
    except ImportError as error:
        raise missing("chdb", error) from error
    engine = ibis.clickhouse.from_connection(client)
    files = f"{Path(place).resolve()}/date=*/**/*.parquet".replace("\\", "\\\\").replace("'", "\\'")
    name = next(NAMES)
    engine.raw_sql(f"CREATE VIEW {name} AS SELECT * FROM file('{files}', 'Parquet')")
    return engine.table(name)


def spark(place: str, since: str | None, until: str | None) -> ir.Table:
    """The session that is there, as in a notebook or under spark-submit; else one in this process."""
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise missing("pyspark", error) from error
    if "://" not in place:
        days(place, since, until)
        place = str(Path(place).resolve())
    session = SparkSession.getActiveSession()
    if session is None:
        quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        builder = SparkSession.builder.appName("taut fleet")
        for key, value in quiet.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    # Files of all depths: so Spark takes no columns from the folders' names.
    frame = session.read.parquet(place, recursiveFileLookup=True, pathGlobFilter="*.parquet")
    name = next(NAMES)
    frame.createOrReplaceTempView(name)
    return ibis.pyspark.connect(session).table(name)


def days(folder: str, since: str | None, until: str | None) -> list[Path]:
    """The folders of the days in question; of a merged fleet those of its weeks."""
    root = Path(folder)
    if not root.is_dir():
        raise NoFleet(f"{folder}: no such folder; `taut fleet add RUN --into {folder} --robot NAME` makes it")
    all_days = sorted(path for path in root.glob("date=*") if path.is_dir() and next(path.rglob("*.parquet"), None))
    if not all_days:
        raise NoFleet(f"{folder}: holds no fleet (date=…/robot=…/….parquet); `taut fleet add` writes one")
    refuse_to_count_twice(root, all_days)
    wanted = [day for day in all_days if (since or "") <= day.name.removeprefix("date=") <= (until or "9999")]
    if not wanted:
        first, last = all_days[0].name, all_days[-1].name
        raise NoFleet(f"{folder}: no run between {since or '…'} and {until or '…'}; there are {first} to {last}")
    return wanted


def refuse_to_count_twice(root: Path, all_days: Iterable[Path]) -> None:
    """A folder holds runs, or periods of one length: of two kinds each message would count twice."""
    of_kinds: dict[str, Path] = {}
    for day in all_days:
        for folder, _, names in os.walk(day):
            for name in names:
                if name.endswith(".parquet"):
                    of_kinds.setdefault(kind(name), Path(folder, name).relative_to(root))
    if len(of_kinds) > 1:
        held = " and ".join(f"{of}s ({file})" for of, file in sorted(of_kinds.items()))
        raise NoFleet(f"{root}: holds {held}, so messages would count twice; leave one kind of files in it")


def kind(name: str) -> str:
    """What the file of this name holds: a run, or the length of its period."""
    return name.removeprefix(MERGED).removesuffix(".parquet") if name.startswith(MERGED) else "run"


def missing(packages: str, error: Exception) -> NoFleet:
    return NoFleet(f"this engine needs a package that is not here ({error}); get it: pip install {packages}")
