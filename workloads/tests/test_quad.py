"""The quadruped: virtual time for what must be the same each time, real processes for what only they can do."""

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("mujoco", reason="the package mujoco is not installed")

from workloads.tests.processes import ROOT, alive, children, in_time, start, until

# Trotting, one diagonal in the air.
FAILS_S = 2.1


def quad(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "workloads.quad", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


def virtual(*arguments: object) -> dict[str, Any]:
    done = quad("--virtual", "--json", *arguments)
    return {**json.loads(done.stdout), "exit": done.returncode}


def fallen(name: str, seed: int = 1, seconds: float = 1.6, rate: int = 1000) -> dict[str, Any]:
    where = ("--duration", FAILS_S + seconds, "--at", FAILS_S, "--rate", rate, "--seed", seed)
    return virtual("--failure", name, *where)


@pytest.fixture(scope="module")
def dropped() -> dict[str, Any]:
    return dict(fallen("power-cut")["fall"])


def test_it_stands_up_and_trots_in_place() -> None:
    told = virtual("--duration", 3.5)
    host = told["host"]
    assert told["exit"] == 0 and told["stood"] and host["cause"] is None and host["missing"] == 0
    assert 0.21 < told["least_height_m"] <= told["height_m"] < 0.25
    # To the degree, as the servos tell it: far from too hot.
    assert 25.0 <= host["warmest_c"] < 60.0


def test_the_same_run_is_the_same() -> None:
    assert fallen("bus-cut", seconds=0.1) == fallen("bus-cut", seconds=0.1)


def test_dropping_all_power_is_a_fall(dropped: dict[str, Any]) -> None:
    assert dropped["impact_m_s"] > 1.0 and dropped["damped_after_s"] is None


LOWERS = ["host-killed", "host-hung", "host-stalled", "servo-overheat", "fault-storm", "bus-cut", "replies-lost"]


@pytest.mark.parametrize("rate", [400, 1000])
@pytest.mark.parametrize("name", LOWERS)
def test_after_each_failure_the_robot_lowers_itself(name: str, rate: int, dropped: dict[str, Any]) -> None:
    told = fallen(name, rate=rate)
    fall = told["fall"]
    assert told["stood"] and told["right"] and told["exit"] == 0, told["reason"]
    assert fall["impact_m_s"] < 0.4 * dropped["impact_m_s"]
    assert fall["peak_body_n"] < 0.4 * dropped["peak_body_n"]
    # It comes to rest on its belly, and nothing pushes it up on the way: not the setpoints that servos still have, beyond the
    # gait's own bounce, and nothing at all once they damp.
    assert told["height_m"] < 0.12
    assert fall["following_up_m_s"] < fall["usual_up_m_s"] + 0.02
    assert fall["damped_rise_m"] < 0.001
    assert fall["energy_rise_j"] < 0.1


def test_a_gap_of_replies_below_the_limit_is_survived() -> None:
    told = fallen("reply-gap")
    assert told["exit"] == 0 and told["host"]["cause"] is None and told["host"]["missing"] == 4
    assert told["height_m"] > 0.2


def test_a_robot_that_does_not_stand_when_the_failure_begins_is_no_trial() -> None:
    done = quad("--virtual", "--duration", 3, "--failure", "host-killed", "--at", 0.5)
    first = done.stdout.splitlines()[0]
    assert done.returncode == 1 and "did not stand when the failure began" in first


def test_a_failed_robot_says_why_in_the_first_line() -> None:
    # Its host was given a gait that it reaches, and then servo 2 is too hot: what a failure leaves is not what was asked.
    done = quad("--virtual", "--duration", 2.5, "--failure", "servo-overheat", "--at", 0.2)
    assert done.returncode == 1 and done.stdout.startswith("quad: failed: ")
    assert "servo 2 reports a fault" in done.stdout.splitlines()[0]


def test_live_a_killed_host_leaves_servos_that_the_next_one_does_not_clear() -> None:
    done = in_time(
        lambda: quad("--duration", "4", "--failure", "host-killed", "--at", "2.5", "--json"),
        lambda done: not json.loads(done.stdout)["stood"],
    )
    told = json.loads(done.stdout)
    assert told["host"] is None and told["stood"], done.stderr
    assert "is in mode timeout" in told["second_host"]["refused"]


def test_a_simulator_that_is_stopped_looks_like_no_failure() -> None:
    process = start("quad", "--duration", "12", "--json")
    until(lambda: process.poll() is not None or len(children(process.pid)) == 1)
    host = children(process.pid)[0]
    # Ten times as long as the servos' time-out, again and again, while the host stays.
    for _ in range(3):
        os.kill(process.pid, signal.SIGSTOP)
        begun = cpu_ticks(host)
        subprocess.run(["sleep", "1"], check=True)
        # Nor does it burn the CPU that the simulator may need.
        assert cpu_ticks(host) - begun < 0.5 * os.sysconf("SC_CLK_TCK")
        os.kill(process.pid, signal.SIGCONT)
        subprocess.run(["sleep", "0.3"], check=True)
    out, err = process.communicate(timeout=600)
    told = json.loads(out)
    # A machine so busy that the host itself does not run for 20 ms is another matter.
    assert told["host"]["cause"] in (None, "the host did not run"), err
    slips = told["simulator"]["slips"]
    # The first stop may have come before the clock began.
    assert slips["total_s"] > 1.9 and slips["max_s"] > 0.9
    # And yet the run is no evidence, because the machine did not run it as it must.
    assert not told["valid"] and process.returncode == 4


def cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_ended_workload_leaves_no_process(number: signal.Signals) -> None:
    process = start("quad", "--duration", "600")
    until(lambda: process.poll() is not None or len(children(process.pid)) == 1)
    assert process.poll() is None
    programs = children(process.pid)
    os.kill(process.pid, number)
    process.communicate(timeout=600)
    until(lambda: not any(map(alive, programs)))


WRONG = [
    ["--failure", "rain"],
    ["--rate", "9"],
    ["--duration", "-1"],
    ["--failure", "bus-cut", "--duration", "3", "--at", "4"],
]


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def test_what_is_not_there_is_refused(wrong: list[str]) -> None:
    done = quad(*wrong)
    assert done.returncode == 2 and done.stdout == "" and wrong[-1] in done.stderr


def test_without_mujoco_the_package_is_named() -> None:
    # -S: without the environment's packages; the program itself is found in target/ or beside the interpreter.
    command = [sys.executable, "-S", "-m", "workloads.quad"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "pip install 'mujoco" in done.stderr
