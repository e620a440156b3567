"""The planner process: takes goals, plans, has the controller follow, says how it went.

One thread calls every handler in turn, as a single-threaded executor of ROS 2 does: while it plans, it takes nothing."""

import argparse
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import taut

from . import messages as m
from . import node, options, topics
from .arm import JOINTS, Vector
from .bus import Bus
from .codes import CONTROL_FAILED, PLANNING_FAILED, SUCCESS
from .planning import Planner, PlanningFailed
from .supervision import STATE_AGE_S, WARM_UP_M, Supervision
from .trajectory import Trajectory


@dataclass
class Running:
    """A goal that is being executed."""

    result: m.ReachResult
    supervision: Supervision


class PlannerNode:
    def __init__(self, chosen: options.Options, bus: Bus) -> None:
        self.planner = Planner(chosen.seed)
        self.client = secrets.randbits(64)
        self.count = 0
        self.joints: Vector | None = None
        self.joints_s = 0.0
        self.running: Running | None = None
        self.flood_taken = 0
        self.follow: Callable[[m.FollowRequest], None] = bus.publisher(topics.FOLLOW_GOAL)
        self.accepted: Callable[[m.ReachReply], None] = bus.publisher(topics.REACH_ACCEPTED)
        self.feedback: Callable[[m.ReachFeedback], None] = bus.publisher(topics.REACH_FEEDBACK)
        self.result: Callable[[m.ReachResult], None] = bus.publisher(topics.REACH_RESULT)
        bus.subscribe(topics.JOINT_STATES, self._joint_state)
        bus.subscribe(topics.REACH_GOAL, self._goal)
        bus.subscribe(topics.FOLLOW_ACCEPTED, self._follow_accepted)
        bus.subscribe(topics.FOLLOW_FEEDBACK, self._follow_feedback)
        bus.subscribe(topics.FOLLOW_RESULT, self._follow_result)
        for number in range(1, chosen.listen + 1):
            bus.subscribe(topics.flood(number), self._flood)

    def warm_up(self) -> None:
        """Plans once, so that what is loaded at first use does not delay the first goal."""
        self.planner.plan(self.planner.arm.home, WARM_UP_M)

    def _joint_state(self, state: m.JointState) -> None:
        self.joints, self.joints_s = np.array(state.position), time.monotonic()

    def _flood(self, _: m.String) -> None:
        self.flood_taken += 1

    def _goal(self, request: m.ReachRequest) -> None:
        taken_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        goal_id = list(request.goal_id)
        taut.stamp("planner.goal_taken", m.message_id(goal_id))
        self.accepted(m.ReachReply(request.client, request.count, self.running is None, taken_ns))
        if self.running:
            return
        self.feedback(m.ReachFeedback(goal_id, "PLANNING"))
        result = m.ReachResult(
            request.client, request.count, goal_id, 0, "", taken_ns, 0, 0, 0, 0.0, 0.0, m.Execution(), self.flood_taken
        )
        self.flood_taken = 0
        try:
            if self.joints is None or taken_ns / 1e9 - self.joints_s > STATE_AGE_S:
                raise PlanningFailed("no fresh joint state")
            place = np.array([request.place.x, request.place.y, request.place.z])
            with taut.work("plan"):
                plan = self.planner.plan(self.joints, place)
        except PlanningFailed as failure:
            self._finish(result, PLANNING_FAILED, f"planning_failed: {failure}")
            return
        result.planned_ns, result.planning_cpu_ns = time.monotonic_ns(), time.thread_time_ns() - cpu_ns
        result.states_checked, result.planned_s = plan.states_checked, plan.trajectory.duration_s
        result.path_rad = plan.path_rad
        taut.stamp("planner.planned", m.message_id(goal_id))
        self.feedback(m.ReachFeedback(goal_id, "MONITOR"))
        self.count += 1
        now_s = time.monotonic()
        self.running = Running(result, Supervision(result.planned_s, now_s, now_s))
        self.follow(m.FollowRequest(self.client, self.count, goal_id, travelling(plan.trajectory)))

    def _follow_accepted(self, reply: m.FollowReply) -> None:
        if self.running and (reply.client, reply.count) == (self.client, self.count):
            if not reply.accepted:
                return self._finish(self.running.result, CONTROL_FAILED, "execution_failed: controller refused")
            supervision = self.running.supervision
            supervision.accepted, supervision.heard_s = True, time.monotonic()

    def _follow_feedback(self, feedback: m.FollowFeedback) -> None:
        if self._is_of_running(feedback.goal_id):
            assert self.running
            self.running.supervision.heard_s = time.monotonic()

    def _follow_result(self, result: m.FollowResult) -> None:
        if self._is_of_running(result.goal_id):
            assert self.running
            taut.stamp("planner.result_taken", m.message_id(list(result.goal_id)))
            self.running.result.execution = result.execution
            code = CONTROL_FAILED if result.code else SUCCESS
            self._finish(self.running.result, code, f"execution_failed: {result.reason}" if result.code else "")

    def _is_of_running(self, goal_id: list[int]) -> bool:
        return self.running is not None and list(goal_id) == self.running.result.goal_id

    def watch(self) -> None:
        """Deadlines of the goal that runs, and word to the client that it does."""
        running, now_s = self.running, time.monotonic()
        if not running:
            return
        if overdue := running.supervision.overdue(now_s):
            self._finish(running.result, *overdue)
        elif running.supervision.may_tell(now_s):
            self.feedback(m.ReachFeedback(running.result.goal_id, "MONITOR"))

    def _finish(self, result: m.ReachResult, code: int, reason: str) -> None:
        result.code, result.reason, result.flood_taken = code, reason, self.flood_taken
        self.running = None
        self.result(result)


def travelling(trajectory: Trajectory) -> m.JointTrajectory:
    points = [
        m.JointTrajectoryPoint(position.tolist(), speed.tolist(), [], [], m.Time.of(round(1e9 * time_s)))
        for time_s, position, speed in zip(trajectory.times_s, trajectory.positions, trajectory.speeds, strict=True)
    ]
    return m.JointTrajectory(m.Header(), list(JOINTS), points)


def run(chosen: options.Options, bus: Bus, stop: node.Stop) -> None:
    planner = PlannerNode(chosen, bus)
    bus.until_joined(
        node.JOIN_S,
        topics.JOINT_STATES,
        topics.FOLLOW_GOAL,
        topics.FOLLOW_ACCEPTED,
        topics.FOLLOW_FEEDBACK,
        topics.FOLLOW_RESULT,
    )
    while planner.joints is None and not stop.is_set():
        bus.spin_once(0.1)
    planner.warm_up()
    print("ready", flush=True)
    while not stop.is_set():
        bus.spin_once(0.02)
        planner.watch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.planner", description=__doc__)
    options.add(parser)
    sys.exit(node.main("planner", run, options.chosen(parser.parse_args())))
