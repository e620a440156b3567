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
from .trial import GOAL_M, HOME_RAD, HOME_S, Heard, at_goal, rounded


class Client:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.arm = Arm()
        self.id = secrets.randbits(63)
        self.count = 0
        self.joints: np.ndarray | None = None
        self.resets: set[int] = set()
        self.heard = Heard(0)
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
        deadline_s = time.monotonic() + HOME_S
        self.count += 1
        asked_s = 0.0
        while self.count not in self.resets:
            now_s = time.monotonic()
            if now_s > deadline_s:
                raise BusError(f"the simulator did not reset within {HOME_S:g} s")
            if now_s > asked_s + 0.5:
                self.reset(m.ResetRequest(self.id, self.count))
                asked_s = now_s
            self.bus.spin_once(0.05)
        self.joints = None
        while self.joints is None or np.abs(self.joints - self.arm.home).max() > HOME_RAD:
            if time.monotonic() > deadline_s:
                raise BusError(f"the arm is not within {HOME_RAD} rad of home {HOME_S:g} s after a reset")
            self.bus.spin_once(0.05)

    def trial(self) -> dict[str, Any]:
        """Raises BusError."""
        self.go_home()
        self.count += 1
        self.goal_id = list(secrets.token_bytes(16))
        id_ = m.message_id(self.goal_id)
        heard = self.heard = Heard(time.monotonic_ns())
        taut.stamp("client.goal_sent", id_)
        self.goal(m.ReachRequest(self.id, self.count, self.goal_id, m.Vector3(*GOAL_M)))
        overdue = None
        while heard.result is None and overdue is None:
            self.bus.spin_once(0.02)
            overdue = heard.overdue(time.monotonic_ns()) if heard.result is None else None
        heard.done_ns = time.monotonic_ns()
        if heard.result is not None:
            taut.stamp("client.result_taken", id_)
        figures = heard.figures(overdue)
        if figures["success"]:
            figures = at_goal(figures, self._tool())
        if figures["success"]:
            taut.applied(id_)
        else:
            taut.drop(id_, figures["status"])
        return figures

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
            self.heard.accepted_ns = time.monotonic_ns()

    def _feedback(self, feedback: m.ReachFeedback) -> None:
        if list(feedback.goal_id) == self.goal_id:
            self.heard.feedback(feedback.state, time.monotonic_ns())

    def _result(self, result: m.ReachResult) -> None:
        if list(result.goal_id) == self.goal_id:
            self.heard.result = result


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
