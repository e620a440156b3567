"""How well and how smoothly the follower moved, and how far it was told to step: from the arms' own journals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workloads.teleop import journal
from workloads.teleop.arms import FR20, TWIST_RAD

Array = NDArray[np.float64]
STEP_S = 0.001
SETTLE_S, END_S = 1.5, 0.5
"""Left out: the hand comes up to speed; the run ends."""
DELAYS_MAX = 150
"""Steps of a millisecond that the best constant delay is sought among."""
DERIVATIVE_STEPS = 10
"""Differences over 10 ms, a frame of the robot's stream: what a shorter one shows is the simulated servo's own step."""
SETPOINT_PERIOD_S = 0.020


@dataclass(frozen=True)
class Motion:
    tracking_mm: float
    """RMS distance to where the hand is at the same time."""
    path_mm: float
    """RMS distance to where the hand was the best constant delay ago: what the shape of the path loses."""
    delay_ms: float
    """That delay."""
    acceleration_m_s2: float
    """Peak of the tool."""
    jerk_m_s3: float
    """Peak of the tool."""
    jerk_rms_m_s3: float
    step_m_s: float
    """Longest commanded step of the tool, over the time it was commanded for."""
    step_deg_s: float
    """The same of the fastest joint."""


def measure(folder: Path, arrangement: str) -> Motion:
    leader, _ = journal.read(folder, "FR3")
    follower, commands = journal.read(folder, "FR20")
    if not len(commands):
        raise RuntimeError("the arm was never commanded")
    start = commands["t_ns"][0] + SETTLE_S * 1e9
    end = min(leader["t_ns"][-1], follower["t_ns"][-1], commands["t_ns"][-1]) - END_S * 1e9
    times = np.arange(start, end, STEP_S * 1e9)
    if times.size < 1000:
        raise RuntimeError("the arms moved for less than a second")
    hand = tool_m(_at(leader, times - DELAYS_MAX * STEP_S * 1e9, DELAYS_MAX))
    arm = tool_m(_at(follower, times, 0))
    rms = [float(np.sqrt(np.mean(np.sum((arm - _earlier(hand, d)) ** 2, axis=1)))) for d in range(DELAYS_MAX)]
    best = int(np.argmin(rms))
    acceleration = np.linalg.norm(_difference(arm, 2), axis=1)
    jerk = np.linalg.norm(_difference(arm, 3), axis=1)
    period = commands["period_s"] if arrangement == "split" else np.full(len(commands), SETPOINT_PERIOD_S)
    way = np.linalg.norm(np.diff(tool_m(commands["joints_deg"]), axis=0), axis=1)
    turn = np.abs(np.diff(commands["joints_deg"], axis=0)).max(axis=1)
    return Motion(
        tracking_mm=1000 * rms[0],
        path_mm=1000 * rms[best],
        delay_ms=float(best),
        acceleration_m_s2=float(acceleration.max()),
        jerk_m_s3=float(jerk.max()),
        jerk_rms_m_s3=float(np.sqrt(np.mean(jerk**2))),
        step_m_s=float((way / period[1:]).max()),
        step_deg_s=float((turn / period[1:]).max()),
    )


def tool_m(joints_deg: Array) -> Array:
    """The FR20's tool point for many joint angles at once, shape (n, 6) to (n, 3): `Arm.tool_m`, vectorised."""
    pose = np.broadcast_to(np.eye(4), (len(joints_deg), 4, 4))
    for axis, (a, d, twist) in enumerate(zip(FR20.a_m, FR20.d_m, TWIST_RAD, strict=True)):
        theta = np.radians(joints_deg[:, axis])
        ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(twist), np.sin(twist)
        zero, one = np.zeros_like(ct), np.ones_like(ct)
        rows = [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [zero, sa * one, ca * one, d * one],
            [zero, zero, zero, one],
        ]
        pose = pose @ np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return pose[:, :3, 3]


def _at(steps: NDArray[np.void], times: Array, before: int) -> Array:
    """Joint angles at these times, with so many milliseconds more at the end."""
    times = np.concatenate((times, times[-1] + STEP_S * 1e9 * np.arange(1, before + 1))) if before else times
    joints = steps["joints_deg"]
    return np.column_stack([np.interp(times, steps["t_ns"], joints[:, axis]) for axis in range(joints.shape[1])])


def _earlier(hand: Array, delay: int) -> Array:
    """`hand` begins DELAYS_MAX steps before the arm's first."""
    count = len(hand) - DELAYS_MAX
    return hand[DELAYS_MAX - delay : DELAYS_MAX - delay + count]


def _difference(positions: Array, order: int) -> Array:
    for _ in range(order):
        positions = (positions[DERIVATIVE_STEPS:] - positions[:-DERIVATIVE_STEPS]) / (DERIVATIVE_STEPS * STEP_S)
    return positions
