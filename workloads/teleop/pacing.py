"""From setpoints every 20 ms to commands every 8 ms: the path between them, and when each command is due.

Each setpoint is followed by commands at 0, 8 and 16 ms; the last one is for 4 ms, so that the next setpoint finds
the servo at a command's end and need not wait. The path is `taut.guard.Playout`: a constant delay behind the robot's
own time, so that what jitters is the sending, not the motion.
"""

from __future__ import annotations

from dataclasses import dataclass

from taut import guard

from .links import Setpoint

MS = 1_000_000
SETPOINT_PERIOD_NS = 20 * MS
COMMAND_NS = 8 * MS
LAST_COMMAND_NS = 4 * MS
JITTER_NS = 2 * MS
"""What the playout expects of its jitter; beyond it the delay grows by itself, and shrinks slowly."""
DELAY_MOST_NS = 200 * MS
PATIENCE_NS = 3 * MS
"""How long after its time a setpoint is waited for before the path is extrapolated."""
CATCH_UP = 0.1
"""How much faster or slower than the hand the path may be played, to make up for commands that were left out or added.
The hand's speed times this must stay within the limits, or commands are clamped."""
JUMP_NS = 100 * MS
"""A path that is further off than this is not made up for but begun anew: the stream was interrupted."""


@dataclass(frozen=True)
class Command:
    """Where to be at the end of a command's time. `path_ns` is that place's own time, by the robot's clock."""

    joints_deg: tuple[float, ...]
    period_ns: int
    limit_ns: int
    """How long the arm may take to get there at its limits: less than the period where the command before it has not
    had its own, so that commands close together do not add up to too much speed."""
    path_ns: int
    added_delay_ns: int


class Pacing:
    def __init__(self, axes: int) -> None:
        self._playout = guard.Playout(
            axes, period_ns=SETPOINT_PERIOD_NS, jitter_ns=JITTER_NS, delay_most_ns=DELAY_MOST_NS
        )
        self._floor_ns: int | None = None
        self._clock_ns = self._wanted_ns = -JUMP_NS
        self._sent = 0
        self._sent_ns = self._until_ns = self._begun_ns = 0
        self.due_ns: int | None = None
        """When the next command is due; `None` before the first setpoint."""

    def push(self, setpoint: Setpoint, arrived_ns: int) -> bool:
        """Takes a setpoint; false: of no use, it is older than what is there, or no numbers."""
        if not self._playout.push(setpoint.source_ns, setpoint.joints_deg, arrived_ns):
            return False
        offset_ns = arrived_ns - setpoint.source_ns
        self._floor_ns = offset_ns if self._floor_ns is None else min(self._floor_ns, offset_ns)
        # Commands are placed by when the setpoint should have come, not by when it did.
        self._wanted_ns = setpoint.source_ns + self._floor_ns
        if abs(self._wanted_ns - self._clock_ns) >= JUMP_NS:
            self._clock_ns = self._wanted_ns
        self._sent = 0
        self._begun_ns = arrived_ns
        self.due_ns = max(arrived_ns, self._sent_ns + LAST_COMMAND_NS)
        return True

    def next(self, now_ns: int) -> Command | None:
        """The command that is due now; `None` while the path has not begun."""
        period_ns = LAST_COMMAND_NS if self._sent == 2 else COMMAND_NS
        self._wanted_ns += period_ns
        most_ns = int(CATCH_UP * period_ns)
        behind_ns = self._wanted_ns - self._clock_ns - period_ns
        self._clock_ns += period_ns + max(-most_ns, min(behind_ns, most_ns))
        sampled = self._playout.play(self._clock_ns)
        self._sent += 1
        limit_ns = max(0, min(period_ns, now_ns + period_ns - self._until_ns))
        self._sent_ns, self._until_ns = now_ns, now_ns + period_ns
        assert self._floor_ns is not None
        # Counted from the setpoint, not from the last command: one that was late does not delay those after it.
        patience_ns = SETPOINT_PERIOD_NS + PATIENCE_NS - 3 * COMMAND_NS if self._sent >= 3 else 0
        self.due_ns = max(self._begun_ns + self._sent * COMMAND_NS + patience_ns, now_ns + LAST_COMMAND_NS)
        if sampled is None:
            return None
        path_ns = self._clock_ns - self._floor_ns - sampled.added_delay_ns
        return Command(sampled.setpoint, period_ns, limit_ns, path_ns, sampled.added_delay_ns)
