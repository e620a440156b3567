from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal, TypedDict, final

from taut.guard import Cause, Fate, Reason, State, TimeBase

__version__: str

class Status(TypedDict):
    attached: bool
    lost: int

def stamp(point: str, message_id: int, /) -> None:
    """Record that the message is at the point now. `message_id` is an int from 0 to 2**64 - 1."""

def stamp_at(point: str, message_id: int, intended_ns: int, /) -> None:
    """Record that the message is at the point now and was due at `intended_ns`, a time of `time.monotonic_ns()`: the release of a
    periodic loop, or the moment that a source should send. A late start is then part of the message's latency. 0: no such time.

    >>> due = time.monotonic_ns() + PERIOD_NS
    >>> time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
    >>> taut.stamp_at("loop.released", cycle, due)
    """

def drop(message_id: int, reason: str, /) -> None:
    """Record that the message was dropped, with the reason."""

def applied(message_id: int, /) -> None:
    """Record that the message was applied."""

def begin(work: str, /) -> None:
    """Mark the begin of background work."""

def end(work: str, /) -> None:
    """Mark its end."""

def value(name: str, value: float, /) -> None:
    """Record the present value of a signal."""

def lock_wait(lock: str, /) -> None:
    """Mark that this thread begins to wait for the lock."""

def lock_acquired(lock: str, /) -> None:
    """Mark that this thread has the lock."""

def name_thread_lock(name: str, lock: object) -> bool:
    """For `taut.locks` only."""

def name_semaphore(name: str, address: int) -> bool:
    """For `taut.locks` only."""

def prepare_thread() -> bool:
    """Do this thread's setup, about a millisecond, now instead of at its first stamp. True when the thread can stamp."""

def attach(session: str | PathLike[str]) -> bool:
    """Use this session directory instead of TAUT_SESSION. True when attached."""

def session() -> str | None:
    """The session directory in use, or to be used."""

def status() -> Status:
    """Whether a session is attached, and how many stamps this process lost."""

# What follows is `taut.guard`.

REASONS: list[Reason]
"""The twenty reasons of the ledger, by number from 1."""

class GuardError(ValueError):
    """A parameter or a request was refused; says which and why."""

@final
class Parameters:
    """Parameters of a speed guard; what is not given has the default of docs/reference/guard.md for this period."""

    def __init__(
        self,
        period_ns: int,
        *,
        tcp_limit_mm_s: float | None = None,
        joint_limits_rad_s: Iterable[float] | None = None,
        time_base: TimeBase = "source",
        sequence_modulus: int = 256,
        source_is_monotonic: bool = False,
        source_error_ns: int = 1_000_000,
        source_error_max_ns: int = ...,
        drift_ppm: int = 200,
        tcp_error_mm: float = 0.05,
        joint_error_rad: float = 0.0,
        path_length: bool = False,
        window_ns: int = ...,
        trip_count: int = 1,
        trip_of: int = 1,
        stale_ns: int = ...,
        age_max_ns: int = ...,
        tick_ns: int = 1_000_000,
        lost_max: int = 5,
        transport_max_ns: int = 500_000_000,
        arrival_jitter_ns: int = 60_000_000,
        acceleration_max_mm_s2: float = 0.0,
        reported_tolerance_mm_s: float = 100.0,
    ) -> None: ...
    @property
    def period_ns(self) -> int: ...
    @property
    def tcp_limit_mm_s(self) -> float | None: ...
    @property
    def joint_limits_rad_s(self) -> tuple[float, ...]: ...
    @property
    def time_base(self) -> TimeBase: ...
    @property
    def sequence_modulus(self) -> int: ...
    @property
    def source_is_monotonic(self) -> bool: ...
    @property
    def source_error_ns(self) -> int: ...
    @property
    def source_error_max_ns(self) -> int: ...
    @property
    def drift_ppm(self) -> int: ...
    @property
    def tcp_error_mm(self) -> float: ...
    @property
    def joint_error_rad(self) -> float: ...
    @property
    def path_length(self) -> bool: ...
    @property
    def window_ns(self) -> int: ...
    @property
    def trip_count(self) -> int: ...
    @property
    def trip_of(self) -> int: ...
    @property
    def stale_ns(self) -> int: ...
    @property
    def age_max_ns(self) -> int: ...
    @property
    def tick_ns(self) -> int: ...
    @property
    def lost_max(self) -> int: ...
    @property
    def transport_max_ns(self) -> int: ...
    @property
    def arrival_jitter_ns(self) -> int: ...
    @property
    def acceleration_max_mm_s2(self) -> float: ...
    @property
    def reported_tolerance_mm_s(self) -> float: ...
    def as_dict(self) -> dict[str, Any]:
        """Every parameter by its name: `Parameters(**p.as_dict()) == p`."""

    def hash(self) -> int:
        """FNV-1a over the version and every parameter; stands in each trip."""

    def detection_bound_ns(self, ratio: float, lost: int = 0, delay_ns: int = 0) -> int | None:
        """How long a steady overspeed of `ratio` x L takes to trip; None if no window can prove it."""

