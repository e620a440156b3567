"""The ledger, and whole runs of the workload with its processes."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("taut", reason="the taut module is not installed")

from taut.guard import REASONS

from workloads.teleop import journal
from workloads.teleop.guards import REARM_NS
from workloads.teleop.ledger import Ledger
from workloads.teleop.safety import Limits
from workloads.tests.processes import alive, children, in_time, start, until

RIGHT = ["--arrangement", "split", "--receiver", "framed", "--validator", "clamp", "--guard", "taut"]


def balanced(setpoints: dict[str, Any]) -> bool:
    ended = setpoints["applied"] + sum(setpoints["dropped"].values()) + setpoints["in_flight"]
    return bool(setpoints["unexplained"] == 0 and setpoints["produced"] == ended)


def ended(code: int, out: str, err: str) -> dict[str, Any]:
    """The result of a run without a failure, on however busy a machine: 4 says that it could not run the arms in real time, 1 that a part
    had no CPU for so long that the arm was stopped for good, rightly."""
    assert out, err
    result: dict[str, Any] = json.loads(out)
    assert code == (4 if not result["valid"] else 1 if result["stopped"] else 0), err
    return result


def test_ledger_balances_and_finds_a_second_outcome() -> None:
    ledger = Ledger()
    first, second, third = ledger.produce(), ledger.produce(), ledger.produce()
    ledger.applied(first)
    ledger.drop(second, "velocity_limit")
    assert ledger.balance() == {
        "produced": 3,
        "applied": 1,
        "dropped": {"velocity_limit": 1},
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
        ["--receiver", "sdk", "--wire", "rough", "--companions", "all"],
        ["--validator", "clamp", "--guard", "taut"],
        ["--arrangement", "split", "--validator", "reject"],
        RIGHT,
    ],
    ids=" ".join,
)
def test_a_run_of_three_seconds_balances(choice: list[str]) -> None:
    run = start("teleop", "--duration", "3", "--json", *choice)
    out, err = run.communicate(timeout=600)
    result = ended(run.returncode, out, err)
    assert balanced(result["setpoints"])
    # A machine that is too busy to hear the arm for 50 ms has its motion stopped, rightly; no other cause will do.
    is_deaf = any(trip["state"] == "stale" for trip in result["guard"]["trips"])
    assert result["setpoints"]["produced"] > 0 and (result["setpoints"]["applied"] > 0 or is_deaf)
    assert result["setpoints"]["in_flight"] == 0
    assert result["failures"] == []
    assert set(result["setpoints"]["dropped"]) <= set(REASONS)
    if "clamp" in choice:
        assert not {"velocity_limit", "validator_timing_bug"} & set(result["setpoints"]["dropped"])
    if "rough" in choice:
        assert result["leader_stream"]["lost_reads"] > 0


def test_the_loop_made_right_moves_the_arm_and_is_watched(tmp_path: Path) -> None:
    def moved() -> tuple[dict[str, Any], Path]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        run = start("teleop", "--duration", "3", "--json", "--journal", str(folder), *RIGHT)
        out, err = run.communicate(timeout=600)
        return ended(run.returncode, out, err), folder

    # A guard that gets no frame of the arm for 50 ms stops its motion, rightly.
    result, folder = in_time(moved, lambda of: any(trip["state"] == "stale" for trip in of[0]["guard"]["trips"]))
    # The machine may be busy; what must hold is that all is accounted for, and that no jitter looks like speed.
    assert result["setpoints"]["silent"] == 0 and result["setpoints"]["balances"] > 0
    assert result["guard"]["counters"]["frames"] > 100
    assert not [trip for trip in result["guard"]["trips"] if trip["is_false"]]
    steps, commands = journal.read(folder, "FR20")
    assert len(commands) == result["commands"] and np.ptp(steps["joints_deg"], axis=0).max() > 1.0
    turned = np.abs(np.diff(commands["joints_deg"], axis=0)).max(axis=1)
    assert (turned <= Limits().joint_speed_deg_s * commands["period_s"][1:] + 1e-6).all()


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["hung", "killed"])
def test_a_hung_or_killed_guard_stops_motion(number: signal.Signals) -> None:
    run, guard, follower = under_way()
    os.kill(guard, number)
    turns_on(follower)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    result = json.loads(out)
    assert result["stops"] == ["guard_latched"], err
    assert result["setpoints"]["dropped"]["guard_latched"] > 0
    assert balanced(result["setpoints"])
    assert run.returncode == (1 if result["valid"] else 4)


def test_a_stop_that_stays_latched_fails_the_run() -> None:
    run, guard, follower = under_way()
    os.kill(guard, signal.SIGSTOP)
    turns_on(follower)
    os.kill(guard, signal.SIGCONT)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    result = ended(run.returncode, out, err)
    # No part failed, and each setpoint has its outcome: the stop alone makes it a failure.
    assert (result["stopped"], result["failures"]) == ("guard_latched", []) and balanced(result["setpoints"])


def test_an_operator_has_a_stopped_arm_go_on(tmp_path: Path) -> None:
    run, guard, follower = under_way("--journal", str(tmp_path), "--operator")
    os.kill(guard, signal.SIGSTOP)
    turns_on(follower)
    os.kill(guard, signal.SIGCONT)

    def gaps_ns() -> np.ndarray:
        return np.diff(journal.read(tmp_path, "FR20")[1]["t_ns"])

    # At least a second without a command, and then commands again.
    until(lambda: bool(gaps_ns().max(initial=0) >= REARM_NS))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    result = ended(run.returncode, out, err)
    # It may stop once more on a busy machine; a stop that was reset is no failure.
    assert result["stops"][0] == "guard_latched" and (result["stopped"] is None or len(result["stops"]) > 1), err
    # The frames waited for the guard: it finds no silence in them, and no speed. Only a stream that was late finds it stale.
    assert {trip["state"] for trip in result["guard"]["trips"]} <= {"stale"}
    assert result["setpoints"]["dropped"]["guard_latched"] > 0
    assert balanced(result["setpoints"]) and result["failures"] == []


def test_arms_that_the_machine_does_not_run_cost_the_loop_no_time() -> None:
    def stopped() -> dict[str, Any]:
        run, _, follower = under_way()
        arms = part(run.pid, "arm")
        assert len(arms) == 2
        for arm in arms:
            os.kill(arm, signal.SIGSTOP)
        # Longer than the guard waits for a frame, or the follower for the guard; shorter than it takes for an arm to be gone.
        time.sleep(0.5)
        for arm in arms:
            os.kill(arm, signal.SIGCONT)
        turns_on(follower)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=600)
        assert out, err
        result: dict[str, Any] = json.loads(out)
        return result

    # The guard, too, may have no CPU for as long as it waits for a frame.
    result = in_time(stopped, lambda result: bool(result["stops"] or result["holds"] or result["guard"]["trips"]))
    assert sum(arm["slips"]["total_s"] for arm in result["simulator"].values()) >= 0.4
    assert (result["stops"], result["holds"], result["guard"]["trips"]) == ([], 0, [])
    assert balanced(result["setpoints"]) and result["setpoints"]["dropped"] == {}


@pytest.mark.parametrize("role", ["leader", "follower", "guard"])
def test_a_part_that_pauses_for_100_ms_loses_no_setpoint(role: str, tmp_path: Path) -> None:
    def paused() -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        run = start("teleop", "--duration", "600", "--json", "--journal", str(folder), *RIGHT)
        until(lambda: moved(folder))
        pid = part(run.pid, role)[0]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(pid, signal.SIGCONT)
        turns_on(part(run.pid, "follower")[0])
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=600)
        return ended(run.returncode, out, err)

    # The machine may hold it up for longer, or another part.
    result = in_time(paused, lambda result: bool(result["stops"] or result["setpoints"]["dropped"]))
    assert (result["stops"], result["setpoints"]["dropped"]) == ([], {})
    assert result["setpoints"]["applied"] == result["setpoints"]["produced"]


def moved(folder: Path) -> bool:
    """Whether the follower's arm has moved, by its journal: setpoints come."""
    if not (folder / "FR20.commands").exists():
        return False
    joints_deg = journal.read(folder, "FR20")[0]["joints_deg"]
    return len(joints_deg) > 0 and bool(np.ptp(joints_deg, axis=0).max() > 1.0)


