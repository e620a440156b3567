"""What `bench/fleet/run` found: docs/proof/fleet.md has the ends, bench/fleet/results.md all figures."""

import os
import platform
from dataclasses import dataclass, field

import duckdb

from bench.fleet import made

HOURS_A_YEAR = 365 * 24
HOURS_A_WEEK = 7 * 24
WEEKS_A_YEAR = 52
# An answer that one waits for.
BEARABLE_S = 600


@dataclass
class Measured:
    """A question to a fleet."""

    took_s: float
    peak_mb: float
    failed: str = ""

    def __str__(self) -> str:
        return f"failed: {self.failed[:120]}" if self.failed else f"{self.took_s:.1f} s, {self.peak_mb / 1000:.1f} GB"


@dataclass
class Found:
    robots: int
    hours: int
    """Of all robots, that were generated as such."""
    hour_rows: float = 0
    hour_bytes: float = 0
    file_bytes: float = 0
    """Of one run by itself."""
    week_rows: float = 0
    week_bytes: float = 0
    hours_asked: dict[str, Measured] = field(default_factory=dict)
    merge: Measured = field(default_factory=lambda: Measured(0, 0, "not asked"))
    merge_rows: int = 0
    weeks_asked: dict[int, dict[str, Measured]] = field(default_factory=dict)
    memory: list[tuple[int, Measured]] = field(default_factory=list)
    stopped: str = ""


def made_by(quick: bool, took_s: float) -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return (
        f"Made by `bench/fleet/run{' --quick' if quick else ''}` in {took_s / 60:.0f} min on {os.cpu_count()} CPUs and {memory:.0f} GB, "
        f"DuckDB {duckdb.__version__}, Python {platform.python_version()}."
    )


QUICK = "**This is the quick form, with few robots and weeks: it does not show a fleet's size.**"


def written(found: Found, quick: bool, took_s: float) -> str:
    """The page."""
    weeks = max(found.weeks_asked)
    rows = [[name, str(asked)] for name, asked in found.weeks_asked[weeks].items()]
    lines = [
        "# How large a fleet one machine can serve",
        f"{made_by(quick, took_s)} All figures: [results](../../bench/fleet/results.md).",
        *([QUICK] if quick else []),
        ends(found),
        f"The fleet: {found.robots:,} robots with one chain of four hops at 100 Hz, a result of each hour added for a year: "
        f"{found.robots * HOURS_A_YEAR / 1e6:.1f} million runs. DuckDB makes them; they are not recorded. A year of hours is "
        f"extrapolated from {counted(found.hours, 'hour')} of all robots.",
        table([f"{counted(weeks, 'merged week')}, {short(found.week_rows * weeks)} rows", "time, memory"], rows),
        f"`taut fleet merge` of a day of hours of some robots ({found.merge_rows / 1e6:.1f} million rows) took {found.merge}.",
    ]
    return "\n\n".join(line.rstrip() for line in lines) + "\n"


def results(found: Found, quick: bool, took_s: float) -> str:
    """All figures."""
    a_run = found.hour_rows / found.robots
    hours = counted(found.hours, "hour")
    lines = [
        "# Figures of how large a fleet one machine can serve",
        f"{made_by(quick, took_s)} Do not edit. The page: [how large a fleet](../../docs/proof/fleet.md). Each question is asked once, in a fresh "
        "process, Python's start included. Recently written files may still be in the system's memory.",
    ]
    if quick:
        lines.append(QUICK)
    lines += [
        f"The fleet: {found.robots:,} robots with one chain of four hops at 100 Hz. Every hour's result is added, for a year: "
        f"{found.robots * HOURS_A_YEAR / 1e6:.1f} million runs. DuckDB makes them (`bench/fleet/made.py`); they are not recorded. An hour fills "
        f"{a_run:.0f} buckets in {len(made.PLACES)} places (the whole chain, hops, their causes). Robots change to revision v2 one after another in the first two months.",
        "## Size",
        sizes(found, a_run),
        f"A year of hours exceeds this machine's disk. It is extrapolated from {hours} of all robots, and the year of weeks from "
        f"{max(found.weeks_asked)}. A week is one run of each robot of that length, merged by `taut fleet merge`. A merged week has 1/{found.hour_rows * HOURS_A_WEEK / found.week_rows:.0f} of the rows of its hours. "
        "`python/tests/test_fleet_merged.py` calls the command and checks that a merged fleet gives the same answers to the last digit. `taut fleet merge` of a day of hours of some robots "
        f"({found.merge_rows / 1e6:.1f} million rows) took {found.merge}.",
        "## Questions",
        questions(found),
    ]
    if found.stopped:
        lines.append(f"Generation stopped {found.stopped}.")
    limits = [[f"{megabytes} MB", str(asked)] for megabytes, asked in found.memory]
    lines += [
        "The report over all of them with a limit on the memory of DuckDB's buffers:",
        table(["limit", "report: time, memory of the process"], limits),
    ]
    return "\n\n".join(line.rstrip() for line in lines) + "\n"