@final
class Frame:
    """One state frame of the robot, with when it was sampled (its own clock) and when it came (CLOCK_MONOTONIC)."""

    def __init__(
        self,
        arrival_ns: int,
        *,
        sequence: int = 0,
        source_ns: int | None = None,
        tcp_mm: Iterable[float] | None = None,
        joints_rad: Iterable[float] | None = None,
        reported_mm_s: float | None = None,
        frames_in_read: int = 1,
    ) -> None: ...
    @property
    def arrival_ns(self) -> int: ...
    @property
    def sequence(self) -> int: ...
    @property
    def source_ns(self) -> int | None: ...
    @property
    def tcp_mm(self) -> tuple[float, ...]: ...
    @property
    def joints_rad(self) -> tuple[float, ...]: ...
    @property
    def reported_mm_s(self) -> float | None: ...
    @property
    def frames_in_read(self) -> int: ...

@final
class Verdict:
    """The answer to one frame or tick. Stop the robot, under control, unless `enables_motion`."""

    @property
    def state(self) -> State: ...
    @property
    def enables_motion(self) -> bool: ...
    @property
    def is_latched(self) -> bool: ...
    @property
    def ratio(self) -> float: ...
    @property
    def events(self) -> frozenset[str]: ...
    @property
    def is_degraded(self) -> bool: ...

@final
class Sample:
    """One of the two samples that prove a speed."""

    @property
    def sequence(self) -> int: ...
    @property
    def t_ns(self) -> int: ...
    @property
    def tcp_mm(self) -> tuple[float, ...]: ...
    @property
    def joints_rad(self) -> tuple[float, ...]: ...

@final
class Trip:
    """A trip, as it was when it happened."""

    @property
    def state(self) -> State: ...
    @property
    def cause(self) -> Cause: ...
    @property
    def at_ns(self) -> int: ...
    @property
    def ratio(self) -> float: ...
    @property
    def channel(self) -> str: ...
    @property
    def proof(self) -> tuple[Sample, Sample] | None: ...
    @property
    def span_ns(self) -> int: ...
    @property
    def time_base(self) -> TimeBase: ...
    @property
    def parameters_hash(self) -> int: ...

@final
class BlackBoxEntry:
    """A frame of the black box and what the guard thought of it."""

    @property
    def frame(self) -> Frame: ...
    @property
    def state(self) -> State: ...
    @property
    def ratio(self) -> float: ...
    @property
    def events(self) -> frozenset[str]: ...

