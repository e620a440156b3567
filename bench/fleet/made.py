"""A fleet that never was: hourly results of many robots, made by DuckDB at some millions of rows a second. Tests and the simulation share it.

A robot's loop runs at 100 Hz through four hops. Each robot has a shift of its own, every 97th shares its processor with something that
preempts it, and revision v2, which reaches robot after robot in the middle of the time, waits longer for the GIL in its second hop.
"""

import math
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import duckdb

CHAIN = "camera → drive"
# Position, hop, cause: middle in µs, octaves of its body, share of messages that it takes part in, share of them in a tail of 4 octaves.
PLACES: list[tuple[int, str, str, float, float, float, float]] = [
    (0, "", "", 6800, 0.35, 1, 0.02),
    (0, "", "cpu", 5200, 0.3, 1, 0.001),
    (0, "", "gil", 350, 1.2, 0.6, 0.03),
    (0, "", "preempted", 90, 1.5, 0.08, 0.1),
    (0, "", "wakeup", 60, 0.8, 1, 0.01),
    (1, "camera → detect", "", 2100, 0.3, 1, 0.005),
    (1, "camera → detect", "cpu", 2000, 0.3, 1, 0.001),
    (2, "detect → plan", "", 2900, 0.4, 1, 0.02),
    (2, "detect → plan", "cpu", 2300, 0.3, 1, 0.001),
    (2, "detect → plan", "gil", 330, 1.2, 0.6, 0.03),
    (3, "plan → send", "", 900, 0.35, 1, 0.01),
    (3, "plan → send", "preempted", 90, 1.5, 0.05, 0.1),
    (4, "send → drive", "", 420, 0.5, 1, 0.03),
    (4, "send → drive", "wakeup", 55, 0.8, 1, 0.01),
]
MESSAGES_AN_HOUR = 360_000
TAIL_OCTAVES = 4
# Below this share of a run's messages a bucket is left out.
LEAST = 2e-8


@dataclass(frozen=True)
class Fleet:
    """What to make. A run is `hours` long; one of 24 · 7 hours has the counts of a week's runs."""

    robots: int
    first: date
    runs: int
    hours: int = 1
    messages_an_hour: int = MESSAGES_AN_HOUR
    # The rollout of v2 begins and ends at these runs.
    rollout: tuple[int, int] = (0, 0)


def select(fleet: Fleet, first_run: int = 0) -> str:
    """The rows from a run on, as SQL; the tables of `shapes` must be there."""
    begin, end = fleet.rollout
    run = "''" if fleet.hours > 1 else "md5(concat(robot_nr, ' ', run_nr))"
    return f"""
        WITH runs AS (
            SELECT robot_nr, run_nr,
                   (hash(robot_nr, 1) % 25)::INT - 12 AS shift,
                   robot_nr % 97 = 13 AS is_bad,
                   run_nr >= {begin} + (hash(robot_nr, 2) % {max(end - begin, 1)})::BIGINT AS is_new
            FROM range({fleet.robots}) a(robot_nr), range({first_run}, {fleet.runs}) b(run_nr)
        ), shifted AS (
            SELECT robot_nr, run_nr, is_new, place, weight,
                   bucket + shift
                   + CASE WHEN is_bad AND cause = 'preempted' THEN 90 WHEN is_bad AND position IN (0, 3) AND cause = '' THEN 30 ELSE 0 END
                   + CASE WHEN is_new AND cause = 'gil' THEN 40 WHEN is_new AND position = 2 AND cause = '' THEN 12
                          WHEN is_new AND position = 0 AND cause = '' THEN 5 ELSE 0 END AS bucket
            FROM runs, shapes JOIN places USING (place)
        ), noisy AS (
            SELECT *, (hash(((robot_nr * 9000 + run_nr) * 32 + place) * 4096 + bucket) >> 24) % 16777216 / 16777216.0 AS random
            FROM shifted
        ), counted AS (
            -- Between 0.7 and 1.3 of what is expected, rounded up or down at random.
            SELECT place, robot_nr, run_nr, is_new, bucket,
                   floor({fleet.messages_an_hour * fleet.hours} * weight * (0.7 + 0.6 * random) + (random * 1000) % 1)::BIGINT AS count
            FROM noisy
        ), ordered AS (
            -- Of numbers only: words are put to them when they are in order.
            SELECT * FROM counted WHERE count > 0 ORDER BY place, robot_nr, run_nr, bucket
        )
        SELECT DATE '{fleet.first}' + (run_nr * {fleet.hours} // 24)::INT AS date, printf('robot-%05d', robot_nr) AS robot, {run} AS run,
               CASE WHEN is_new THEN 'v2' ELSE 'v1' END AS revision, '{CHAIN}' AS chain, position, hop, cause,
               bucket, low_ns, high_ns, count
        FROM ordered JOIN bounds USING (bucket) JOIN places USING (place)
    """


