"""Keep a robot safe while its loop jitters: speed guard, watchdog, setpoint ledger, setpoint policies.

>>> from taut import guard
>>> speed = guard.SpeedGuard(guard.Parameters(10_000_000, tcp_limit_mm_s=1000.0))
>>> frame = guard.Frame(arrival_ns=1_000_000, sequence=0, source_ns=0, tcp_mm=(0.0, 0.0, 500.0))
>>> speed.update(frame).state
'init'

The words are those of docs/reference/guard.md. Time comes in as an argument (`time.monotonic_ns()`), in nanoseconds. What is refused
raises GuardError, which says what and why. Nothing here is a safety-rated function, and Python is no place for the
guard's own thread on a robot that may hurt people: give it a separate process, or use it from C++ or Rust.
"""

from typing import Literal

from taut._taut import (
    REASONS,
    Approach,
    Balance,
    BlackBoxEntry,
    Decimate,
    DegradeChain,
    Frame,
    GuardError,
    KeepAlive,
    Ledger,
    Limiter,
    Mailbox,
    Parameters,
    Playout,
    Ramp,
    Retarget,
    Retargeted,
    Retry,
    Sample,
    Sampled,
    ServoWatchdog,
    Shaped,
    SpeedGuard,
    Timeouts,
    Trip,
    Verdict,
    best_stop,
    damping_torque,
    expected_answer,
    record_frame,
)

__all__ = [
    "REASONS",
    "Approach",
    "Balance",
    "BlackBoxEntry",
    "Cause",
    "Decimate",
    "DegradeChain",
    "Fate",
    "Frame",
    "GuardError",
    "KeepAlive",
    "Ledger",
    "Limiter",
    "Mailbox",
    "Parameters",
    "Playout",
    "Ramp",
    "Reason",
    "Retarget",
    "Retargeted",
    "Retry",
    "Sample",
    "Sampled",
    "ServoWatchdog",
    "Shaped",
    "SpeedGuard",
    "State",
    "TimeBase",
    "Timeouts",
    "Trip",
    "Verdict",
    "best_stop",
    "damping_torque",
    "expected_answer",
    "record_frame",
]

TimeBase = Literal["source", "sequence", "arrival"]
State = Literal["init", "ok", "warn", "unknown", "overspeed", "stale", "fault"]
Cause = Literal[
    "speed",
    "reported_speed",
    "silence",
    "late_data",
    "still_unknown",
    "configuration",
    "clock",
    "not_finite",
    "disagreement",
]
Fate = Literal["passed", "modified", "held", "superseded", "rejected", "lost"]
Reason = Literal[
    "duplicate",
    "out_of_order",
    "stale",
    "superseded",
    "queue_overflow",
    "position_limit",
    "velocity_limit",
    "acceleration_limit",
    "work_area",
    "kinematics",
    "validator_timing_bug",
    "servo_busy",
    "servo_queue",
    "not_enabled",
    "guard_latched",
    "transport",
    "malformed",
    "deadband",
    "decimated",
    "not_executed",
]
