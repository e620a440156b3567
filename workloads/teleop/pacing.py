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
DELAY_MOST_NS = 260 * MS
"""A stall of 200 ms, and what queues up behind it, is waited out: late, but on the hand's own path."""
PROMPT_NS = 5 * MS
"""A call that takes no longer counts as taken when it was sent: the arm hardly slows down in this time."""
SPACING_NS = 3 * MS
"""Least time between two commands: a setpoint may come a millisecond early. Its way is then shorter by as much."""
PATIENCE_NS = 3 * MS
"""How long after its time a setpoint is waited for before the path is extrapolated."""
CATCH_UP = 0.02
"""How much faster or slower than the hand the path may be played, to make up for commands that were left out or added.
The hand's speed (0.92 of the limits at most) times this must stay within what is commanded, or commands are clamped."""
DEEP_NS = SETPOINT_PERIOD_NS + 3 * JITTER_NS
"""With a delay of so much the stream jitters more than commands may: they keep a beat of their own then, every 8 ms."""
JUMP_NS = 200 * MS
"""A path that is further off than this is not made up for but begun anew: the stream was interrupted."""


@dataclass(frozen=True)
class Command:
    """Where to be at the end of a command's time. It plays the path from `from_ns` to `path_ns`, by the robot's clock."""

    joints_deg: tuple[float, ...]
    period_ns: int
    limit_ns: int
    """How long the arm may take to get there at its limits: less than the period where the command before it has not
    had its own, so that commands close together do not add up to too much speed."""
    from_ns: int
    path_ns: int
    added_delay_ns: int


class Pacing:
    def __init__(self, axes: int) -> None:
        self._playout = guard.Playout(
            axes, period_ns=SETPOINT_PERIOD_NS, jitter_ns=JITTER_NS, delay_most_ns=DELAY_MOST_NS
        )
        self._floor_ns: int | None = None
        self._path_ns: int | None = None
        self._newest_ns = self._earlier_ns = 0
        self._delay_ns = 0
        self._clock_ns = self._wanted_ns = -JUMP_NS
        self._sent = 0
        self._sent_ns = self._until_ns = self._begun_ns = self._beat_ns = 0
        self.due_ns: int | None = None
        """When the next command is due; `None` before the first setpoint."""

    def push(self, setpoint: Setpoint, arrived_ns: int, waited: bool = False) -> bool:
        """Takes a setpoint; false: of no use, it is older than what is there, or no numbers. One that `waited` here behind a
        newer one shapes the path that is still to be played, and is no sign that the stream is late."""
        offset_ns = arrived_ns - setpoint.source_ns
        floor_ns = offset_ns if self._floor_ns is None else min(self._floor_ns, offset_ns)
        due_ns = setpoint.source_ns + floor_ns
        is_ahead = self._path_ns is None or setpoint.source_ns > self._path_ns
        heard_ns = due_ns if waited and is_ahead else arrived_ns
        if not self._playout.push(setpoint.source_ns, setpoint.joints_deg, heard_ns):
            return False
        self._floor_ns = floor_ns
        self._earlier_ns, self._newest_ns = self._newest_ns, setpoint.source_ns
        if self._delay_ns >= DEEP_NS:
            return True
        # Commands are placed by when the setpoint should have come, not by when it did; one that is whole periods late
        # tells where in a period to be, no more.
        self._wanted_ns = due_ns + (arrived_ns - due_ns) // SETPOINT_PERIOD_NS * SETPOINT_PERIOD_NS
        self._begin_anew_if_far(self._path_ns is None)
        self._sent = 0
        self._begun_ns = arrived_ns
        self.due_ns = max(arrived_ns, self._sent_ns + SPACING_NS)
        return True

    def next(self, now_ns: int) -> Command | None:
        """The command that is due now; `None` while the path has not begun."""
        is_deep = self._delay_ns >= DEEP_NS
        if is_deep:
            self._wanted_ns = now_ns
            self._begin_anew_if_far()
        period_ns = LAST_COMMAND_NS if self._sent == 2 and not is_deep else COMMAND_NS
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
        self.due_ns = max(self._begun_ns + self._sent * COMMAND_NS + patience_ns, now_ns + SPACING_NS)
        if is_deep:
            # A beat: what one command was late does not delay those after it either.
            self._beat_ns = max(self._beat_ns, now_ns - COMMAND_NS) + COMMAND_NS
            self.due_ns = max(self._beat_ns, now_ns + SPACING_NS)
        else:
            self._beat_ns = now_ns
        if sampled is None:
            return None
        self._delay_ns = sampled.added_delay_ns
        path_ns = self._clock_ns - self._floor_ns - sampled.added_delay_ns
        before_ns, self._path_ns = self._path_ns, path_ns
        if before_ns is None:
            # The path begins between two setpoints, and so with the earlier one.
            from_ns = min(self._earlier_ns, path_ns) - 1
        else:
            from_ns = before_ns if 0 <= path_ns - before_ns <= 2 * COMMAND_NS else path_ns - period_ns
        return Command(sampled.setpoint, period_ns, limit_ns, from_ns, path_ns, sampled.added_delay_ns)

    def answered(self, now_ns: int) -> None:
        """The last command's call has ended. The arm may have got it only now, and has not moved by it yet: what comes next may
        not make up for that."""
        if now_ns - self._sent_ns > PROMPT_NS:
            self._until_ns += now_ns - self._sent_ns

    def _begin_anew_if_far(self, is_first: bool = False) -> None:
        if is_first or abs(self._wanted_ns - self._clock_ns) >= JUMP_NS:
            self._clock_ns = self._wanted_ns
