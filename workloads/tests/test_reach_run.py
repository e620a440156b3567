"""Whole runs of the reach workload with its processes."""

import json
import os
import signal
import subprocess
import sys
import time
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


def test_a_flood_that_the_planner_takes_arrives_there() -> None:
    from workloads.reach import messages, topics
    from workloads.reach.bus import open_bus
    from workloads.reach.options import Options

    bus = open_bus(Options(domain=DOMAIN))
    send = bus.publisher(topics.flood(1))
    run = reach("--trials", "1", "--json", REACH_LISTEN="1", REACH_THROTTLE="adaptive")
    bus.until_joined(30.0, topics.flood(1))
    while run.poll() is None:
        send(messages.String("X" * 1024))
        time.sleep(0.005)
    (trial,) = told(run)
    assert trial["success"] and trial["flood_taken"] > 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process(number: signal.Signals) -> None:
    run = reach("--duration", "600", "--json")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    deadline = time.monotonic() + 60
    while len(family := children.read_text().split()) < 4:
        assert run.poll() is None and time.monotonic() < deadline, "the system did not come up"
        time.sleep(0.02)
    run.send_signal(number)
    run.communicate(timeout=60)
    assert not any(Path(f"/proc/{pid}").exists() for pid in family)


@pytest.mark.parametrize(
    ("choice", "said"),
    [(["--bus", "ring"], "none of dds, zenoh, shm"), (["--depth", "0"], "neither `all`"), (["--trials", "-1"], "-1")],
    ids=str,
)
def test_what_is_not_there_is_refused(choice: list[str], said: str) -> None:
    run = reach(*choice)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 2 and said in err
