"""Speed guards on an arm's state stream, in the source arrangement. (The split arrangement's are `src/guards.rs`.)

`NaiveGuard` is the source's: the way between two frames over the time between their *arrivals*, and one sample over
a limit stops the robot. A frame that was held up makes the next one look fast.
`TautGuard` is `taut.guard.SpeedGuard` with this stream's parameters: speed is what the robot's own stamps prove.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import asdict, dataclass

import taut
from taut import guard

from .arms import FR20
from .safety import Limits
from .stream import STATE_PERIOD_MS, State

STREAM = "follower"
REARM_NS = 1_000_000_000
"""After a trip an operator presses reset a second later: one trip a second is counted at most."""
STALE_PERIODS = 5
HEAVY_STALE_NS = 500_000_000
"""On the heavy wire frames are held up for 200 ms and more, by intent: silence is stale later there."""


@dataclass(frozen=True)
class Trip:
    at_ns: int
    state: str
    cause: str
    ratio: float
    is_false: bool
    """The robot's own stamps say that it never was too fast of late."""

    def say(self) -> None:
        """For the recording."""
        taut.value("guard.trip", self.ratio)
        if self.is_false:
            taut.value("guard.false_trip", self.ratio)


def parameters(limits: Limits, wire: str) -> guard.Parameters:
    """The guard's parameters for this stream. Stamps are cut to a millisecond, and the servo moves in steps of one."""
    period_ns = STATE_PERIOD_MS * 1_000_000
    stale_ns = HEAVY_STALE_NS if wire == "heavy" else STALE_PERIODS * period_ns
    return guard.Parameters(
        period_ns,
        tcp_limit_mm_s=limits.tool_speed_m_s * 1000.0,
        joint_limits_rad_s=[math.radians(limits.joint_speed_deg_s)] * len(FR20.a_m),
        joint_error_rad=1e-4,
        tick_ns=5_000_000,
        stale_ns=stale_ns,
        age_max_ns=stale_ns,
    )


class Truth:
    """Whether the arm truly was too fast, frame by frame, by its own exact positions and stamps. A simulation's frames
    have no other error."""

    FRAMES = 20

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: State | None = None
        self._ratios: deque[float] = deque(maxlen=self.FRAMES)
        self.ratio_max = 0.0

    def hear(self, state: State) -> None:
        last, self._last = self._last, state
        if last is not None and state.source_ns > last.source_ns:
            self._ratios.append(_ratio(last, state, (state.source_ns - last.source_ns) / 1e9, self._limits))
            self.ratio_max = max(self.ratio_max, self._ratios[-1])

    def is_within(self) -> bool:
        """Whether the last frames all were within the limits."""
        return max(self._ratios, default=0.0) <= 1.0


def _ratio(before: State, after: State, elapsed_s: float, limits: Limits) -> float:
    """Speed between two frames, as a share of the limit that is nearest."""
    joints = zip(after.values["actual_joint_pos"], before.values["actual_joint_pos"], strict=True)
    turn_deg = max(abs(b - a) for b, a in joints)
    way_m = math.dist(after.values["actual_TCP_pos"][:3], before.values["actual_TCP_pos"][:3]) / 1000.0
    return max(turn_deg / limits.joint_speed_deg_s, way_m / limits.tool_speed_m_s) / elapsed_s


class NaiveGuard:
    """Its trips are counted, not obeyed: the run would end with the first."""

    enables_motion = True
    is_latched = False

    def __init__(self, limits: Limits, wire: str = "plain") -> None:
        self._limits = limits
        self._last: State | None = None
        self._truth = Truth(limits)
        self._rearmed_ns = 0
        self.trips: list[Trip] = []
        taut.value("guard.armed", 1.0)

    def update(self, state: State) -> None:
        guard.record_frame(STREAM, frame_of(state), state.values["actual_TCP_cmpvel"][0])
        before = len(self.trips)
        self.judge(state)
        for trip in self.trips[before:]:
            trip.say()

    def judge(self, state: State) -> None:
        self._truth.hear(state)
        last, self._last = self._last, state
        if last is None:
            return
        # Frames of one read arrive at once; a microsecond stands for no time at all.
        elapsed_s = max((state.arrived_ns - last.arrived_ns) / 1e9, 1e-6)
        ratio = _ratio(last, state, elapsed_s, self._limits)
        if ratio > 1.0 and state.arrived_ns >= self._rearmed_ns:
            self.trips.append(Trip(state.arrived_ns, "overspeed", "arrival_speed", ratio, self._truth.is_within()))
            self._rearmed_ns = state.arrived_ns + REARM_NS

    def tick(self, now_ns: int) -> None:
        """It does not notice silence."""

    def summary(self) -> dict[str, object]:
        trips = [asdict(trip) for trip in self.trips]
        return {"kind": "naive", "trips": trips, "true_ratio_max": round(self._truth.ratio_max, 4)}


class TautGuard:
    """The naive guard hears the same frames beside it, for comparison; it has no say."""

    def __init__(self, limits: Limits, wire: str) -> None:
        self._guard = guard.SpeedGuard(parameters(limits, wire))
        self._naive = NaiveGuard(limits)
        self._truth = Truth(limits)
        self._ratio_max = 0.0
        self._is_tripped = False
        self.trips: list[Trip] = []

    def update(self, state: State) -> None:
        frame = frame_of(state)
        guard.record_frame(STREAM, frame, state.values["actual_TCP_cmpvel"][0])
        verdict = self._guard.update(frame)
        self._ratio_max = max(self._ratio_max, verdict.ratio)
        self._truth.hear(state)
        self._naive.judge(state)
        self._note()

    def tick(self, now_ns: int) -> None:
        self._guard.tick(now_ns)
        self._note()

    def _note(self) -> None:
        trip = self._guard.trip
        if trip and not self._is_tripped:
            self._is_tripped = True
            is_false = trip.state == "overspeed" and self._truth.is_within()
            self.trips.append(Trip(trip.at_ns, trip.state, trip.cause, trip.ratio, is_false))
            self.trips[-1].say()

    @property
    def enables_motion(self) -> bool:
        return self._guard.enables_motion

    @property
    def is_latched(self) -> bool:
        """It has stopped motion, and nothing here resets it."""
        return self._is_tripped

    def summary(self) -> dict[str, object]:
        return {
            "kind": "taut",
            "state": self._guard.state,
            "trips": [asdict(trip) for trip in self.trips],
            "ratio_max": round(self._ratio_max, 4),
            "time_base": self._guard.time_base,
            "parameters_hash": f"{self._guard.parameters_hash:016x}",
            "counters": {name: count for name, count in self._guard.counters.items() if count},
            "true_ratio_max": round(self._truth.ratio_max, 4),
            "naive_trips": len(self._naive.trips),
        }


GUARDS: dict[str, type[NaiveGuard] | type[TautGuard]] = {"naive": NaiveGuard, "taut": TautGuard}


def frame_of(state: State) -> guard.Frame:
    return guard.Frame(
        state.arrived_ns,
        sequence=state.count,
        source_ns=state.source_ns,
        tcp_mm=state.values["actual_TCP_pos"][:3],
        joints_rad=[math.radians(angle) for angle in state.values["actual_joint_pos"]],
        frames_in_read=state.frames_in_read,
    )
