"""Checks on every setpoint before it is written to the follower.

`RejectValidator` is the source system's: speed is the way from the last *received* setpoint over the time
between two *arrivals*, and what is too fast is dropped. Jitter alone can make it drop: two setpoints that
were sent 20 ms apart and arrive 8 ms apart look 2.5 times as fast as they are.
`ClampValidator` measures against the last *sent* setpoint over the nominal period and shortens the step
until it obeys; a limit never drops a setpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .arms import Arm, Array

PERIOD_S = 0.02


@dataclass(frozen=True, eq=False)
class Limits:
    """The source's guard limits; the work area is a box in the follower's base frame."""

    joint_margin_deg: float = 1.0
    joint_speed_deg_s: float = 70.0
    tool_speed_m_s: float = 1.0
    area_lower_m: tuple[float, float, float] = (-1.6, -1.2, 0.05)
    area_upper_m: tuple[float, float, float] = (0.2, 1.2, 1.9)


@dataclass(frozen=True, eq=False)
class Verdict:
    """The joints to write, or the reason why none are written; `changed` names a limit that bent them."""

    joints_deg: Array | None
    reason: str | None = None
    changed: str | None = None


class Validator(Protocol):
    def validate(self, joints_deg: Array, arrived_ns: int) -> Verdict: ...


class _Checks:
    def __init__(self, arm: Arm, limits: Limits, start_deg: Array) -> None:
        self._arm, self._limits = arm, limits
        self._lower = arm.lower_deg + limits.joint_margin_deg
        self._upper = arm.upper_deg - limits.joint_margin_deg
        self._last_deg = start_deg.copy()

    def _malformed_or_duplicate(self, joints_deg: Array) -> str | None:
        if joints_deg.shape != (6,) or not np.isfinite(joints_deg).all():
            return "malformed"
        return "duplicate" if np.array_equal(joints_deg, self._last_deg) else None

    def _in_area(self, tool_m: Array) -> bool:
        limits = self._limits
        return bool(np.all((tool_m >= limits.area_lower_m) & (tool_m <= limits.area_upper_m)))


class RejectValidator(_Checks):
    def __init__(self, arm: Arm, limits: Limits, start_deg: Array) -> None:
        super().__init__(arm, limits, start_deg)
        self._last_tool_m = arm.tool_m(start_deg)
        self._last_arrived_ns: int | None = None

    def validate(self, joints_deg: Array, arrived_ns: int) -> Verdict:
        reason = self._malformed_or_duplicate(joints_deg)
        if reason:
            return Verdict(None, reason)
        tool_m = self._arm.tool_m(joints_deg)
        reason = self._broken_limit(joints_deg, tool_m, arrived_ns)
        self._last_deg, self._last_tool_m, self._last_arrived_ns = joints_deg, tool_m, arrived_ns
        return Verdict(None, reason) if reason else Verdict(joints_deg)

    def _broken_limit(self, joints_deg: Array, tool_m: Array, arrived_ns: int) -> str | None:
        if np.any((joints_deg < self._lower) | (joints_deg > self._upper)):
            return "joint_limit"
        if not self._in_area(tool_m):
            return "work_area"
        if self._last_arrived_ns is None:
            return None
        elapsed_s = max((arrived_ns - self._last_arrived_ns) / 1e9, 1e-6)
        if float(np.abs(joints_deg - self._last_deg).max()) / elapsed_s > self._limits.joint_speed_deg_s:
            return "joint_speed_limit"
        if float(np.linalg.norm(tool_m - self._last_tool_m)) / elapsed_s > self._limits.tool_speed_m_s:
            return "speed_limit"
        return None


class ClampValidator(_Checks):
    BISECTIONS = 12

    def validate(self, joints_deg: Array, arrived_ns: int) -> Verdict:
        reason = self._malformed_or_duplicate(joints_deg)
        if reason:
            return Verdict(None, reason)
        changed = None
        target = np.clip(joints_deg, self._lower, self._upper)
        if not np.array_equal(target, joints_deg):
            changed = "joint_limit"
        step = target - self._last_deg
        share = min(1.0, self._limits.joint_speed_deg_s * PERIOD_S / max(float(np.abs(step).max()), 1e-12))
        if share < 1.0:
            changed = "joint_speed_limit"
        tool_share = self._largest_share(step, share, self._tool_step_is_slow)
        if tool_share < share:
            changed, share = "speed_limit", tool_share
        area_share = self._largest_share(step, share, self._step_stays_in_area)
        if area_share < share:
            changed, share = "work_area", area_share
        self._last_deg = self._last_deg + share * step
        return Verdict(self._last_deg, changed=changed)

    def _tool_step_is_slow(self, joints_deg: Array) -> bool:
        way_m = float(np.linalg.norm(self._arm.tool_m(joints_deg) - self._arm.tool_m(self._last_deg)))
        return way_m <= self._limits.tool_speed_m_s * PERIOD_S

    def _step_stays_in_area(self, joints_deg: Array) -> bool:
        return self._in_area(self._arm.tool_m(joints_deg))

    def _largest_share(self, step: Array, share: float, allowed: object) -> float:
        """The largest share of the step, up to `share`, that is allowed; 0 if none is."""
        assert callable(allowed)
        if allowed(self._last_deg + share * step):
            return share
        low, high = 0.0, share
        for _ in range(self.BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if allowed(self._last_deg + middle * step) else (low, middle)
        return low


VALIDATORS: dict[str, type[RejectValidator] | type[ClampValidator]] = {
    "reject": RejectValidator,
    "clamp": ClampValidator,
}
