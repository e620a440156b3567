"""The quadruped: virtual time for what must be the same each time, real processes for what only they can do."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mujoco", reason="the package mujoco is not installed")

import mujoco

from workloads.quad.failures import PERIOD_S, failure
from workloads.quad.physics import FOLDED, MODEL
from workloads.quad.run import Options, run

ROOT = Path(__file__).resolve().parents[2]
FAILS_S = 2.0 + 0.2 * PERIOD_S


def fallen(name: str, seed: int = 1, seconds: float = 1.6) -> dict[str, Any]:
    """A trotting robot, one diagonal in the air, to which this happens."""
    options = Options(FAILS_S + seconds, 1000.0, "trot", failure(name, FAILS_S, seed), virtual=True, seed=seed)
    return run(options)


@pytest.fixture(scope="module")
def dropped() -> dict[str, Any]:
    return dict(fallen("power-cut")["fall"])


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "workloads.quad", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(pid: int) -> list[int]:
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_model_weighs_10_kg_and_begins_on_the_ground() -> None:
    model = mujoco.MjModel.from_xml_path(str(MODEL))
    assert sum(model.body_mass) == pytest.approx(10.0)
    data = mujoco.MjData(model)
    data.qpos[7:] = FOLDED * 4
    mujoco.mj_forward(model, data)
    feet = [float(data.geom(f"foot{leg}").xpos[2]) for leg in (1, 2, 3, 4)]
    # Their centres are a radius above the ground.
    assert feet == pytest.approx([0.02] * 4, abs=2e-3)


def test_it_stands_up_and_trots_in_place() -> None:
    told = run(Options(3.5, 400.0, "trot", failure("none", 0.0, 1), virtual=True))
    host = told["host"]
    assert host["stood"] and host["cause"] is None and host["missing"] == 0
    assert 0.21 < told["height_m"] < 0.25
    # To the degree, as the servos tell it: far from too hot.
    assert 25.0 <= host["warmest_c"] < 60.0


def test_the_same_run_is_the_same() -> None:
    assert fallen("bus-cut", seconds=0.1) == fallen("bus-cut", seconds=0.1)


def test_dropping_all_power_is_a_fall(dropped: dict[str, Any]) -> None:
    assert dropped["impact_m_s"] > 1.0 and dropped["damped_after_s"] is None


@pytest.mark.parametrize("name", ["host-killed", "servo-overheat", "bus-cut", "replies-lost"])
def test_whatever_fails_the_robot_lowers_itself(name: str, dropped: dict[str, Any]) -> None:
    told = fallen(name)
    fall = told["fall"]
    assert fall["damped_after_s"] <= {"host-killed": 0.102, "bus-cut": 0.102}.get(name, 0.02)
    assert fall["impact_m_s"] < 0.4 * dropped["impact_m_s"]
    assert fall["peak_body_n"] < 0.4 * dropped["peak_body_n"]
    # It comes to rest on its belly, and nothing pushes it up on the way: not the setpoints that servos still have, beyond the
    # gait's own bounce, and nothing at all once they damp.
    assert told["height_m"] < 0.12
    assert fall["following_up_m_s"] < fall["usual_up_m_s"] + 0.02
    assert fall["damped_rise_m"] < 0.001
    assert fall["energy_rise_j"] < 0.1


def test_a_killed_host_leaves_servos_that_the_next_one_does_not_clear() -> None:
    out, err = start("--duration", "3.4", "--failure", "host-killed", "--at", "2", "--json").communicate(timeout=120)
    told = json.loads(out)
    assert told["host"] is None and told["fall"]["damped_after_s"] is not None, err
    assert "is in mode" in told["second_host"]["refused"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_workload_ends_its_programs(number: signal.Signals) -> None:
    quad = start("--duration", "600")
    deadline = time.monotonic() + 60
    while len(children(quad.pid)) < 2:
        assert time.monotonic() < deadline and quad.poll() is None
        time.sleep(0.01)
    programs = children(quad.pid)
    os.kill(quad.pid, number)
    quad.communicate(timeout=60)
    while any(map(alive, programs)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("wrong", [["--failure", "rain"], ["--rate", "9"], ["--duration", "-1"]], ids=" ".join)
def test_what_is_not_there_is_refused(wrong: list[str]) -> None:
    quad = start(*wrong)
    out, err = quad.communicate(timeout=60)
    assert quad.returncode == 2 and out == "" and wrong[1] in err
