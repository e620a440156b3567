"""A trajectory: joints over time, as points that travel in one message."""

from dataclasses import dataclass

import numpy as np

from .arm import Vector

MOST_POINTS = 1000
"""That the controller takes."""


@dataclass(frozen=True)
class Trajectory:
    times_s: Vector
    positions: Vector  # rad, a row a point
    speeds: Vector  # rad/s

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
