"""The planner: takes goals, plans, has the controller follow, says how it went.

While it plans it takes nothing, as its callbacks are of one group: under a single-threaded executor and under a multi-threaded one."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Vector3
from rclpy.action import ActionClient, CancelResponse, GoalResponse
from rclpy.action.client import ClientGoalHandle
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.task import Future
from reach_msgs.action import Follow, Reach
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ..arm import JOINTS
from ..codes import CONTROL_FAILED, PLANNING_FAILED, PREEMPTED, SUCCESS
from ..planning import Planner, PlanningFailed
from ..supervision import STATE_AGE_S, WARM_UP_M, Supervision
from ..trajectory import Trajectory
from . import names, node

WATCH_S = 0.02


@dataclass
class Running:
    """A goal that is planned or executed."""

    goal: ServerGoalHandle
    result: Reach.Result
    supervision: Supervision | None = None
    follow: ClientGoalHandle | None = None


class PlannerNode(Node):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__("planner")
        options = node.options_of(self)
        self.planner = Planner(options.seed)
        self.joints: np.ndarray | None = None
        self.joints_s = 0.0
        self.running: Running | None = None
        self.taken_ns = 0
        self.flood_taken = 0
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joint_state, names.qos(options))
        for number in range(1, options.listen + 1):
            self.create_subscription(String, names.flood(number), self.on_flood, names.flood_qos(options))
        self.follower = ActionClient(self, Follow, names.FOLLOW)
        self.server = node.serve(self, Reach, names.REACH)
        self.create_timer(WATCH_S, self.on_watch)

    def join(self, step: Callable[[float], None], stop: threading.Event) -> None:
        node.until(lambda: self.joints is not None, step, stop, "no joint state came")
        node.until(self.follower.server_is_ready, step, stop, f"no action {names.FOLLOW} was found")
        # So that the first goal does not pay for what is loaded at first use.
        self.planner.plan(self.planner.arm.home, WARM_UP_M)

    def on_joint_state(self, state: JointState) -> None:
        self.joints, self.joints_s = np.array(state.position), time.monotonic()

    def on_flood(self, _: String) -> None:
        self.flood_taken += 1

    def on_goal(self, _: Reach.Goal) -> GoalResponse:
        self.taken_ns = time.monotonic_ns()
        return GoalResponse.REJECT if self.running else GoalResponse.ACCEPT

    def on_accepted(self, goal: ServerGoalHandle) -> None:
        """Plans, and hands over. Nothing is awaited: rclpy's executors do not sleep while a coroutine waits."""
        cpu_ns = time.thread_time_ns()
        result = Reach.Result(taken_ns=self.taken_ns, flood_taken=self.flood_taken)
        self.running, self.flood_taken = Running(goal, result), 0
        goal.publish_feedback(Reach.Feedback(state="PLANNING"))
        self.get_logger().info("goal accepted")
        try:
            if self.joints is None or self.taken_ns / 1e9 - self.joints_s > STATE_AGE_S:
                raise PlanningFailed("no fresh joint state")
            plan = self.planner.plan(self.joints, place_of(goal.request.place))
        except PlanningFailed as failure:
            self.finish(self.running, PLANNING_FAILED, f"planning_failed: {failure}")
            return
        result.planned_ns, result.planning_cpu_ns = time.monotonic_ns(), time.thread_time_ns() - cpu_ns
        result.states_checked, result.planned_s = plan.states_checked, plan.trajectory.duration_s
        result.path_rad = plan.path_rad
        goal.publish_feedback(Reach.Feedback(state="MONITOR"))
        now_s = time.monotonic()
        self.running.supervision = Supervision(result.planned_s, now_s, now_s)
        sent = self.follower.send_goal_async(Follow.Goal(trajectory=travelling(plan.trajectory)), self.on_feedback)
        sent.add_done_callback(self.of(self.running, self.on_follow))

    def of(self, running: Running, callback: Callable[[Running, Any], None]) -> Callable[[Future], None]:
        """The callback with a future's result, unless its goal is over."""

        def call(future: Future) -> None:
            if self.running is running:
                callback(running, future.result())

        return call

    def on_follow(self, running: Running, follow: ClientGoalHandle) -> None:
        assert running.supervision
        if not follow.accepted:
            return self.finish(running, CONTROL_FAILED, "execution_failed: controller refused")
        running.supervision.accepted, running.supervision.heard_s = True, time.monotonic()
        running.follow = follow
        follow.get_result_async().add_done_callback(self.of(running, self.on_result))
        if running.goal.is_cancel_requested:
            follow.cancel_goal_async()

    def on_feedback(self, _: Any) -> None:
        if self.running and self.running.supervision:
            self.running.supervision.heard_s = time.monotonic()

    def on_result(self, running: Running, response: Any) -> None:
        followed = response.result
        running.result.execution = followed.execution
        if not followed.code:
            self.finish(running, SUCCESS, "")
        elif running.goal.is_cancel_requested:
            self.finish(running, PREEMPTED, "canceled: by the client")
        else:
            self.finish(running, CONTROL_FAILED, f"execution_failed: {followed.reason}")

    def on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        if self.running and self.running.follow:
            self.running.follow.cancel_goal_async()
        return CancelResponse.ACCEPT

    def on_watch(self) -> None:
        """Deadlines of the goal that runs, and word to the client that it does."""
        running, now_s = self.running, time.monotonic()
        if not running or not running.supervision:
            return
        if overdue := running.supervision.overdue(now_s):
            if running.follow:
                running.follow.cancel_goal_async()
            self.finish(running, *overdue)
        elif running.supervision.may_tell(now_s):
            running.goal.publish_feedback(Reach.Feedback(state="MONITOR"))

    def finish(self, running: Running, code: int, reason: str) -> None:
        """The result is sent by the executor's next task."""
        result = running.result
        result.code, result.reason, result.flood_taken = code, reason, self.flood_taken
        self.running = None
        self.get_logger().info(f"goal over: {reason or 'success'}")

        def end(goal: ServerGoalHandle) -> Reach.Result:
            if code == SUCCESS:
                goal.succeed()
            elif goal.is_cancel_requested:
                goal.canceled()
            else:
                goal.abort()
            return result

        running.goal.execute(end)

    def destroy_node(self) -> None:
        self.server.destroy()
        self.follower.destroy()
        super().destroy_node()


def place_of(vector: Vector3) -> np.ndarray:
    return np.array([vector.x, vector.y, vector.z])


def travelling(trajectory: Trajectory) -> JointTrajectory:
    def after(time_s: float) -> Duration:
        time_ns = round(1e9 * time_s)
        return Duration(sec=time_ns // 1_000_000_000, nanosec=time_ns % 1_000_000_000)

    points = [
        JointTrajectoryPoint(positions=position, velocities=speed, time_from_start=after(float(time_s)))
        for time_s, position, speed in zip(trajectory.times_s, trajectory.positions, trajectory.speeds, strict=True)
    ]
    return JointTrajectory(joint_names=list(JOINTS), points=points)


if __name__ == "__main__":
    sys.exit(node.main("planner", PlannerNode, sys.argv[1:]))
