"""One run of one arrangement under one condition: recorded, explained, and held against the arms' journals."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import conditions
import motion

FAILED, NO_EVIDENCE, ATTEMPTS_MAX = 1, 4, 4
"""The loop's exit codes; a run in which the machine could not run the arms is repeated."""
SLOWEST, START_S, END_S = 3.0, 120.0, 30.0
"""A run may take SLOWEST times its duration, START_S seconds to start beside hogs, and END_S seconds to end after SIGTERM."""
SILENT = ("queue_overflow", "validator_timing_bug", "not_executed")
"""The ledger's reasons that nobody is told of."""
SPLIT = ["--arrangement", "split", "--receiver", "framed", "--validator", "clamp", "--guard", "taut"]
ARRANGEMENTS: dict[str, list[str]] = {
    "source": ["--arrangement", "source", "--receiver", "sdk", "--validator", "reject", "--guard", "naive"],
    "right": SPLIT,
}


@dataclass(frozen=True)
class Trial:
    arrangement: str
    condition: str
    latencies_ns: list[int]
    """Leader's read to the servo's answer, of each setpoint that got there; sorted."""
    result: dict[str, Any]
    """What the workload counted."""
    causes: list[dict[str, Any]]
    """Of the tail, as `taut explain` says."""
    motion: motion.Motion
    recording: Path
    lost_stamps: int = 0
    tier: str = ""
    advice: list[str] = field(default_factory=list)
    invalid: int = 0
    """Runs before this one that the machine made no evidence, and that were repeated."""

    def quantile_ms(self, q: float) -> float:
        """By rank: the least latency that a share q does not exceed."""
        rank = math.ceil(q * len(self.latencies_ns)) - 1
        return self.latencies_ns[max(0, rank)] / 1e6

    @property
    def setpoints(self) -> dict[str, Any]:
        return dict(self.result["setpoints"])

    @property
    def delivered(self) -> float:
        """Share of the setpoints that reached the servo, as they were or changed for a limit. What was still on its
        way when the run was ended is not counted."""
        return float(self.setpoints["applied"]) / max(1, self.setpoints["produced"] - self.setpoints["in_flight"])

    @property
    def silent(self) -> int:
        return sum(int(self.setpoints["dropped"].get(reason, 0)) for reason in SILENT)

    @property
    def real_time(self) -> float:
        """Share of the time that the machine ran the arms."""
        return float(self.result["real_time"])

    @property
    def trips(self) -> list[dict[str, Any]]:
        return list(self.result["guard"]["trips"])

    @property
    def false_trips(self) -> int:
        return sum(bool(trip["is_false"]) for trip in self.trips)


def run(arrangement: str, condition: conditions.Condition, seconds: float, taut: str, recording: Path) -> Trial:
    """Raises RuntimeError if the run failed or its account does not balance, or if the machine cannot run the arms."""
    for invalid in range(ATTEMPTS_MAX):
        found = _run(arrangement, condition, seconds, taut, recording)
        if found:
            return replace(found, invalid=invalid)
    raise RuntimeError(f"{arrangement} under {condition.name}: the machine held the arms up in {ATTEMPTS_MAX} runs")


def _run(arrangement: str, condition: conditions.Condition, seconds: float, taut: str, recording: Path) -> Trial | None:
    """Nothing, where the run is no evidence."""
    with tempfile.TemporaryDirectory(prefix="taut-teleop-") as folder:
        command = [
            taut,
            "record",
            "-q",
            "--ignore-loss",
            "-o",
            str(recording),
            "--",
            sys.executable,
            "-m",
            "workloads.teleop",
        ]
        command += ["--duration", str(seconds), *ARRANGEMENTS[arrangement], "--companions", "all"]
        command += ["--wire", condition.wire, "--journal", folder, "--json"]
        with conditions.load(condition):
            code, out, err = ended(command, SLOWEST * seconds + START_S)
        if code == NO_EVIDENCE:
            return None
        result = counted(code, out)
        if result is None:
            raise RuntimeError(f"{arrangement} under {condition.name}: {err.strip() or out.strip()}")
        try:
            moved = motion.measure(Path(folder), result["arrangement"])
        except RuntimeError as failure:
            why = result["guard"]["trips"] if result["stops"] else "no stop"
            raise RuntimeError(f"{arrangement} under {condition.name}: {failure}; {result['stops']} {why}") from failure
    explained = explain(taut, recording)
    chain = explained["chains"][0]
    return Trial(
        arrangement,
        condition.name,
        sorted(message["total_ns"] for message in chain["all"]),
        result,
        chain["causes"],
        moved,
        recording,
        explained["recording"]["lost_stamps"],
        explained["recording"]["tier"],
        [one["evidence"] for one in chain["recommendations"][:3]],
    )


def counted(code: int | None, out: str) -> dict[str, Any] | None:
    """What the workload counted in a run that went to its end. The loop fails with a stop that stays latched, too; that is a result, which
    is held against a limit."""
    if code not in (0, FAILED) or not out.strip():
        return None
    result = dict(json.loads(out))
    has_failed = result["failures"] or result["setpoints"]["unexplained"]
    return None if code == FAILED and (has_failed or not result["stopped"]) else result


def ended(command: list[str], seconds: float) -> tuple[int | None, str, str]:
    """Exit code, and what it said. What is not over in time, or when this ends, is interrupted with all that it started: code None."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except BaseException as failure:
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=END_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            if not isinstance(failure, subprocess.TimeoutExpired):
                raise
            return None, "", f"did not end within {seconds:.0f} s"
        return child.returncode, out, err


def explain(taut: str, recording: Path) -> dict[str, Any]:
    command = [taut, "explain", "--format", "json", "--all", str(recording)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"taut explain {recording}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))
