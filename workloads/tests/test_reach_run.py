"""Whole runs of the reach workload with its processes."""

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest

from workloads.tests.processes import alive, children, start, until

for package in ("mujoco", "ompl", "ruckig", "cyclonedds", "taut"):
    pytest.importorskip(package, reason=f"{package} is not installed")

DOMAIN = 100 + os.getpid() % 100
"""Of this run of the tests alone."""


def reach(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return start("reach", "--domain", str(DOMAIN), "--stall-limit", "5s", *arguments, **environment)


def told(run: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = run.communicate(timeout=600)
    assert run.returncode == 0, err + out
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("bus", ["dds", "zenoh", "shm"])
def test_the_arm_reaches_the_goal_over_every_bus(bus: str) -> None:
    package = {"zenoh": "zenoh", "shm": "iceoryx2"}.get(bus, "cyclonedds")
    pytest.importorskip(package, reason=f"{package} is not installed")
    (trial,) = told(reach("--trials", "1", "--json", "--bus", bus))
    assert trial["success"] and trial["status"] == "success" and trial["goal_error_mm"] < 10
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
    until(lambda: run.poll() is not None or len(children(run.pid)) == 4)
    assert run.poll() is None, "the system did not come up"
    family = children(run.pid)
    run.send_signal(number)
    run.communicate(timeout=600)
    until(lambda: not any(map(alive, family)))


@pytest.mark.parametrize(
    ("choice", "said"),
    [(["--bus", "ring"], "none of dds, zenoh, shm"), (["--depth", "0"], "neither `all`"), (["--trials", "-1"], "-1")],
    ids=str,
)
def test_what_is_not_there_is_refused(choice: list[str], said: str) -> None:
    run = reach(*choice)
    _, err = run.communicate(timeout=600)
    assert run.returncode == 2 and said in err