def shapes(con: duckdb.DuckDBPyConnection) -> None:
    """Tables of the places, of their buckets with the share of a run's messages, and of the buckets' bounds."""
    # In the order of merged fleets.
    places = sorted(PLACES, key=lambda of: (of[0], of[2], of[1]))
    rows: list[tuple[int, int, float]] = []
    for place, (_, _, _, middle_us, octaves, part, tail) in enumerate(places):
        middle = round(math.log2(middle_us * 1000) * 64)
        width = octaves * 64 / 2
        body = {k: math.exp(-((k / width) ** 2) / 2) for k in range(-int(4 * width), int(4 * width) + 1)}
        far = {k: math.exp(-7 * k / (TAIL_OCTAVES * 64)) for k in range(TAIL_OCTAVES * 64)}
        for k in sorted(body.keys() | far.keys()):
            weight = part * (
                (1 - tail) * body.get(k, 0) / sum(body.values()) + tail * far.get(k, 0) / sum(far.values())
            )
            if weight > LEAST:
                rows.append((place, middle + k, weight))
    con.execute("CREATE TABLE places (place INT, position INT, hop VARCHAR, cause VARCHAR)")
    con.executemany("INSERT INTO places VALUES (?, ?, ?, ?)", [[place, *of[:3]] for place, of in enumerate(places)])
    con.execute("CREATE TABLE shapes (place INT, bucket INT, weight DOUBLE)")
    con.execute(
        "INSERT INTO shapes SELECT unnest(?), unnest(?), unnest(?)",
        [list(column) for column in zip(*rows, strict=True)],
    )
    con.execute("""
        CREATE TABLE bounds AS
        SELECT bucket::INT AS bucket, floor(pow(2, bucket / 64.0))::BIGINT AS low_ns, floor(pow(2, (bucket + 1) / 64.0))::BIGINT AS high_ns
        FROM range(3000) _(bucket)
    """)


def partitioned(fleet: Fleet, folder: Path) -> None:
    """As `taut fleet add` lays it: date=…/robot=…, a file for each robot and day."""
    con = duckdb.connect()
    shapes(con)
    options = "FORMAT parquet, COMPRESSION zstd, PARTITION_BY (date, robot), WRITE_PARTITION_COLUMNS true"
    con.execute(f"COPY ({select(fleet)}) TO {quoted(folder)} ({options})")


def by_day(fleet: Fleet, folder: Path) -> int:
    """As `taut fleet merge` lays it: one file for all robots' rows of a run, in its order. The number of rows."""
    con = duckdb.connect()
    shapes(con)
    rows = 0
    for run in range(fleet.runs):
        day = fleet.first + timedelta(hours=run * fleet.hours)
        file = folder / f"date={day}" / f"{run:04}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        one = select(replace(fleet, runs=run + 1), run)
        con.execute(f"COPY ({one}) TO {quoted(file)} (FORMAT parquet, COMPRESSION zstd)")
        rows += con.execute(f"SELECT num_rows FROM parquet_file_metadata({quoted(file)})").fetchall()[0][0]
    return rows


def quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
