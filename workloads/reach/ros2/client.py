"""The bench client: resets the arm, asks for the reach, and prints what it took as one JSON line a trial.

Exit code 0: all trials succeeded; 1: one did not; 2: the system was not there; 4: the machine held the simulator up for too long in one,
and no other failed. With --cancel-after every goal is cancelled so long
after it was sent, and `canceled` is how its trial shall end."""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Vector3
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import remove_ros_args
from reach_msgs.action import Reach
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ... import times
from ...threads import call_thread
from ..arm import Arm
from ..trial import GOAL_M, HOME_RAD, HOME_S, Heard, at_goal, exit_code, held_up, rounded
from . import names, node

STEP_S = 0.02
STATES_HOME = 10
"""Joint states at home before a goal is sent: the planner takes goals before states, and plans from the last one that it has."""
STATE_S = 1.0
"""A joint state comes within, after a result."""


class Client(Node):  # type: ignore[misc]
    def __init__(self, cancel_after_s: float | None = None) -> None:
        super().__init__("client")
        self.arm = Arm()
        self.cancel_after_s = cancel_after_s
        self.joints: np.ndarray | None = None
        self.states_home = 0
        self.heard = Heard(0)
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joint_state, names.qos(node.options_of(self)))
        self.reset = self.create_client(Trigger, names.RESET)
        self.held_up = self.create_client(Trigger, names.HELD_UP)
        self.reset_s = 0.0
        self.reacher = ActionClient(self, Reach, names.REACH)

    def join(self, step: Callable[[float], Any], stop: threading.Event) -> None:
        """Waits for the others. `step` waits for a while, and calls back what came meanwhile. Raises NotThere."""
        self.step, self.stop = step, stop
        node.until(self.reacher.server_is_ready, step, stop, f"no action {names.REACH} was found")
        node.until(self.reset.service_is_ready, step, stop, f"no service {names.RESET} was found")
        node.until(self.held_up.service_is_ready, step, stop, f"no service {names.HELD_UP} was found")
        node.until(lambda: self.joints is not None, step, stop, "no joint state came")

    def go_home(self) -> None:
        """Raises NotThere."""
        deadline_s = time.monotonic() + HOME_S
        done = self.reset.call_async(Trigger.Request())
        self.wait(done.done, deadline_s, f"the simulator did not reset within {HOME_S:g} s")
        if not done.result().success:
            raise node.NotThere("the control thread did not reset")
        self.reset_s = time.monotonic()
        self.states_home = 0
        late = f"the arm is not within {HOME_RAD} rad of home {HOME_S:g} s after a reset"
        self.wait(lambda: self.states_home >= STATES_HOME, deadline_s, late)

    def trial(self) -> dict[str, Any]:
        """Raises NotThere."""
        self.go_home()
        heard = self.heard = Heard(time.monotonic_ns())
        x, y, z = GOAL_M
        goals: list[ClientGoalHandle] = []

        def on_goal(future: Future) -> None:
            goal = future.result()
            if goal.accepted and heard is self.heard:
                heard.accepted_ns = time.monotonic_ns()
                goals.append(goal)
                goal.get_result_async().add_done_callback(on_result)

        def on_result(future: Future) -> None:
            heard.result, heard.done_ns = future.result().result, time.monotonic_ns()

        def on_feedback(message: Any) -> None:
            heard.feedback(message.feedback.state, time.monotonic_ns())

        self.reacher.send_goal_async(Reach.Goal(place=Vector3(x=x, y=y, z=z)), on_feedback).add_done_callback(on_goal)
        overdue, cancel_ns = None, heard.sent_ns + int(1e9 * (self.cancel_after_s or 0.0))
        while heard.result is None and overdue is None and not self.stop.is_set():
            self.step(STEP_S)
            now_ns = time.monotonic_ns()
            overdue = heard.overdue(now_ns) if heard.result is None else None
            if goals and (overdue or (self.cancel_after_s and now_ns > cancel_ns)):
                goals.pop().cancel_goal_async()
        figures = heard.figures("interrupted" if heard.result is None and overdue is None else overdue)
        if figures["success"]:
            joints = self.next_joints()
            figures = at_goal(figures, None if joints is None else self.arm.tool_at(joints))
        return self.with_slips(figures)

    def next_joints(self) -> np.ndarray | None:
        """Of a joint state that was sent after the result, where one comes."""
        self.joints, deadline_s = None, time.monotonic() + STATE_S
        while self.joints is None and time.monotonic() < deadline_s and not self.stop.is_set():
            self.step(STEP_S)
        return self.joints

    def with_slips(self, figures: dict[str, Any]) -> dict[str, Any]:
        """Raises NotThere."""
        since_s = time.monotonic() - self.reset_s
        told = self.held_up.call_async(Trigger.Request())
        late = f"the simulator did not say within {HOME_S:g} s how it was held up"
        self.wait(told.done, time.monotonic() + HOME_S, late)
        slips = json.loads(told.result().message)
        return held_up(figures, slips["count"], slips["total_ns"], slips["longest_ns"], since_s)

    def wait(self, condition: Callable[[], Any], deadline_s: float, late: str) -> None:
        """Raises NotThere."""
        while not condition():
            if time.monotonic() > deadline_s or self.stop.is_set():
                raise node.NotThere(late)
            self.step(STEP_S)

    def on_joint_state(self, state: JointState) -> None:
        self.joints = np.array(state.position)
        self.states_home = self.states_home + 1 if np.abs(self.joints - self.arm.home).max() < HOME_RAD else 0

    def destroy_node(self) -> None:
        self.reacher.destroy()
        super().destroy_node()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.ros2.client", description=__doc__)
    parser.add_argument("--trials", type=int, default=1, metavar="N")
    parser.add_argument("--cancel-after", type=times.within(60), metavar="TIME", help="cancel every goal")
    return parser.parse_args(remove_ros_args(sys.argv)[1:])


def run(client: Client, asked: argparse.Namespace, step: Callable[[float], Any], stop: threading.Event) -> int:
    """All trials; the exit code."""
    trials: list[dict[str, Any]] = []
    try:
        client.join(step, stop)
        for _ in range(asked.trials):
            if stop.is_set():
                break
            figures = client.trial()
            print(json.dumps(rounded(figures)), flush=True)
            if not (asked.cancel_after and figures["status"] == "canceled"):
                trials.append(figures)
    except node.NotThere as missing:
        if stop.is_set():
            return exit_code(trials)
        print(f"reach: {missing}", file=sys.stderr)
        return 2
    return exit_code(trials)


def main() -> int:
    asked, stop = arguments(), node.stopping()
    call_thread("client")
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    executor = SingleThreadedExecutor()
    client = Client(asked.cancel_after)
    executor.add_node(client)
    try:
        return run(client, asked, lambda seconds: executor.spin_once(timeout_sec=seconds), stop)
    finally:
        client.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    sys.exit(main())
