"""The simulator: the action in front of the controller, and the reset. The control thread is in C
(reach_controller/), the arm a process of its own."""

import json
import sys
import threading
from collections import deque
from collections.abc import Callable

from rclpy.action import CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from reach_msgs.action import Follow
from std_srvs.srv import Trigger

from ...threads import call_thread
from ..robot import Arm, RobotError
from ..trajectory import Refused, Trajectory
from . import names, node
from .controller import Controller, ControllerError, News

CONTROL_FAILED = -4


class Simulator(Node):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__("simulator")
        options = node.options_of(self)
        try:
            self.arm = Arm(options.stall_limit)
            self.controller = Controller(options, self.arm)
        except (RobotError, ControllerError) as failure:
            raise node.NotThere(str(failure)) from failure
        self.goal: ServerGoalHandle | None = None
        self.heard: deque[tuple[int, News]] = deque()
        self.has_heard = self.create_guard_condition(self.on_news)
        self.create_service(Trigger, names.RESET, self.on_reset)
        self.create_service(Trigger, names.HELD_UP, self.on_held_up)
        self.server = node.serve(self, Follow, names.FOLLOW)
        self.closed = threading.Event()
        self.listener = threading.Thread(target=self.listen, name="news")
        self.listener.start()

    def join(self, step: Callable[[float], None], stop: threading.Event) -> None:
        """The first to start."""

    def listen(self) -> None:
        """A thread of its own: what the controller says goes into the executor."""
        call_thread("news")
        while not self.closed.is_set():
            kind, news = self.controller.news()
            if kind != Controller.NONE:
                self.heard.append((kind, news))
                self.has_heard.trigger()

    def on_goal(self, goal: Follow.Goal) -> GoalResponse:
        try:
            Trajectory.of(goal.trajectory.points)
        except Refused as why:
            print(f"reach: a trajectory was refused: {why}", file=sys.stderr)
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT if self.goal is None else GoalResponse.REJECT

    def on_accepted(self, goal: ServerGoalHandle) -> None:
        self.goal = goal
        if not self.controller.follow(Trajectory.of(goal.request.trajectory.points)):
            self.finish(News(), "the control thread does not answer")

    def on_cancel(self, _: ServerGoalHandle) -> CancelResponse:
        self.controller.cancel()
        return CancelResponse.ACCEPT

    def on_news(self) -> None:
        while self.heard:
            kind, news = self.heard.popleft()
            if self.goal is None:
                continue
            if kind == Controller.ENDED:
                self.finish(news, news.reason)
            else:
                self.goal.publish_feedback(Follow.Feedback(elapsed_s=news.elapsed_s, error_rad=news.error_rad))

    def finish(self, news: News, reason: str) -> None:
        """The result is sent by the executor's next task."""
        goal, self.goal = self.goal, None
        result = Follow.Result(code=CONTROL_FAILED if reason else 0, reason=reason, execution=news.execution)

        def end(goal: ServerGoalHandle) -> Follow.Result:
            if not reason:
                goal.succeed()
            elif goal.is_cancel_requested:
                goal.canceled()
            else:
                goal.abort()
            return result

        assert goal
        goal.execute(end)

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.controller.reset()
        if self.goal:
            self.finish(News(), "reset")
        return response

    def on_held_up(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """As one JSON object."""
        slips = self.arm.held_up(self.controller.slips())
        response.success, response.message = True, json.dumps(vars(slips))
        return response

    def destroy_node(self) -> None:
        self.closed.set()
        self.listener.join()
        self.controller.close()
        self.arm.close()
        self.server.destroy()
        super().destroy_node()


if __name__ == "__main__":
    # The thread of the news must not wait for the executor's for CPython's usual 5 ms.
    sys.setswitchinterval(0.0005)
    sys.exit(node.main("simulator", Simulator, sys.argv[1:]))
