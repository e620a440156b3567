"""The bench client: resets the arm, asks for the reach, and prints what it took as one JSON line a trial.

Exit code 0: all trials succeeded; 1: one did not; 2: the system was not there. A line says as `status` how the trial ended, success,
planning_failed, execution_failed or timeout, and of a failure as `reason` what it was."""

import argparse
import json
import secrets
import sys
import time
from typing import Any

import numpy as np
import taut

from . import messages as m
from . import node, options, topics
from .arm import Arm
from .bus import Bus, BusError

GOAL_M = (0.4, 0.2, 0.5)
HOME_RAD = 1e-3
"""The arm is home within this."""
ACCEPTANCE_S, FEEDBACK_S, TRIAL_S = 1.0, 1.0, 12.0
"""The planner must accept within, be heard of at least so often once it has planned, and be done within."""
PLANNING_S = 6.0
GOAL_TOLERANCE_M = 0.01


class Client:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.arm = Arm()
        self.id = secrets.randbits(63)
        self.count = 0
        self.joints: np.ndarray | None = None
        self.resets: set[int] = set()
        self.heard: dict[str, Any] = {}
        self.feedbacks = 0
        self.goal_id: list[int] = []
        self.reset = bus.publisher(topics.RESET)
        self.goal = bus.publisher(topics.REACH_GOAL)
        bus.subscribe(topics.JOINT_STATES, self._joint_state)
        bus.subscribe(topics.RESET_DONE, self._reset_done)
        bus.subscribe(topics.REACH_ACCEPTED, self._accepted)
        bus.subscribe(topics.REACH_FEEDBACK, self._feedback)
        bus.subscribe(topics.REACH_RESULT, self._result)

    def join(self) -> None:
        """Waits for the others. Raises BusError."""
        self.bus.until_joined(
            node.JOIN_S,
            topics.RESET,
            topics.RESET_DONE,
            topics.REACH_GOAL,
            topics.REACH_ACCEPTED,
            topics.REACH_FEEDBACK,
            topics.REACH_RESULT,
            topics.JOINT_STATES,
        )

    def go_home(self) -> None:
        """Raises BusError."""
        deadline_s = time.monotonic() + 5.0
        self.count += 1
        asked_s = 0.0
        while self.count not in self.resets:
            now_s = time.monotonic()
            if now_s > deadline_s:
                raise BusError("the simulator did not reset within 5 s")
            if now_s > asked_s + 0.5:
                self.reset(m.ResetRequest(self.id, self.count))
                asked_s = now_s
            self.bus.spin_once(0.05)
        self.joints = None
        while self.joints is None or np.abs(self.joints - self.arm.home).max() > HOME_RAD:
            if time.monotonic() > deadline_s:
                raise BusError(f"the arm is not within {HOME_RAD} rad of home 5 s after a reset")
            self.bus.spin_once(0.05)

    def trial(self) -> dict[str, Any]:
        """Raises BusError."""
        self.go_home()
        self.count += 1
        self.heard, self.feedbacks = {}, 0
        self.goal_id = list(secrets.token_bytes(16))
        id_ = m.message_id(self.goal_id)
        sent_ns = time.monotonic_ns()
        taut.stamp("client.goal_sent", id_)
        self.goal(m.ReachRequest(self.id, self.count, self.goal_id, m.Vector3(*GOAL_M)))
        overdue = self._wait(sent_ns / 1e9)
        done_ns = time.monotonic_ns()
        if "result" in self.heard:
            taut.stamp("client.result_taken", id_)
        figures = self._figures(sent_ns, done_ns, overdue)
        figures["status"] = "success" if figures["success"] else str(figures["reason"]).split(":")[0]
        if figures["success"]:
            taut.applied(id_)
        else:
            taut.drop(id_, figures["status"])
        return figures

    def _wait(self, sent_s: float) -> str | None:
        """Until the result is here. The deadline that was missed, if one was."""
        while "result" not in self.heard:
            now_s = time.monotonic()
            if "accepted" not in self.heard and now_s - sent_s > ACCEPTANCE_S:
                return "timeout: goal not accepted"
            if "monitor" not in self.heard and now_s - sent_s > PLANNING_S:
                return "timeout: planning"
            if "monitor" in self.heard and now_s - self.heard["feedback"] > FEEDBACK_S:
                return "timeout: no feedback from the planner"
            if now_s - sent_s > TRIAL_S:
                return "timeout: trial"
            self.bus.spin_once(0.02)
        return None

    def _figures(self, sent_ns: int, done_ns: int, overdue: str | None) -> dict[str, Any]:
        result: m.ReachResult | None = self.heard.get("result")
        figures: dict[str, Any] = {"success": False, "feedbacks": self.feedbacks}
        if overdue or result is None:
            return figures | {"reason": overdue}
        if result.code != m.SUCCESS:
            figures["reason"] = result.reason
        if result.planned_ns:
            execution_ns = done_ns - self.heard.get("monitor", done_ns)
            figures |= {
                "accept_ms": (result.taken_ns - sent_ns) / 1e6,
                "planning_ms": (result.planned_ns - result.taken_ns) / 1e6,
                "planning_cpu_ms": result.planning_cpu_ns / 1e6,
                "states_checked": result.states_checked,
                "planned_ms": result.planned_s * 1e3,
                "path_rad": result.path_rad,
                "execution_ms": execution_ns / 1e6,
                "end_to_end_ms": (done_ns - sent_ns) / 1e6,
                "flood_taken": result.flood_taken,
            }
        if result.execution.cycles:
            figures |= self._executed(result, sent_ns, done_ns)
        if result.code == m.SUCCESS:
            error_m = float(np.linalg.norm(self._tool() - np.array(GOAL_M)))
            figures |= {"goal_error_mm": error_m * 1e3, "success": error_m < GOAL_TOLERANCE_M}
            if not figures["success"]:
                figures["reason"] = "execution_failed: tool not at the goal"
        return figures

    def _executed(self, result: m.ReachResult, sent_ns: int, done_ns: int) -> dict[str, float]:
        e = result.execution
        moved_ms = (e.last_command_ns - e.first_command_ns) / 1e6
        return {
            "start_ms": (e.first_command_ns - result.planned_ns) / 1e6,
            "excess_ms": moved_ms - result.planned_s * 1e3,
            "notice_ms": (done_ns - e.last_command_ns) / 1e6,
            "end_to_end_excess_ms": (done_ns - sent_ns) / 1e6 - result.planned_s * 1e3,
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

    def _tool(self) -> np.ndarray:
        """Where the tool is now: by a joint state sent after the result."""
        self.joints, deadline_s = None, time.monotonic() + 1.0
        while self.joints is None:
            if time.monotonic() > deadline_s:
                raise BusError("no joint state within 1 s after the result")
            self.bus.spin_once(0.05)
        return self.arm.tool_at(self.joints)

    def _joint_state(self, state: m.JointState) -> None:
        self.joints = np.array(state.position)

    def _reset_done(self, reply: m.ResetReply) -> None:
        if reply.client == self.id:
            self.resets.add(reply.count)

    def _accepted(self, reply: m.ReachReply) -> None:
        if (reply.client, reply.count) == (self.id, self.count) and reply.accepted:
            self.heard["accepted"] = time.monotonic_ns()

    def _feedback(self, feedback: m.ReachFeedback) -> None:
        if list(feedback.goal_id) == self.goal_id:
            self.feedbacks += 1
            self.heard["feedback"] = time.monotonic()
            if feedback.state == "MONITOR":
                self.heard.setdefault("monitor", time.monotonic_ns())

    def _result(self, result: m.ReachResult) -> None:
        if list(result.goal_id) == self.goal_id:
            self.heard["result"] = result


def rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in figures.items()}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.client", description=__doc__)
    parser.add_argument("--trials", type=int, default=1, metavar="N")
    options.add(parser)
    parsed = parser.parse_args()
    failed = 0

    def run(_: options.Options, bus: Bus, stop: node.Stop) -> None:
        nonlocal failed
        client = Client(bus)
        client.join()
        for _number in range(parsed.trials):
            if stop.is_set():
                break
            figures = client.trial()
            failed += not figures["success"]
            print(json.dumps(rounded(figures)), flush=True)

    return node.main("client", run, options.chosen(parsed)) or (1 if failed else 0)


if __name__ == "__main__":
    sys.exit(main())
