"""The measures of the teleoperation proof, on motions whose answers are known."""

import argparse
import json
import math
from dataclasses import fields
from pathlib import Path

import conditions
import hour
import motion
import numpy as np
import page
import proof
import pytest
import trial

from workloads.teleop.arms import FR20, HOME_DEG
from workloads.teleop.journal import COMMAND, STEP

RADIUS_DEG, LAP_S = 2.0, 0.5


def write(folder: Path, lag_ms: int, period_s: float) -> None:
    """A hand that swings joint 1, and an arm that does the same so much later; commands every `period_s`."""

    def angles(ms: float) -> list[float]:
        return [float(HOME_DEG[0]) + RADIUS_DEG * math.sin(2 * math.pi * ms / 1000 / LAP_S), *map(float, HOME_DEG[1:])]

    for arm, lag in (("FR3", 0), ("FR20", lag_ms)):
        steps = [(ms * 1_000_000, angles(ms - lag)) for ms in range(6000)]
        np.array(steps, STEP).tofile(folder / f"{arm}.steps")
    commands = [(int(n * period_s * 1e9), n, period_s, angles(n * period_s * 1000)) for n in range(int(6 / period_s))]
    for arm, taken in (("FR3", []), ("FR20", commands)):
        np.array(taken, COMMAND).tofile(folder / f"{arm}.commands")


def test_a_pure_delay_is_found_and_leaves_the_path_whole(tmp_path: Path) -> None:
    write(tmp_path, lag_ms=37, period_s=0.008)
    moved = motion.measure(tmp_path, "split")
    assert moved.delay_ms == 37 and moved.path_mm < 1e-6
    arm_m = float(np.linalg.norm(FR20.tool_m(HOME_DEG)[:2]))
    amplitude_mm = 1000 * arm_m * math.radians(RADIUS_DEG)
    # Two sines a phase apart: their difference has the amplitude 2 A sin(phase/2).
    expected = 2 * amplitude_mm * math.sin(math.pi * 0.037 / LAP_S) / math.sqrt(2)
    assert moved.tracking_mm == pytest.approx(expected, rel=0.02)


def test_acceleration_jerk_and_steps_are_those_of_the_motion(tmp_path: Path) -> None:
    write(tmp_path, lag_ms=0, period_s=0.008)
    moved = motion.measure(tmp_path, "split")
    arm_m = float(np.linalg.norm(FR20.tool_m(HOME_DEG)[:2]))
    omega, amplitude_m = 2 * math.pi / LAP_S, arm_m * math.radians(RADIUS_DEG)
    assert moved.acceleration_m_s2 == pytest.approx(amplitude_m * omega**2, rel=0.03)
    assert moved.jerk_m_s3 == pytest.approx(amplitude_m * omega**3, rel=0.03)
    assert moved.step_m_s == pytest.approx(amplitude_m * omega, rel=0.01)
    assert moved.step_deg_s == pytest.approx(RADIUS_DEG * omega, rel=0.01)


def test_the_tools_way_is_that_of_the_workload() -> None:
    joints = np.random.default_rng(5).uniform(FR20.lower_deg, FR20.upper_deg, (50, 6))
    assert np.allclose(motion.tool_m(joints), [FR20.tool_m(row) for row in joints])


def test_the_hour_says_with_which_times_it_ran() -> None:
    result = {"guard": {"stale_ms": 500, "age_max_ms": 500}, "heartbeat_lapse_ms": 500}
    checks = {check.what: check for check in hour.settings(result)}
    assert len(checks) == 3
    assert all((check.figure, check.holds) == ("500 ms", False) for check in checks.values())
    assert [check.limit for check in checks.values()] == ["50 ms", "50 ms", "100 ms"]


def test_four_rounds_carry_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "under", lambda _: [None])
    monkeypatch.setattr(page, "of", lambda *_: [None] * 4)
    assert "no interval" in page.intervals([])
    monkeypatch.setattr(page, "of", lambda *_: [None] * 10)
    assert page.intervals([]) == "with 90 % intervals over rounds"


def test_what_the_right_arrangement_makes_worse_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "of", lambda _, side, __: [{"source": 16.0, "right": 22.0}[side]] * 2)
    monkeypatch.setattr(page, "FIGURES", [("end to end, max", float, page.milliseconds)])
    said = page.worse([], conditions.SOURCE)
    assert said.startswith("Worse in *fixed* than in *original*: end to end, max: 16.00 ms → 22.00 ms (×1.38")


def test_a_run_that_is_no_evidence_is_repeated_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = trial.Trial("right", "source", [], {}, [], None, Path())  # type: ignore[arg-type]
    found = [None, None, one]
    monkeypatch.setattr(trial, "_run", lambda *_: found.pop(0))
    assert trial.run("right", conditions.SOURCE, 5.0, "taut", Path()).invalid == 2
    monkeypatch.setattr(trial, "_run", lambda *_: None)
    with pytest.raises(RuntimeError, match="held the arms up"):
        trial.run("right", conditions.SOURCE, 5.0, "taut", Path())