def test_an_operator_needs_what_leads_the_arm_back() -> None:
    run = start("teleop", "--operator")
    out, err = run.communicate(timeout=600)
    assert run.returncode == 2 and "--validator clamp" in err, out


def under_way(*options: str) -> tuple[subprocess.Popen[str], int, int]:
    """The loop made right, once it has turned for a while; its guard, and its follower."""
    run = start("teleop", "--duration", "600", "--json", *options, *RIGHT)
    until(lambda: bool(part(run.pid, "guard") and part(run.pid, "follower")))
    guard, follower = part(run.pid, "guard")[0], part(run.pid, "follower")[0]
    until(lambda: voluntary_switches(follower) > 300)
    return run, guard, follower


def part(pid: int, role: str) -> list[int]:
    """The child that has this role, once it has begun."""
    words = {child: Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in children(pid)}
    return [child for child, line in words.items() if line[0].endswith(b"/taut-teleop") and role.encode() in line]


def turns_on(pid: int) -> None:
    """Returns when its loop has turned for so long that it has noticed what is missing."""
    before = voluntary_switches(pid)
    until(lambda: voluntary_switches(pid) > before + 300)


def voluntary_switches(pid: int) -> int:
    """How often it waited: a sign that its loop turns."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_everything_in_order(number: signal.Signals) -> None:
    run = start("teleop", "--duration", "600", "--json")
    until(lambda: len(children(run.pid)) == 2)
    controllers = children(run.pid)
    run.send_signal(number)
    out, err = run.communicate(timeout=600)
    # The second arm may not be up yet: then it is one line and exit 2.
    is_early = run.returncode == 2 and err.startswith("teleop: ")
    assert is_early or balanced(ended(run.returncode, out, err)["setpoints"])
    assert not any(map(alive, controllers))


def test_a_killed_run_leaves_no_controller_behind() -> None:
    run = start("teleop", "--duration", "600")
    until(lambda: len(children(run.pid)) == 2)
    controllers = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=600)
    until(lambda: not any(map(alive, controllers)))


def test_a_dead_follower_ends_setpoints_as_transport_errors() -> None:
    run = start("teleop", "--duration", "2", "--json")
    until(lambda: len(children(run.pid)) == 2)
    follower = children(run.pid)[1]
    until(lambda: b"FR20" in Path(f"/proc/{follower}/cmdline").read_bytes())
    os.kill(follower, signal.SIGKILL)
    out, err = run.communicate(timeout=600)
    # It may die before it is up (one line, exit 2) or while it runs (the ledger still balances).
    if run.returncode == 2:
        assert err.startswith("teleop: ")
    else:
        result = json.loads(out)
        assert run.returncode == (1 if result["valid"] else 4) and balanced(result["setpoints"])


@pytest.mark.parametrize("choice", [[], RIGHT], ids=["source", "split"])
def test_an_arm_that_dies_during_a_run_fails_it(choice: list[str], tmp_path: Path) -> None:
    run = start("teleop", "--duration", "600", "--json", "--journal", str(tmp_path), *choice)
    until(lambda: moved(tmp_path))
    arm = next(pid for pid in children(run.pid) if b"FR20" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(arm, signal.SIGKILL)
    until(lambda: not alive(arm))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=600)
    result = json.loads(out)
    assert result["failures"][0] == "the FR20 ended during the run, by signal 9", err
    assert run.returncode == (1 if result["valid"] else 4) and balanced(result["setpoints"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_split_arrangement_in_order(number: signal.Signals) -> None:
    run = start("teleop", "--duration", "600", "--json", *RIGHT)
    until(lambda: len(children(run.pid)) == 6)
    family = children(run.pid)
    run.send_signal(number)
    out, err = run.communicate(timeout=600)
    # The nodes may not be up yet: then it is one line and exit 2.
    assert (run.returncode == 2 and err.startswith("teleop: ")) or balanced(json.loads(out)["setpoints"])
    assert not any(map(alive, family))


def test_a_killed_split_run_leaves_nothing_behind() -> None:
    run = start("teleop", "--duration", "600", *RIGHT)
    until(lambda: len(children(run.pid)) == 6)
    family = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=600)
    until(lambda: not any(map(alive, family)))


@pytest.mark.parametrize(
    "choice", [["--arrangement", "ring"], ["--guard", "loose"], ["--duration", "-1"]], ids=" ".join
)
def test_what_is_not_there_is_refused(choice: list[str]) -> None:
    run = start("teleop", *choice)
    _, err = run.communicate(timeout=600)
    assert run.returncode == 2 and choice[1] in err


def test_names_of_threads_and_processes_tell_their_role(tmp_path: Path) -> None:
    source = {
        *("teleop", "leader-stream", "follower-stream", "ssm-leader", "ssm-follower"),
        *("leader-node", "follower-node", "follower-write", "annotate", "trace", "record", "broadcast"),
    }
    split = {"arm-leader", "arm-follower", "teleop-leader", "teleop-follower", "teleop-guard", "teleop-desk"}
    # As under a recorder, when taut names the threads.
    run = start("teleop", "--duration", "600", "--companions", "all", TAUT_SESSION=str(tmp_path))
    # Beside numpy's own.
    until(lambda: called(f"/proc/{run.pid}/task/*/comm") >= source)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=600)
    run = start("teleop", "--duration", "600", "--companions", "all", *RIGHT)
    until(lambda: {name for child in children(run.pid) for name in called(f"/proc/{child}/comm")} == split)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=600)


def called(pattern: str) -> set[str]:
    """The names in these files; a thread that ends meanwhile has none."""
    names = set()
    for path in Path("/").glob(pattern[1:]):
        with contextlib.suppress(OSError):
            names.add(path.read_text().strip())
    return names
