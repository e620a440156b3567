"""The bench client: resets the arm, asks for the reach, and prints what it took as one JSON line a trial.

Exit code 0: all trials succeeded; 1: one did not; 2: the system was not there; 4: the machine held the simulator up for too long in one,
and no other failed. A line says as `status` how the trial ended, success, planning_failed, execution_failed, timeout or invalid, and of all
but the first as `reason` what it was."""

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import taut

from . import messages as m
from . import node, options, topics
from .arm import Arm
from .bus import Bus, BusError
from .trial import GOAL_M, HOME_RAD, HOME_S, Heard, at_goal, exit_code, held_up, rounded


class Client:
    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.arm = Arm()
        self.id = secrets.randbits(63)
        self.count = 0
        self.joints: np.ndarray | None = None
        self.resets: set[int] = set()
        self.reset_s = 0.0
        self.slips: m.HeldUpReply | None = None
        self.heard = Heard(0)
        self.goal_id: list[int] = []
        self.reset = bus.publisher(topics.RESET)
        self.goal = bus.publisher(topics.REACH_GOAL)
        self.ask_held_up = bus.publisher(topics.ASK_HELD_UP)
        bus.subscribe(topics.JOINT_STATES, self._joint_state)
        bus.subscribe(topics.RESET_DONE, self._reset_done)
        bus.subscribe(topics.HELD_UP, self._held_up)
        bus.subscribe(topics.REACH_ACCEPTED, self._accepted)
        bus.subscribe(topics.REACH_FEEDBACK, self._feedback)
        bus.subscribe(topics.REACH_RESULT, self._result)

    def join(self) -> None:
        """Waits for the others. Raises BusError."""
        self.bus.until_joined(
            node.JOIN_S,
            topics.RESET,
            topics.RESET_DONE,
            topics.ASK_HELD_UP,
            topics.HELD_UP,
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
        self._ask(lambda: self.reset(m.ResetRequest(self.id, self.count)), lambda: self.count in self.resets, "reset")
        self.reset_s = time.monotonic()
        self.joints = None
        while self.joints is None or np.abs(self.joints - self.arm.home).max() > HOME_RAD:
            if time.monotonic() > deadline_s:
                raise BusError(f"the arm is not within {HOME_RAD} rad of home {HOME_S:g} s after a reset")
            self.bus.spin_once(0.05)

    def _ask(self, ask: Callable[[], None], is_answered: Callable[[], bool], what: str) -> None:
        """Asks the simulator until it answers. Raises BusError."""
        deadline_s, asked_s = time.monotonic() + HOME_S, 0.0
        while not is_answered():
            now_s = time.monotonic()
            if now_s > deadline_s:
                raise BusError(f"the simulator did not {what} within {HOME_S:g} s")
            if now_s > asked_s + 0.5:
                ask()
                asked_s = now_s
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
        figures = self._with_slips(figures)
        if figures["success"]:
            taut.applied(id_)
        else:
            taut.drop(id_, figures["status"])
        return figures

    def _tool(self) -> np.ndarray | None:
        """Where the tool is now: by a joint state sent after the result, where one comes."""
        self.joints, deadline_s = None, time.monotonic() + 1.0
        while self.joints is None and time.monotonic() < deadline_s:
            self.bus.spin_once(0.05)
        return None if self.joints is None else self.arm.tool_at(self.joints)

    def _with_slips(self, figures: dict[str, Any]) -> dict[str, Any]:
        """Raises BusError."""
        self.slips = None
        since_s = time.monotonic() - self.reset_s
        self.count += 1
        ask = m.HeldUpRequest(self.id, self.count)
        self._ask(lambda: self.ask_held_up(ask), lambda: self.slips is not None, "say how it was held up")
        slips: m.HeldUpReply | None = self.slips
        assert slips
        return held_up(figures, slips.slips, slips.total_ns, slips.longest_ns, since_s)

    def _joint_state(self, state: m.JointState) -> None:
        self.joints = np.array(state.position)

    def _reset_done(self, reply: m.ResetReply) -> None:
        if reply.client == self.id:
            self.resets.add(reply.count)

    def _held_up(self, reply: m.HeldUpReply) -> None:
        if (reply.client, reply.count) == (self.id, self.count):
            self.slips = reply

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
    trials: list[dict[str, Any]] = []

    def run(_: options.Options, bus: Bus, stop: node.Stop) -> None:
        client = Client(bus)
        client.join()
        for _number in range(parsed.trials):
            if stop.is_set():
                break
            trials.append(client.trial())
            print(json.dumps(rounded(trials[-1])), flush=True)

    return node.main("client", run, options.chosen(parsed)) or exit_code(trials)


if __name__ == "__main__":
    sys.exit(main())
