"""What the planner allows the controller: deadlines of a motion. The same on every bus."""

from dataclasses import dataclass

import numpy as np

from .codes import CONTROL_FAILED, TIMED_OUT

STATE_AGE_S = 0.2
"""Older joint states are no start for a plan."""
ACCEPTANCE_S = 0.5
"""The controller must accept within, and give feedback at least so often."""
FEEDBACK_S = 0.5
EXECUTION_SCALING, EXECUTION_MARGIN_S = 1.2, 0.5
"""The execution may take so many times the planned duration, and this: MoveIt's defaults are 1.2 (scaling) and 0.5 s (margin)."""
WARM_UP_M = np.array([0.4, -0.2, 0.5])
MONITOR_S = 0.05
"""Between two feedbacks to the client while the arm moves."""


@dataclass
class Supervision:
    """Of one motion; times of time.monotonic."""

    planned_s: float
    sent_s: float
    heard_s: float
    told_s: float = 0.0
    accepted: bool = False

    def overdue(self, now_s: float) -> tuple[int, str] | None:
        """The deadline that was missed, as the result's code and reason."""
        if not self.accepted and now_s - self.sent_s > ACCEPTANCE_S:
            return CONTROL_FAILED, "execution_failed: controller did not accept"
        if now_s - self.heard_s > FEEDBACK_S:
            return CONTROL_FAILED, "execution_failed: no feedback from the controller"
        if now_s - self.sent_s > EXECUTION_SCALING * self.planned_s + EXECUTION_MARGIN_S:
            return TIMED_OUT, "execution_failed: took too long"
        return None

    def may_tell(self, now_s: float) -> bool:
        """Whether the client shall hear again; if so, it has."""
        if now_s - self.told_s <= MONITOR_S:
            return False
        self.told_s = now_s
        return True
