"""One trial as its client sees it: the goal, the deadlines, and the figures of its JSON line. The same on every bus."""

from typing import Any

import numpy as np

from .codes import SUCCESS

GOAL_M = (0.4, 0.2, 0.5)
HOME_RAD = 1e-3
"""The arm is home within this."""
HOME_S = 5.0
"""It must be there so long after a reset."""
ACCEPTANCE_S, FEEDBACK_S, TRIAL_S = 1.0, 1.0, 12.0
"""The planner must accept within, be heard of at least so often once it has planned, and be done within."""
PLANNING_S = 6.0
GOAL_TOLERANCE_M = 0.01
MOST_SLIP, LONGEST_SLIP_NS = 0.10, 100_000_000
"""A trial is no evidence where the machine held the simulated arm up for more than this share of it, or for that long at once: the nodes'
deadlines are on real time, and the shortest is 200 ms."""


class Heard:
    """What the client has heard of a goal, and when (time.monotonic_ns)."""

    def __init__(self, sent_ns: int) -> None:
        self.sent_ns = sent_ns
        self.accepted_ns = self.monitor_ns = self.feedback_ns = self.done_ns = 0
        self.feedbacks = 0
        self.result: Any = None

    def feedback(self, state: str, now_ns: int) -> None:
        self.feedbacks += 1
        self.feedback_ns = now_ns
        if state == "MONITOR" and not self.monitor_ns:
            self.monitor_ns = now_ns

    def overdue(self, now_ns: int) -> str | None:
        """The deadline that was missed, if one was."""
        since_s = (now_ns - self.sent_ns) / 1e9
        if not self.accepted_ns and since_s > ACCEPTANCE_S:
            return "timeout: goal not accepted"
        if not self.monitor_ns and since_s > PLANNING_S:
            return "timeout: planning"
        if self.monitor_ns and now_ns - self.feedback_ns > FEEDBACK_S * 1e9:
            return "timeout: no feedback from the planner"
        if since_s > TRIAL_S:
            return "timeout: trial"
        return None

    def figures(self, overdue: str | None) -> dict[str, Any]:
        """`status` says how the trial ended; of a success it is not yet known where the tool is (`at_goal`)."""
        figures: dict[str, Any] = {"success": False, "feedbacks": self.feedbacks}
        result = self.result
        if overdue or result is None:
            figures["reason"] = overdue
        else:
            figures["success"] = result.code == SUCCESS
            if not figures["success"]:
                figures["reason"] = result.reason
            if result.planned_ns:
                figures |= self._planned()
            if result.execution.cycles:
                figures |= self._executed()
        return with_status(figures)

    def _planned(self) -> dict[str, Any]:
        result, done_ns = self.result, self.done_ns
        return {
            "accept_ms": (result.taken_ns - self.sent_ns) / 1e6,
            "planning_ms": (result.planned_ns - result.taken_ns) / 1e6,
            "planning_cpu_ms": result.planning_cpu_ns / 1e6,
            "states_checked": result.states_checked,
            "planned_ms": result.planned_s * 1e3,
            "path_rad": result.path_rad,
            "execution_ms": (done_ns - self.monitor_ns) / 1e6 if self.monitor_ns else 0.0,
            "end_to_end_ms": (done_ns - self.sent_ns) / 1e6,
            "flood_taken": result.flood_taken,
        }

    def _executed(self) -> dict[str, Any]:
        e, result = self.result.execution, self.result
        moved_ms = (e.last_command_ns - e.first_command_ns - e.slipped_ns) / 1e6
        return {
            "start_ms": (e.first_command_ns - result.planned_ns) / 1e6,
            "excess_ms": moved_ms - result.planned_s * 1e3,
            "notice_ms": (self.done_ns - e.last_command_ns) / 1e6,
            "end_to_end_excess_ms": (self.done_ns - self.sent_ns) / 1e6 - result.planned_s * 1e3,
            "control_cycles": e.cycles,
            "control_missed": e.missed,
            "control_late_ppm": 1e6 * e.late / e.cycles,
            "control_lateness_p50_us": e.lateness_p50_ns / 1e3,
            "control_lateness_p99_us": e.lateness_p99_ns / 1e3,
            "control_lateness_max_us": e.lateness_max_ns / 1e3,
            "sim_step_p50_us": e.step_p50_ns / 1e3,
            "sim_step_p99_us": e.step_p99_ns / 1e3,
            "real_time_factor": e.simulated_s / e.wall_s if e.wall_s else 1.0,
            "tracking_rms_mrad": e.tracking_rms_rad * 1e3,
            "tracking_max_mrad": e.tracking_max_rad * 1e3,
        }


def at_goal(figures: dict[str, Any], tool_m: np.ndarray | None) -> dict[str, Any]:
    """Of a success: it is one if the tool is at the goal, as a joint state said that came after it."""
    if tool_m is None:
        return with_status(figures | {"success": False, "reason": "timeout: no joint state after the result"})
    error_m = float(np.linalg.norm(tool_m - np.array(GOAL_M)))
    figures |= {"goal_error_mm": error_m * 1e3, "success": error_m < GOAL_TOLERANCE_M}
    if not figures["success"]:
        figures["reason"] = "execution_failed: tool not at the goal"
    return with_status(figures)


def held_up(figures: dict[str, Any], slips: int, total_ns: int, longest_ns: int, since_s: float) -> dict[str, Any]:
    """With how the machine held the simulated arm up in this time, whatever came of it. For labs: metrics with a gate."""
    share = min(1.0, total_ns / 1e9 / since_s)
    figures |= {
        "simulator_slips": slips,
        "simulator_slipped_ms": total_ns / 1e6,
        "simulator_slip_max_ms": longest_ns / 1e6,
        "real_time": 1.0 - share,
    }
    figures["valid"] = share <= MOST_SLIP and longest_ns <= LONGEST_SLIP_NS
    if not figures["valid"]:
        besides = "" if figures["success"] else f" (besides: {figures['reason']})"
        figures["reason"] = f"invalid: the machine held the simulated arm up for {total_ns / 1e6:.0f} ms{besides}"
        figures["success"] = False
    return with_status(figures)


def with_status(figures: dict[str, Any]) -> dict[str, Any]:
    return figures | {"status": "success" if figures["success"] else str(figures["reason"]).split(":")[0]}


def exit_code(trials: list[dict[str, Any]]) -> int:
    """0: all succeeded; 1: one did not; 4: none failed, but one is no evidence."""
    if any(not trial["success"] and trial["valid"] for trial in trials):
        return 1
    return 4 if any(not trial["valid"] for trial in trials) else 0


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}
