"""A joint servo that moves at finite speed, in steps of 1 ms of its own time.

It is advanced to a time, not run by a timer: whoever needs its state brings it up to date exactly,
however late he comes, so that scheduling on the host never bends the motion.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, sqrt

from .arms import Arm

STEP_NS = 1_000_000
STEP_S = STEP_NS / 1e9
FOLLOW_TIME_S = 0.008
"""Time constant of the position loop; the lag behind a moving target."""

Target = Callable[[int], list[float]]


class Servo:
    """Six joints that follow a target under limits of speed and acceleration. `on_step` hears of every step."""

    def __init__(
        self,
        arm: Arm,
        joints_deg: list[float],
        now_ns: int,
        on_step: Callable[[int, list[float]], None] | None = None,
    ) -> None:
        self.on_step = on_step
        self.joints_deg = list(joints_deg)
        self.speeds_deg_s = [0.0] * 6
        self.time_ns = now_ns
        self._max_speed = [float(v) for v in arm.max_speed_deg_s]
        self._max_accel = arm.max_accel_deg_s2
        self._target: Target = self._constant(joints_deg)

    def aim(self, joints_deg: list[float]) -> None:
        """Move to these angles and rest there."""
        self._target = self._constant(joints_deg)

    def follow(self, target: Target) -> None:
        """Follow a moving target, a function of time in ns."""
        self._target = target

    def advance(self, now_ns: int) -> None:
        """Integrate up to the last whole step at or before `now_ns`."""
        while self.time_ns + STEP_NS <= now_ns:
            self.time_ns += STEP_NS
            self._step(self._target(self.time_ns))
            if self.on_step:
                self.on_step(self.time_ns, self.joints_deg)

    def _step(self, target: list[float]) -> None:
        reach = self._max_accel * STEP_S
        for i in range(6):
            error = target[i] - self.joints_deg[i]
            # The fastest speed from which the joint can still brake onto the target.
            wanted = min(abs(error) / FOLLOW_TIME_S, sqrt(2.0 * self._max_accel * abs(error)), self._max_speed[i])
            change = copysign(wanted, error) - self.speeds_deg_s[i]
            self.speeds_deg_s[i] += max(-reach, min(reach, change))
            self.joints_deg[i] += self.speeds_deg_s[i] * STEP_S

    @staticmethod
    def _constant(joints_deg: list[float]) -> Target:
        fixed = list(joints_deg)
        return lambda _: fixed
