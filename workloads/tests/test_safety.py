"""The two validators, in virtual time."""

import numpy as np
import pytest

from workloads.teleop.arms import FR20, HOME_DEG
from workloads.teleop.safety import PERIOD_S, ClampValidator, Limits, RejectValidator

MS = 1_000_000
STEP_DEG = np.array([0.8, 0.0, 0.0, 0.0, 0.0, 0.0])  # 40 deg/s at 50 Hz, limit 70


def test_steady_motion_within_the_limits_passes() -> None:
    validator = RejectValidator(FR20, Limits(), HOME_DEG)
    for i in range(1, 20):
        assert validator.validate(HOME_DEG + i * STEP_DEG, i * 20 * MS, i * 20 * MS).reason is None


def test_the_same_motion_is_rejected_when_a_late_setpoint_is_followed_closely() -> None:
    validator = RejectValidator(FR20, Limits(), HOME_DEG)
    arrivals_ms = [20, 40, 72, 80, 100]  # the third came 12 ms late, the fourth in time
    reasons = [
        validator.validate(HOME_DEG + i * STEP_DEG, t * MS, i * 20 * MS).reason for i, t in enumerate(arrivals_ms, 1)
    ]
    assert reasons == [None, None, None, "validator_timing_bug", None]


def test_speed_of_the_tool_is_checked_too() -> None:
    limits = Limits(joint_speed_deg_s=1e9)
    validator = RejectValidator(FR20, limits, HOME_DEG)
    validator.validate(HOME_DEG + STEP_DEG, 20 * MS, 20 * MS)
    assert validator.validate(HOME_DEG + 10 * STEP_DEG, 40 * MS, 40 * MS).reason == "velocity_limit"


@pytest.mark.parametrize("kind", [RejectValidator, ClampValidator])
def test_the_same_setpoint_again_is_a_duplicate_and_nan_is_malformed(kind: type) -> None:
    validator = kind(FR20, Limits(), HOME_DEG)
    assert validator.validate(HOME_DEG + STEP_DEG, 20 * MS, 0).reason is None
    assert validator.validate(HOME_DEG + STEP_DEG, 40 * MS, 0).reason == "duplicate"
    assert validator.validate(np.full(6, np.nan), 60 * MS, 0).reason == "malformed"


def test_joint_limit_and_work_area_are_named() -> None:
    beyond = HOME_DEG.copy()
    beyond[0] = 176.0
    assert RejectValidator(FR20, Limits(), HOME_DEG).validate(beyond, 0, 0).reason == "position_limit"
    small_area = Limits(area_upper_m=(-0.49, 1.2, 1.3))
    outside = HOME_DEG - [0.0, 20.0, 0.0, 0.0, 0.0, 0.0]
    open_area, narrow = (RejectValidator(FR20, limits, HOME_DEG) for limits in (Limits(), small_area))
    assert open_area.validate(outside, 0, 0).reason is None
    assert narrow.validate(outside, 0, 0).reason == "work_area"


def test_clamping_never_drops_for_a_limit_and_never_steps_too_far() -> None:
    random = np.random.default_rng(11)
    limits = Limits()
    validator = ClampValidator(FR20, limits, HOME_DEG)
    last = HOME_DEG
    for i in range(300):
        verdict = validator.validate(random.uniform(FR20.lower_deg - 20, FR20.upper_deg + 20), i * MS, 0)
        assert verdict.joints_deg is not None
        assert np.abs(verdict.joints_deg - last).max() <= limits.joint_speed_deg_s * PERIOD_S + 1e-9
        way_m = np.linalg.norm(FR20.tool_m(verdict.joints_deg) - FR20.tool_m(last))
        assert way_m <= limits.tool_speed_m_s * PERIOD_S + 1e-9
        tool_m = FR20.tool_m(verdict.joints_deg)
        assert ((tool_m >= limits.area_lower_m) & (tool_m <= limits.area_upper_m)).all()
        last = verdict.joints_deg


def test_clamping_does_not_care_when_a_setpoint_arrives() -> None:
    validator = ClampValidator(FR20, Limits(), HOME_DEG)
    for i, t in enumerate([20, 40, 72, 72, 100], 1):
        verdict = validator.validate(HOME_DEG + i * STEP_DEG, t * MS, 0)
        assert verdict.changed is None and verdict.joints_deg is not None
        assert np.allclose(verdict.joints_deg, HOME_DEG + i * STEP_DEG)
