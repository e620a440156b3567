"""A trajectory: joints over time, as points that travel in one message."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arm import JOINTS, Vector

MOST_POINTS = 1000
MOST_S = 3600.0
"""That the controller takes; src/trajectory.rs has the same."""


class Refused(ValueError):
    """It is no trajectory for the controller; the text says why."""


@dataclass(frozen=True)
class Trajectory:
    times_s: Vector
    positions: Vector  # rad, a row a point
    speeds: Vector  # rad/s

    @classmethod
    def of(cls, points: Sequence[Any]) -> "Trajectory":
        """Of a message's points, on any bus. Raises Refused."""
        if not 1 <= len(points) <= MOST_POINTS:
            raise Refused(f"{len(points)} points, not 1 to {MOST_POINTS}")
        if any(not len(point.positions) == len(point.velocities) == len(JOINTS) for point in points):
            raise Refused(f"a point without {len(JOINTS)} positions and velocities")
        times = [point.time_from_start for point in points]
        trajectory = cls(
            np.array([time.sec + time.nanosec / 1e9 for time in times]),
            np.array([list(point.positions) for point in points], dtype=float),
            np.array([list(point.velocities) for point in points], dtype=float),
        )
        if not (np.isfinite(trajectory.positions).all() and np.isfinite(trajectory.speeds).all()):
            raise Refused("a position or velocity that is not finite")
        if trajectory.times_s[0] < 0.0 or (np.diff(trajectory.times_s) < 0.0).any():
            raise Refused("times that go back")
        if trajectory.duration_s > MOST_S:
            raise Refused(f"{trajectory.duration_s:g} s, more than {MOST_S:g} s")
        return trajectory

    @property
    def duration_s(self) -> float:
        return float(self.times_s[-1])

    def at(self, time_s: float) -> tuple[Vector, Vector, Vector]:
        """Position, speed and acceleration: cubic between points (Hermite), at rest before and after."""
        rest = np.zeros(self.positions.shape[1])
        if time_s <= 0.0:
            return self.positions[0], rest, rest
        if time_s >= self.duration_s:
            return self.positions[-1], rest, rest
        i = int(np.searchsorted(self.times_s, time_s, side="right")) - 1
        h = self.times_s[i + 1] - self.times_s[i]
        u = (time_s - self.times_s[i]) / h
        p0, p1, m0, m1 = self.positions[i], self.positions[i + 1], h * self.speeds[i], h * self.speeds[i + 1]
        a, b = 2 * p0 - 2 * p1 + m0 + m1, -3 * p0 + 3 * p1 - 2 * m0 - m1
        return (
            ((a * u + b) * u + m0) * u + p0,
            ((3 * a * u + 2 * b) * u + m0) / h,
            (6 * a * u + 2 * b) / (h * h),
        )