def result(arrangement: str, latency_ms: float) -> trial.Trial:
    setpoints = {"produced": 1, "applied": 1, "in_flight": 0, "unexplained": 0, "dropped": {}, "modified": {}}
    told = {"setpoints": setpoints, "guard": {"trips": []}, "stops": [], "holds": 0, "duration_s": 20, "real_time": 1.0}
    moved = motion.Motion(*(0.0 for _ in fields(motion.Motion)))
    return trial.Trial(arrangement, "source", [int(1e6 * latency_ms)], told, [], moved, Path())


def test_a_round_without_a_side_is_left_out_and_a_missing_fixed_loop_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    came = []

    def run(arrangement: str, *_: object) -> trial.Trial:
        came.append(arrangement)
        if len(came) == 3:
            raise RuntimeError("fell over")
        return result(arrangement, 1.0 if arrangement == "right" else 10.0)

    monkeypatch.setattr(trial, "run", run)
    found = page.Found(3, "run")
    options = argparse.Namespace(under=["source"], max_minutes=60, keep=Path(), seconds=1.0, taut="taut")
    assert len(list(proof.rounds(found, options))) == 3
    # Each round begins with the other side; the second ended with its first.
    assert came == ["source", "right", "right", "source", "right"]
    assert found.left == [("right", "round 2, fell over")] and len(found.trials) == 4
    checks = {check.what: check.holds for check in page.checks(found)}
    assert checks["p99, fixed by original, under source"] and not checks["runs of the fixed loop without a result"]
    text = page.page(found, minutes=1.0)
    assert "- **Left out**: round 2, fell over.\n" in text
    # The makers dropped 71 %.
    assert "\n| p99, fixed by original | ×0.2 | ×0.10 (0.10 to 0.10) |\n" in text
    assert "\n| end to end, p99 | 10.00 ms → 1.00 ms |\n" in text and "**Not reproduced**: the drops" in text
    assert "| setpoints dropped | 71 % | 0.00 % | 0.00 % |\n" in page.results(found, minutes=1.0)


def test_what_the_makers_published_and_is_seen_otherwise_here_is_named() -> None:
    calm, tripped = result("source", 1.0), result("source", 1.0)
    tripped.result["guard"] = {"trips": [{"is_false": True}, {"is_false": False}, {"is_false": True}]}
    (said,) = page.unlike([calm, tripped])
    assert said.startswith("**Not reproduced**: the drops of the original's makers, 0.00 % here against 71 %.")
    assert "without effect" in said and "3 trips, 2 of them false, in 1 of 2 runs of the original" in said
    assert "stops by the guard, which did not trip in 1 runs" in page.unlike([calm])[0]
    for one in (calm, tripped):
        one.result["setpoints"]["produced"] = 4
    assert page.unlike([calm, tripped])[0].startswith("**Stops by the guard**") and page.unlike([]) == []


def test_a_run_in_which_the_arm_was_stopped_is_a_result_and_misses_its_limit() -> None:
    stopped = result("right", 1.0)
    stopped.result.update(stops=["guard_latched"], stopped="guard_latched", failures=[])
    assert trial.counted(trial.FAILED, json.dumps(stopped.result)) == stopped.result
    found = page.Found(1, "run", trials=[result("source", 10.0), stopped])
    checks = {check.what: check for check in page.checks(found)}
    check = checks["false trips, latched stops and others, under source"]
    assert (check.figure, check.holds) == ("0, 1 and 0", False)
    # A failure is none, nor is what has no account.
    failed = stopped.result | {"failures": ["the FR20 ended during the run, by signal 9"]}
    assert trial.counted(trial.FAILED, json.dumps(failed)) is None
    assert trial.counted(trial.FAILED, "") is None and trial.counted(2, json.dumps(stopped.result)) is None


def test_a_round_that_would_not_end_in_time_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "run", lambda arrangement, *_: result(arrangement, 1.0))
    monkeypatch.setattr(proof.time, "monotonic", iter(range(0, 10_000, 50)).__next__)
    found = page.Found(10, "run")
    options = argparse.Namespace(under=["source"], max_minutes=4, keep=Path(), seconds=1.0, taut="taut")
    # A round is 50 s by this clock, and 50 s pass before the next.
    assert len(list(proof.rounds(found, options))) == found.done == 2


def test_a_run_that_does_not_end_is_interrupted_with_what_it_started() -> None:
    code, _, why = trial.ended(["sh", "-c", "sleep 1000 & wait"], 0.5)
    assert code is None and "did not end" in why
