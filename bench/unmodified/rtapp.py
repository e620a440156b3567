"""Each activation of rt-app's periodic tasks by its own log, beside the one that taut found."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path

import runs
from cycles import MEDIAN_US, P99_US

# µs; odd ones, whose multiples do not meet.
PERIODS = {"a": 3700, "b": 5300, "c": 11000, "d": 7000}
# This one is of SCHED_DEADLINE, and ends its runs by sched_yield; the others sleep until an absolute moment.
DEADLINE = "d"
# The kernel computes a deadline's moment anew for each period, some 100 ns off.
PERIOD_WITHIN_NS = 100
# A thread's log and the kernel's events agree to that, ns: the start is logged after the return of the call.
WITHIN_NS = 1_000_000


@dataclass
class Task:
    name: str
    period_ns: int
    found_period_ns: int
    logged: int
    matched: int
    found: int
    differences: list[int]

    def quantile(self, q: float) -> float:
        ordered = sorted(self.differences)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] / 1000 if ordered else float("nan")

    def median(self) -> float:
        return statistics.median(self.differences) / 1000 if self.differences else float("nan")

    @property
    def holds(self) -> bool:
        # The last wait of a task ends in no run of its.
        is_period = abs(self.found_period_ns - self.period_ns) <= (PERIOD_WITHIN_NS if self.name == DEADLINE else 0)
        is_near = abs(self.median()) <= MEDIAN_US and self.quantile(0.99) <= P99_US
        return is_period and is_near and self.found - self.matched <= 1


def wait(name: str, period: int) -> dict[str, object]:
    """How a task waits for its next run."""
    if name == DEADLINE:
        budget = {"dl-runtime": period // 3, "dl-deadline": period, "dl-period": period}
        return {"policy": "SCHED_DEADLINE", **budget, "yield": ""}
    return {"timer": {"ref": name, "period": period, "mode": "absolute"}}


def tasks(taut: str, folder: Path) -> list[Task]:
    """Four tasks for three seconds."""
    logs = folder / "rt-app"
    logs.mkdir(exist_ok=True)
    task = {name: {"loop": 3_000_000 // period, "run": 200, **wait(name, period)} for name, period in PERIODS.items()}
    settings = {"duration": 4, "calibration": 100, "logdir": str(logs), "log_basename": "rt", "log_size": 2}
    description = {"tasks": task, "global": {**settings, "ftrace": False, "gnuplot": False}}
    file = folder / "rt-app.json"
    file.write_text(json.dumps(description))
    recording = folder / "rt-app.mcap"
    runs.record(taut, recording, ["rt-app", str(file)])
    loops = {loop["thread"].split("/")[0]: loop for loop in runs.report(taut, recording)["loops"]}
    hops = runs.hops(taut, recording)
    results = []
    for number, (name, period) in enumerate(PERIODS.items()):
        log = (logs / f"rt-{name}-{number}.log").read_text().splitlines()
        # The sixth column: when its run began, µs of CLOCK_MONOTONIC.
        logged = [int(line.split()[4]) * 1000 for line in log if not line.startswith("#")]
        of_thread = [hop for hop in hops if hop["to_thread"].startswith(f"{name}/") and hop["hop"] == 1]
        starts = sorted(hop["start_ns"] + hop["duration_ns"] for hop in of_thread)
        differences = []
        at = 0
        for start in starts:
            while at < len(logged) and logged[at] < start - 1000:
                at += 1
            if at < len(logged) and logged[at] - start < WITHIN_NS:
                differences.append(logged[at] - start)
        found = loops.get(name, {"period_ns": 0})["period_ns"]
        results.append(Task(name, period * 1000, found, len(logged), len(differences), len(starts), differences))
    return results