@final
class SpeedGuard:
    """A speed guard that jitter cannot trip. Not a safety-rated function."""

    def __init__(self, parameters: Parameters) -> None:
        """Tests itself with injected faults first; GuardError if it misses one."""

    def update(self, frame: Frame) -> Verdict:
        """Takes one frame."""

    def tick(self, now_ns: int) -> Verdict:
        """Lets time pass; call it at least every tick_ns."""

    def reset(self, now_ns: int) -> None:
        """Leaves a latched state; GuardError unless frames were fresh and slow for 100 ms."""

    def count_bad_frame(self) -> None: ...
    def count_parser_resync(self, octets: int) -> None: ...
    def answer(self, challenge: int, now_ns: int) -> int | None:
        """Answers a question from outside; None if this guard is not called, or it does not enable motion."""

    def black_box(self) -> list[BlackBoxEntry]:
        """The last 50 frames up to the first trip, oldest first."""

    @property
    def state(self) -> State: ...
    @property
    def enables_motion(self) -> bool: ...
    @property
    def trip(self) -> Trip | None: ...
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def parameters_hash(self) -> int: ...
    @property
    def time_base(self) -> TimeBase: ...
    @property
    def source_error_ns(self) -> int: ...
    @property
    def is_degraded(self) -> bool: ...
    @property
    def display_speed_mm_s(self) -> float | None: ...

def expected_answer(parameters_hash: int, challenge: int) -> int:
    """What the asker of a heartbeat compares the answer with."""

def record_frame(stream: str, frame: Frame, truth_mm_s: float | None = None) -> None:
    """Writes the frame to the recording, as values that `taut guard replay` reads; nothing without a session.

    `truth_mm_s` is the tool's true speed when the frame was sampled, where a simulation knows it.
    """

