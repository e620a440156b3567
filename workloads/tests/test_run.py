"""The ledger, and whole runs of the workload with its processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("taut", reason="the taut module is not installed")

from workloads.teleop.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "workloads.teleop", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(pid: int) -> list[int]:
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.01)


def balanced(setpoints: dict[str, Any]) -> bool:
    ended = setpoints["applied"] + sum(setpoints["dropped"].values()) + setpoints["in_flight"]
    return bool(setpoints["unexplained"] == 0 and setpoints["produced"] == ended)


def test_ledger_balances_and_finds_a_second_outcome() -> None:
    ledger = Ledger()
    first, second, third = ledger.produce(), ledger.produce(), ledger.produce()
    ledger.applied(first)
    ledger.drop(second, "speed_limit")
    assert ledger.balance() == {
        "produced": 3,
        "applied": 1,
        "dropped": {"speed_limit": 1},
        "modified": {},
        "in_flight": 1,
        "unexplained": 0,
    }
    ledger.drop(first, "stale")
    ledger.applied(99)
    assert ledger.balance()["unexplained"] == 2
    ledger.applied(third)
    assert ledger.balance()["in_flight"] == 0


@pytest.mark.parametrize(
    "choice",
    [
        ["--receiver", "sdk", "--wire", "rough"],
        ["--validator", "clamp"],
        ["--arrangement", "split", "--validator", "clamp"],
    ],
    ids=" ".join,
)
def test_a_run_of_three_seconds_balances(choice: list[str]) -> None:
    run = start("--duration", "3", "--json", *choice)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    result = json.loads(out)
    assert balanced(result["setpoints"])
    assert result["setpoints"]["produced"] > 0 and result["setpoints"]["applied"] > 0
    assert result["setpoints"]["in_flight"] == 0
    assert result["failures"] == []
    if "clamp" in choice:
        assert set(result["setpoints"]["dropped"]) <= {"duplicate", "superseded"}
    else:
        assert result["leader_stream"]["lost_reads"] > 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_in_order(number: signal.Signals) -> None:
    run = start("--duration", "600", "--json")
    until(lambda: len(children(run.pid)) == 2)
    controllers = children(run.pid)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert balanced(json.loads(out)["setpoints"])
    assert not any(map(alive, controllers))


def test_a_killed_run_leaves_no_controller_behind() -> None:
    run = start("--duration", "600")
    until(lambda: len(children(run.pid)) == 2)
    controllers = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    until(lambda: not any(map(alive, controllers)))


def test_a_dead_follower_ends_setpoints_as_transport_errors() -> None:
    run = start("--duration", "2", "--json")
    until(lambda: len(children(run.pid)) == 2)
    follower = children(run.pid)[1]
    until(lambda: b"FR20" in Path(f"/proc/{follower}/cmdline").read_bytes())
    os.kill(follower, signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    # It may die before it is up (one line, exit 2) or while it runs (the ledger still balances).
    assert (run.returncode == 2 and err.startswith("teleop: ")) or balanced(json.loads(out)["setpoints"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_split_arrangement_in_order(number: signal.Signals) -> None:
    run = start("--duration", "600", "--json", "--arrangement", "split")
    until(lambda: len(children(run.pid)) == 4)
    family = children(run.pid)
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    # The nodes may not be up yet: then it is one line and exit 2.
    assert (run.returncode == 2 and err.startswith("teleop: ")) or balanced(json.loads(out)["setpoints"])
    assert not any(map(alive, family))


def test_a_killed_split_run_leaves_nothing_behind() -> None:
    run = start("--duration", "600", "--arrangement", "split")
    until(lambda: len(children(run.pid)) == 4)
    family = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)
    until(lambda: not any(map(alive, family)))


@pytest.mark.parametrize("choice", [["--arrangement", "ring"], ["--guard", "taut"], ["--duration", "-1"]], ids=" ".join)
def test_what_is_not_there_is_refused(choice: list[str]) -> None:
    run = start(*choice)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 2 and choice[1] in err
