"""The script that everybody writes beside the probe, at the same way of sleeping: what of its answer is Python."""

import statistics
import subprocess
import sys
from pathlib import Path

import ours
from children import CPU, run
from page import Section, microseconds

from bench.proof import rounds
from bench.proof.page import table

HERE = Path(__file__).parent
SLEEPS_S = (0.001, 0.01)


def measure(taut: str, count: int, seconds: float, old_python: str | None) -> Section:
    # As Python sleeps: clock_nanosleep since 3.11, select before (Modules/timemodule.c).
    ways = [(sys.executable, "relative"), *([(old_python, "select")] if old_python else [])]
    rows = []
    for python, wake in ways:
        for sleep_s in SLEEPS_S:
            script, probe = [], []
            for round_ in range(count):
                for is_ours in (True, False)[:: 1 if round_ % 2 else -1]:
                    if is_ours:
                        probe.append(by_probe(taut, wake, sleep_s, seconds))
                    else:
                        script.append(by_script(python, sleep_s, seconds))
            print(f"Python: {wake} of {sleep_s * 1000:g} ms", flush=True)
            more = rounds.estimate([a - b for a, b in zip(script, probe, strict=True)])
            rows.append(
                [
                    f"{version(python)}, `--wake {wake}`, {1000 * sleep_s:g} ms",
                    microseconds(statistics.median(script)),
                    microseconds(statistics.median(probe)),
                    f"{microseconds(more.median)} ({microseconds(more.low)} to {microseconds(more.high)})",
                    f"{100 * more.median / statistics.median(script):.0f} %",
                ]
            )
    result = Section(
        "The interpreter's part of a Python script's lateness",
        f"{count} rounds of {seconds:g} s in turn, on CPU {CPU}, SCHED_OTHER: a script that takes `time.time()` before and after `time.sleep()`, less the "
        "sleep, and `taut wakeup` with the same system call. Median lateness of a round, µs. The difference is the interpreter's calls, lock and clock.",
    )
    result.body = [table(["", "script's p50", "taut's p50", "Python", "of the script's"], rows)]
    return result


def by_script(python: str, sleep_s: float, seconds: float) -> float:
    lines = run([python, str(HERE / "sleep_loop.py"), str(sleep_s), f"{seconds:g}"], cpu=CPU).stdout.split()
    return statistics.median(map(int, lines))


def by_probe(taut: str, wake: str, sleep_s: float, seconds: float) -> float:
    words = ["--wake", wake, "--interval", f"{round(1e6 * sleep_s)}us"]
    series = ours.only_series(run(ours.command(taut, CPU, seconds, *words)).stdout)
    return float(series["wakeups"]["p50_ns"])


def version(python: str) -> str:
    asked = subprocess.run([python, "--version"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()
