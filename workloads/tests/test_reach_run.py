"""Whole runs of the reach workload with its processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for package in ("mujoco", "ompl", "ruckig", "cyclonedds", "taut"):
    pytest.importorskip(package, reason=f"{package} is not installed")

ROOT = Path(__file__).resolve().parents[2]
DOMAIN = 100 + os.getpid() % 100
"""Of this run of the tests alone."""


def reach(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "workloads.reach", "--domain", str(DOMAIN), "--stall-limit-ms", "5000", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


def told(run: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = run.communicate(timeout=90)
    assert run.returncode == 0, err + out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("bus", ["dds", "zenoh", "shm"])
def test_the_arm_reaches_the_goal_over_every_bus(bus: str) -> None:
    package = {"zenoh": "zenoh", "shm": "iceoryx2"}.get(bus, "cyclonedds")
    pytest.importorskip(package, reason=f"{package} is not installed")
    (trial,) = told(reach("--trials", "1", "--json", "--bus", bus))
    assert trial["success"] and trial["goal_error_mm"] < 10
    assert trial["planning_ms"] > 0 and trial["states_checked"] > 50
    assert trial["control_cycles"] * 2 >= trial["planned_ms"] - 2
    assert trial["end_to_end_ms"] > trial["planned_ms"] > 500
    assert trial["feedbacks"] >= 5