@final
class Balance:
    """The sums of a ledger."""

    @property
    def produced(self) -> int: ...
    @property
    def acknowledged(self) -> int: ...
    @property
    def superseded(self) -> int: ...
    @property
    def rejected(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def silent(self) -> int: ...
    @property
    def delivered_share(self) -> float | None: ...
    @property
    def is_alarmed(self) -> bool: ...
    @property
    def is_saturated(self) -> bool: ...

@final
class Ledger:
    """Gives each setpoint exactly one fate, and holds the sums. At most 256 are in flight at once."""

    def __init__(self) -> None: ...
    def produce(self, id: int, now_ns: int) -> None:
        """Enters a new setpoint; GuardError if there is no room, or the id is in flight already."""

    def end(self, id: int, now_ns: int, fate: Fate = "passed", reason: Reason | None = None) -> int:
        """Gives a setpoint its one fate; returns its age in ns. A limit never rejects: GuardError."""

    def end_older(self, before_ns: int, now_ns: int, fate: Fate, reason: Reason) -> int:
        """Ends every setpoint that was produced before `before_ns`; returns how many."""

    def is_in_flight(self, id: int) -> bool: ...
    def count(self, reason: Reason) -> int:
        """How many setpoints met a reason, whatever it did to them."""

    def share(self, reason: Reason) -> float:
        """The share of a reason among all that were produced."""

    def counts(self) -> dict[Reason, int]:
        """Every reason that was met, with its count."""

    def balance(self, now_ns: int) -> Balance:
        """Checks the law of conservation; call it once a second. GuardError if setpoints are unexplained."""

    @property
    def age_max_ns(self) -> int: ...

@final
class Mailbox:
    """Depth 1 between two threads: the latest setpoint wins, the overwritten one's id comes back to the sender."""

    def __init__(self) -> None: ...
    def put(self, id: int, setpoint: Iterable[float]) -> int | None:
        """Never waits. Returns the id of a setpoint that was overwritten unread ("superseded"), or None."""

    def take(self, timeout_s: float = 0.0) -> tuple[int, tuple[float, ...]] | None:
        """The latest setpoint that was not taken, as (id, numbers); waits for one up to `timeout_s`."""

    def close(self) -> None:
        """Wakes all waiting threads; from now on none waits."""

@final
class Shaped:
    """A setpoint that may be sent, and what was done to it."""

    @property
    def setpoint(self) -> tuple[float, ...]: ...
    @property
    def fate(self) -> Literal["passed", "modified", "held"]: ...
    @property
    def reason(self) -> Reason | None: ...
    @property
    def amount(self) -> float: ...

@final
class Approach:
    """Slower and slower towards a boundary that only the caller can measure, held at it, always free to leave."""

    def __init__(self, *, stop_at: float, resume_at: float, slow_at: float) -> None: ...
    def share(self, distance: float, next: float) -> float:
        """The share of a step that may be gone, from `distance` now and `next`, where the whole step would lead."""

    @property
    def is_held(self) -> bool: ...

@final
class Decimate:
    """Fewer setpoints on purpose: one in each period."""

    def __init__(self, period_ns: int) -> None: ...
    def keeps(self, produced_ns: int) -> bool:
        """Whether to send this one; if not, it is superseded for "decimated"."""

@final
class Limiter:
    """Keeps a stream of setpoints within limits, by the last one that was sent. Never rejects."""

    def __init__(
        self,
        measured: Iterable[float],
        *,
        period_ns: int,
        position_min: Iterable[float],
        position_max: Iterable[float],
        velocity_max: Iterable[float],
        margin: float = 0.0,
        policy: Literal["clamp", "scale"] = "clamp",
        position_reason: Literal["position_limit", "work_area"] = "position_limit",
    ) -> None: ...
    def shape(self, target: Iterable[float], share: float = 1.0) -> Shaped:
        """The setpoint to send for this target; it counts as sent. GuardError for a target that is not finite. Near a
        boundary give the share of the way that may be gone (Approach.share)."""

    def rehome(self, measured: Iterable[float]) -> None:
        """Goes on from where the robot is, after it moved without us."""

    @property
    def sent(self) -> tuple[float, ...]: ...
    @property
    def malformed_in_row(self) -> int: ...

@final
class Sampled:
    """A position to send now; put a Limiter behind."""

    @property
    def setpoint(self) -> tuple[float, ...]: ...
    @property
    def source(self) -> Literal["interpolated", "extrapolated", "slowing", "resting"]: ...
    @property
    def added_delay_ns(self) -> int: ...

@final
class Playout:
    """Plays a jittery stream out at the servo's own rate, a constant delay behind."""

    def __init__(self, axes: int, *, period_ns: int, jitter_ns: int, delay_most_ns: int) -> None: ...
    def push(self, produced_ns: int, setpoint: Iterable[float], arrival_ns: int) -> bool:
        """Takes a setpoint with its time of production (any clock) and of arrival. False: out of order or not finite."""

    def play(self, now_ns: int) -> Sampled | None:
        """The position at `now_ns`; None before the first two setpoints are due."""

@final
class Retargeted:
    """The state to send."""

    @property
    def position(self) -> tuple[float, ...]: ...
    @property
    def velocity(self) -> tuple[float, ...]: ...
    @property
    def acceleration(self) -> tuple[float, ...]: ...
    @property
    def fate(self) -> Literal["passed", "modified"]: ...
    @property
    def reason(self) -> Reason | None: ...

@final
class Retarget:
    """Jerk-limited motion towards targets that come and change (Ruckig)."""

    def __init__(
        self,
        measured: Iterable[float],
        *,
        period_ns: int,
        velocity_max: Iterable[float],
        acceleration_max: Iterable[float],
        jerk_max: Iterable[float],
        position_min: Iterable[float] | None = None,
        position_max: Iterable[float] | None = None,
        margin: float = 0.0,
    ) -> None: ...
    def step(self, target: Iterable[float], velocity: Iterable[float] | None = None) -> Retargeted:
        """One period towards a target. Give its velocity: a target at rest each time means stop and go."""

@final
class Retry:
    """The budget of one setpoint's transmission: bounded by attempts and one period."""

    def __init__(self, period_ns: int, attempts_max: int) -> None: ...
    def begin(self, now_ns: int) -> None: ...
    def again(self, now_ns: int) -> bool:
        """After a failed attempt: whether another is allowed. If not, the setpoint is lost for "transport"."""

    def left_ns(self, now_ns: int) -> int:
        """The most that an attempt made now may take: the time-out for the socket."""

@final
class KeepAlive:
    """Suppresses what does not change, for at most a third of the watchdog's time."""

    def __init__(self, deadband: float, watchdog_ns: int, period_ns: int) -> None: ...
    def is_due(self, setpoint: Iterable[float], now_ns: int) -> bool:
        """Whether to send; if not, the setpoint is superseded for "deadband". Call it at the rate of the stream."""

@final
class ServoWatchdog:
    """One servo's watchdog: a position command lives for a time, then the servo damps until it is stopped."""

    def __init__(self, tick_ns: int, timeout_ns: int = 100_000_000) -> None: ...
    def command(self, command: Literal["stop", "enable", "position", "zero_velocity"]) -> bool:
        """Gives whether it was obeyed."""

    def position(self, timeout_s: float, unsafe_without_timeout: bool = False) -> bool:
        """A position command with a time-out of its own; NaN asks for none, granted only with the flag."""

    def tick(self) -> Literal["off", "position", "damp"]:
        """One interrupt of the servo; gives what to drive."""

    def fault(self) -> None:
        """The servo's own hard fault."""

    @property
    def mode(self) -> Literal["stopped", "enabled", "position", "zero_velocity", "timeout", "fault"]: ...
    @property
    def drive(self) -> Literal["off", "position", "damp"]: ...
    @property
    def counters(self) -> dict[str, int]: ...

@final
class Timeouts:
    """The nested time-outs, from the cycle to the operator; GuardError if they do not nest."""

    def __init__(
        self,
        *,
        cycle_ns: int = 1_000_000,
        host_stale_ns: int = 20_000_000,
        servo_ns: int = 100_000_000,
        operator_ns: int = 1_000_000_000,
        arm_stop_and_gap_ns: tuple[int, int] | None = None,
    ) -> None: ...

@final
class DegradeChain:
    """The host's watchdog over up to 32 servos: the first fault sends all of them to zero velocity."""

    def __init__(self, servos: int, timeouts: Timeouts, reply_age_max: int = 5) -> None: ...
    def start(self, now_ns: int) -> None:
        """Begins to run, from rest."""

    def stop(self) -> None:
        """The only way out of a degraded state."""

    def reply(self, servo: int, report: Literal["healthy", "timed_out", "faulted"] = "healthy") -> None: ...
    def operator(self, now_ns: int) -> None:
        """A signal of the operator arrived."""

    def degrade(self, cause: int) -> None:
        """Tells of a cause that only the caller sees (tilt, battery), by a number of its own."""

    def cycle(self, now_ns: int) -> Literal["stopped", "running", "degraded"]:
        """Ends a cycle; gives the state."""

    def action(self, servo: int) -> tuple[Literal["stop", "follow", "zero_velocity"], float]:
        """What to send to a servo now, and the factor on its kd."""

    def reply_age_cycles(self, servo: int) -> int:
        """Cycles since a servo answered."""

    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def state(self) -> Literal["stopped", "running", "degraded"]: ...
    @property
    def cause(self) -> tuple[str, int | None] | None: ...

@final
class Ramp:
    """A walk from where the joints are to a target, in steps of limited length (Euclidean)."""

    def __init__(self, measured: Iterable[float], step_max: float) -> None: ...
    def next(self, target: Iterable[float]) -> tuple[tuple[float, ...], bool]:
        """The next setpoint, and whether it is the target."""

def damping_torque(kd_nm_s: float, omega_rad_s: float, max_nm: float) -> float:
    """The torque of a damping servo, no more than `max_nm`; numbers that are not finite give none."""

def best_stop(
    *, has_power: bool, has_encoder: bool, has_speed: bool, has_driver: bool
) -> Literal["hold", "damp", "brake", "off"]:
    """The best way to stop a joint that is left."""

class TelemetryRing:
    """Of `taut.telemetry` alone."""

    def __init__(self, name: str, description: str, row: memoryview, rate_hz: float) -> None: ...
    def write(self) -> None: ...
    def lost(self) -> int: ...

# What follows is of `taut.recording` alone.

@final
class Table:
    """One table, as Arrow holds it."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def descriptions(self) -> dict[str, str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def buffer(self, name: str) -> tuple[str, bytes, list[str] | None]:
        """A column's dtype, its bytes, and of texts the words that the numbers mean; -1 is none."""

def analyse(path: str | PathLike[str], chains: list[tuple[str, list[str], int | None]]) -> tuple[str, list[Table], int]:
    """The report as JSON, four tables, and CLOCK_MONOTONIC at the recording's start."""

def telemetry(path: str | PathLike[str], topic: str) -> Table:
    """A channel's messages: when, and every number by its path."""
