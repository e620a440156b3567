"""The quadruped: virtual time for what must be the same each time, real processes for what only they can do."""

import json
import os
import signal
from typing import Any

import pytest

pytest.importorskip("mujoco", reason="the package mujoco is not installed")

import mujoco

from workloads.quad.failures import PERIOD_S, failure
from workloads.quad.physics import FOLDED, MODEL
from workloads.quad.run import Options, run
from workloads.tests.processes import alive, children, start, until

FAILS_S = 2.0 + 0.2 * PERIOD_S


def fallen(name: str, seed: int = 1, seconds: float = 1.6) -> dict[str, Any]:
    """A trotting robot, one diagonal in the air, to which this happens."""
    options = Options(FAILS_S + seconds, 1000.0, "trot", failure(name, FAILS_S, seed), virtual=True, seed=seed)
    return run(options)


@pytest.fixture(scope="module")
def dropped() -> dict[str, Any]:
    return dict(fallen("power-cut")["fall"])


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


def test_a_failure_that_meets_no_standing_robot_is_said() -> None:
    # Half a second after the start it still gets up.
    told = run(Options(0.6, 400.0, "stand", failure("host-killed", 0.5, 1), virtual=True))
    assert not told["stood"] and told["fall"]["before_height_m"] < 0.18


def test_the_same_run_is_the_same() -> None:
    assert fallen("bus-cut", seconds=0.1) == fallen("bus-cut", seconds=0.1)


def test_dropping_all_power_is_a_fall(dropped: dict[str, Any]) -> None:
    assert dropped["impact_m_s"] > 1.0 and dropped["damped_after_s"] is None


@pytest.mark.parametrize("name", ["host-killed", "servo-overheat", "bus-cut", "replies-lost"])
def test_whatever_fails_the_robot_lowers_itself(name: str, dropped: dict[str, Any]) -> None:
    told = fallen(name)
    fall = told["fall"]
    assert told["stood"] and 0.21 < fall["before_height_m"] < 0.25
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
    out, err = start("quad", "--duration", "3.4", "--failure", "host-killed", "--at", "2", "--json").communicate(
        timeout=600
    )
    told = json.loads(out)
    assert told["host"] is None and told["fall"]["damped_after_s"] is not None, err
    assert "is in mode" in told["second_host"]["refused"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_the_workload_ends_its_programs(number: signal.Signals) -> None:
    quad = start("quad", "--duration", "600")
    until(lambda: quad.poll() is not None or len(children(quad.pid)) == 2)
    assert quad.poll() is None
    programs = children(quad.pid)
    os.kill(quad.pid, number)
    quad.communicate(timeout=600)
    until(lambda: not any(map(alive, programs)))


@pytest.mark.parametrize("wrong", [["--failure", "rain"], ["--rate", "9"], ["--duration", "-1"]], ids=" ".join)
def test_what_is_not_there_is_refused(wrong: list[str]) -> None:
    quad = start("quad", *wrong)
    out, err = quad.communicate(timeout=600)
    assert quad.returncode == 2 and out == "" and wrong[1] in err