def sizes(found: Found, a_run: float) -> str:
    def row(what: str, rows: float, size: float) -> list[str]:
        return [what, short(rows), short(size) + "B", f"{size / rows:.1f} B"]

    weeks, runs = max(found.weeks_asked), found.robots * HOURS_A_YEAR
    rows = [
        row("a run, in its own file", a_run, found.file_bytes),
        row("an hour of all robots, in one file", found.hour_rows, found.hour_bytes),
        row("a week of all robots, merged", found.week_rows, found.week_bytes),
        row(f"**generated**: {weeks} weeks, merged", found.week_rows * weeks, found.week_bytes * weeks),
        row("*a year of weeks, extrapolated*", found.week_rows * WEEKS_A_YEAR, found.week_bytes * WEEKS_A_YEAR),
        row(
            "*a year of hours, extrapolated, in files of an hour*",
            found.hour_rows * HOURS_A_YEAR,
            found.hour_bytes * HOURS_A_YEAR,
        ),
        row("*the same in files of a run*", a_run * runs, found.file_bytes * runs),
    ]
    return table(["", "rows", "bytes", "a row"], rows)


def questions(found: Found) -> str:
    names = dict.fromkeys(name for asked in found.weeks_asked.values() for name in asked)
    head = [f"{counted(weeks, 'week')}, {short(found.week_rows * weeks)} rows" for weeks in found.weeks_asked]
    rows = [[name, *(str(asked.get(name, "–")) for asked in found.weeks_asked.values())] for name in names]
    hours = f"{counted(found.hours, 'hour')} of all robots, {short(found.hour_rows * found.hours)} rows"
    unmerged = [[name, str(asked)] for name, asked in found.hours_asked.items()]
    return table(["merged weeks", *head], rows) + "\n\n" + table(["not merged", hours], unmerged)


def ends(found: Found) -> str:
    weeks = max(found.weeks_asked)
    rate = found.week_rows * weeks / found.weeks_asked[weeks]["report"].took_s
    hour_rate = found.hour_rows * found.hours / found.hours_asked["report"].took_s
    year_s = found.week_rows * WEEKS_A_YEAR / rate
    days = BEARABLE_S * hour_rate / (found.hour_rows * 24)
    runs = found.robots * HOURS_A_YEAR
    return "\n".join(
        [
            f"- **Merged weeks.** A report reads {short(rate)} rows a second here: a year of {found.robots:,} robots takes {year_s:.0f} s and "
            f"{short(found.week_bytes * WEEKS_A_YEAR)}B of disk (extrapolated from {weeks} weeks). Both grow with robots times weeks.",
            f"- **Unmerged hours.** At {short(hour_rate)} rows a second a report reads {days:.1f} days of this fleet in {BEARABLE_S // 60} minutes; a year would take "
            f"{found.hour_rows * HOURS_A_YEAR / hour_rate / 3600:.0f} hours. The number of files is a limit before that: {short(runs)} in a year. Merge every night.",
        ]
    )


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def counted(n: int, thing: str) -> str:
    return f"{n} {thing}" + ("s" if n != 1 else "")


def short(n: float) -> str:
    """12.3 M"""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} "
