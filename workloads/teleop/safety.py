"""Checks on every setpoint before it is written to the follower, in the source arrangement. (The split arrangement's are
`src/safety.rs`.)

`RejectValidator` is the source system's: speed is the way from the last *received* setpoint over the time
between two *arrivals*, and what is too fast is dropped. Jitter alone can make it drop: two setpoints that
were sent 20 ms apart and arrive 8 ms apart look 2.5 times as fast as they are.
`ClampValidator` measures against the last *sent* setpoint over the nominal period and shortens the step
until it obeys; a limit never drops a setpoint.

Reasons are the setpoint ledger's. What `RejectValidator` drops for its speed, although the robot's own stamps say
that it was within the limits, is a `validator_timing_bug`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .arms import Arm, Array

if TYPE_CHECKING:
    from taut.guard import Reason

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
    reason: Reason | None = None
    changed: Reason | None = None


class Validator(Protocol):
    def validate(self, joints_deg: Array, arrived_ns: int, source_ns: int) -> Verdict:
        """`source_ns` is the robot's own time of the state that the setpoint was made from."""


class _Checks:
    def __init__(self, arm: Arm, limits: Limits, start_deg: Array) -> None:
        self._arm, self._limits = arm, limits
        self._lower = arm.lower_deg + limits.joint_margin_deg
        self._upper = arm.upper_deg - limits.joint_margin_deg
        self._last_deg = start_deg.copy()

    def _malformed_or_duplicate(self, joints_deg: Array) -> Reason | None:
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
        self._last_source_ns = 0

    def validate(self, joints_deg: Array, arrived_ns: int, source_ns: int) -> Verdict:
        reason = self._malformed_or_duplicate(joints_deg)
        if reason:
            return Verdict(None, reason)
        tool_m = self._arm.tool_m(joints_deg)
        reason = self._broken_limit(joints_deg, tool_m, arrived_ns, source_ns)
        self._last_deg, self._last_tool_m = joints_deg, tool_m
        self._last_arrived_ns, self._last_source_ns = arrived_ns, source_ns
        return Verdict(None, reason) if reason else Verdict(joints_deg)

    def _broken_limit(self, joints_deg: Array, tool_m: Array, arrived_ns: int, source_ns: int) -> Reason | None:
        if np.any((joints_deg < self._lower) | (joints_deg > self._upper)):
            return "position_limit"
        if not self._in_area(tool_m):
            return "work_area"
        if self._last_arrived_ns is None:
            return None
        if not self._is_too_fast(joints_deg, tool_m, arrived_ns - self._last_arrived_ns):
            return None
        is_truly = self._is_too_fast(joints_deg, tool_m, source_ns - self._last_source_ns)
        return "velocity_limit" if is_truly else "validator_timing_bug"

    def _is_too_fast(self, joints_deg: Array, tool_m: Array, elapsed_ns: int) -> bool:
        elapsed_s = max(elapsed_ns / 1e9, 1e-6)
        turn_deg = float(np.abs(joints_deg - self._last_deg).max())
        way_m = float(np.linalg.norm(tool_m - self._last_tool_m))
        limits = self._limits
        return turn_deg / elapsed_s > limits.joint_speed_deg_s or way_m / elapsed_s > limits.tool_speed_m_s


class ClampValidator(_Checks):
    BISECTIONS = 12

    def __init__(self, arm: Arm, limits: Limits, start_deg: Array) -> None:
        super().__init__(arm, limits, start_deg)
        self._last_tool_m = arm.tool_m(start_deg)

    def validate(self, joints_deg: Array, arrived_ns: int, source_ns: int) -> Verdict:
        reason = self._malformed_or_duplicate(joints_deg)
        return Verdict(None, reason) if reason else self.clamp(joints_deg, PERIOD_S)

    def clamp(self, joints_deg: Array, period_s: float) -> Verdict:
        """The joints to send for the next `period_s`: as far towards `joints_deg` as every limit allows. They count
        as sent."""
        changed: Reason | None = None
        target = np.clip(joints_deg, self._lower, self._upper)
        if not np.array_equal(target, joints_deg):
            changed = "position_limit"
        step = target - self._last_deg
        turn_deg = max(float(np.abs(step).max()), 1e-12)
        share = min(1.0, self._limits.joint_speed_deg_s * period_s / turn_deg)
        if share < 1.0:
            changed = "velocity_limit"
        way_m = self._limits.tool_speed_m_s * period_s
        tool_m = self._arm.tool_m(self._last_deg + share * step)
        checks: list[tuple[Reason, Callable[[Array], bool]]] = [
            ("velocity_limit", lambda tool_m: float(np.linalg.norm(tool_m - self._last_tool_m)) <= way_m),
            ("work_area", self._in_area),
        ]
        for name, allowed in checks:
            if not allowed(tool_m):
                changed, share = name, self._largest_share(step, share, allowed)
                tool_m = self._arm.tool_m(self._last_deg + share * step)
        self._last_deg, self._last_tool_m = self._last_deg + share * step, tool_m
        return Verdict(self._last_deg, changed=changed)

    def _largest_share(self, step: Array, share: float, allowed: Callable[[Array], bool]) -> float:
        """The largest share of the step, up to `share`, that leads the tool where it may be; 0 if none does."""
        low, high = 0.0, share
        for _ in range(self.BISECTIONS):
            middle = 0.5 * (low + high)
            is_allowed = allowed(self._arm.tool_m(self._last_deg + middle * step))
            low, high = (middle, high) if is_allowed else (low, middle)
        return low


VALIDATORS: dict[str, type[RejectValidator] | type[ClampValidator]] = {
    "reject": RejectValidator,
    "clamp": ClampValidator,
}
