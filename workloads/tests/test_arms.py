"""Kinematics of the arms as the source's loop knows them."""

import numpy as np
import pytest

from workloads.teleop.arms import ARMS, FR3, FR20, HOME_DEG, Arm

# Joint origins of the vendor's URDF files: offset in metres and turn about x in degrees, then the flange.
URDF = {
    "FR3": [
        ((0, 0, 0), 0),
        ((0, 0, 0.14), 90),
        ((-0.28, 0, 0), 0),
        ((-0.24001, 0, 0), 0),
        ((0, 0, 0.102), 90),
        ((0, 0, 0.102), -90),
    ],
    "FR20": [
        ((0, 0, 0), 0),
        ((0, 0, 0.215), 90),
        ((-1.0, 0, 0), 0),
        ((-0.716, 0, 0), 0),
        ((0, 0, 0.16601), 90),
        ((0, 0, 0.138), -90),
    ],
}


def turn(axis: int, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = ((1, 2), (2, 0), (0, 1))[axis]
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[i, j], matrix[j, i] = -s, s
    return matrix


def urdf_tool_m(arm: Arm, joints_deg: np.ndarray) -> np.ndarray:
    position, rotation = np.zeros(3), np.eye(3)
    for (offset, roll_deg), joint in zip(URDF[arm.name], joints_deg, strict=True):
        position = position + rotation @ np.array(offset, dtype=float)
        rotation = rotation @ turn(0, roll_deg) @ turn(2, joint)
    tool: np.ndarray = position + rotation @ np.array([0.0, 0.0, arm.d_m[5]])
    return tool


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_dh_chain_is_the_urdf_chain(arm: Arm) -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        joints = random.uniform(arm.lower_deg, arm.upper_deg)
        assert np.allclose(arm.tool_m(joints), urdf_tool_m(arm, joints), atol=1e-9)


def test_stretched_fr3_reaches_the_sum_of_its_links() -> None:
    assert np.allclose(FR3.tool_m(np.zeros(6)), [-0.52001, -0.202, 0.038], atol=1e-9)


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_jacobian_is_the_derivative_of_the_tool_position(arm: Arm) -> None:
    jac, small = arm.jacobian(HOME_DEG), 1e-5
    for i in range(6):
        moved = HOME_DEG + np.degrees(small) * np.eye(6)[i]
        assert np.allclose((arm.tool_m(moved) - arm.tool_m(HOME_DEG)) / small, jac[:3, i], atol=1e-4)


def test_the_tools_place_by_scalars_is_that_of_the_frames() -> None:
    for arm in (FR3, FR20):
        for joints in np.random.default_rng(3).uniform(arm.lower_deg, arm.upper_deg, (200, 6)):
            assert np.allclose(arm.tool_m(joints), arm.frames(joints)[-1][:3, 3], atol=1e-12)
