"""The simulator process: the node in front of the arm and its controller, which are processes of their own (robot.py, controller.py). A thread takes
messages, another one publishes."""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

import taut

from ..threads import call_thread
from . import messages as m
from . import options, topics
from .arm import JOINTS
from .bus import Bus, BusError, open_bus
from .controller import Controller, Ended, Progress, State
from .robot import Arm, RobotError, Slips
from .trajectory import Refused, Trajectory

RESET_S = 1.0


@dataclass
class Simulator:
    """What the threads share."""

    arm: Arm
    controller: Controller
    stop: threading.Event = field(default_factory=threading.Event)
    failed: bool = False
    asked: int = 0
    """Resets."""
    state: State | None = None
    has_state: threading.Condition = field(default_factory=threading.Condition)

    def serve(self, part: Callable[[Bus], None], bus: Bus) -> None:
        """A thread. However it ends, the process does: without one of its threads the others would wait for it."""
        try:
            part(bus)
        finally:
            if not self.stop.is_set():
                self.failed = True
            self.stop.set()
            with self.has_state:
                self.has_state.notify_all()

    def publish(self, bus: Bus) -> None:
        """The publishing thread, until the controller ends."""
        call_thread("publish")
        joint_states = bus.publisher(topics.JOINT_STATES)
        feedback, result = bus.publisher(topics.FOLLOW_FEEDBACK), bus.publisher(topics.FOLLOW_RESULT)
        taut.prepare_thread()
        for news in self.controller.news():
            match news:
                case State():
                    now_ns = time.time_ns()
                    header = m.Header(m.Time.of(now_ns), "panda_link0")
                    taut.stamp("joint_states.published", now_ns)
                    joint_states(m.JointState(header, list(JOINTS), news.positions, news.speeds, news.efforts))
                    with self.has_state:
                        self.state = news
                        self.has_state.notify_all()
                case Progress():
                    feedback(m.FollowFeedback(news.goal_id, news.elapsed_s, news.error_rad))
                case Ended():
                    code = 0 if not news.reason else -4
                    result(m.FollowResult(0, 0, news.goal_id, code, news.reason, news.execution))

    def take(self, bus: Bus) -> None:
        """The thread that takes messages."""
        call_thread("take")
        accepted, reset = bus.publisher(topics.FOLLOW_ACCEPTED), bus.publisher(topics.RESET_DONE)
        held_up = bus.publisher(topics.HELD_UP)
        bus.subscribe(topics.FOLLOW_GOAL, lambda request: self._follow(request, accepted))
        bus.subscribe(topics.RESET, lambda request: self._reset(request, reset))
        bus.subscribe(topics.ASK_HELD_UP, lambda request: self._tell(request, held_up))
        taut.prepare_thread()
        with self.has_state:
            self.has_state.wait_for(lambda: self.state or self.stop.is_set())
        if self.state:
            print("ready", flush=True)
        while not self.stop.is_set():
            bus.spin_once(0.1)

    def _follow(self, request: m.FollowRequest, accepted: Callable[[m.FollowReply], None]) -> None:
        taut.stamp("controller.trajectory_taken", m.message_id(request.goal_id))
        try:
            self.controller.follow(list(request.goal_id), Trajectory.of(request.trajectory.points))
        except Refused as why:
            print(f"reach: a trajectory was refused: {why}", file=sys.stderr)
            accepted(m.FollowReply(request.client, request.count, False))
        else:
            accepted(m.FollowReply(request.client, request.count, True))

    def _reset(self, request: m.ResetRequest, done: Callable[[m.ResetReply], None]) -> None:
        self.asked += 1
        self.controller.reset(self.asked)
        with self.has_state:
            is_done = self.has_state.wait_for(lambda: self.state and self.state.resets == self.asked, RESET_S)
        if is_done:
            done(m.ResetReply(request.client, request.count))

    def _tell(self, request: m.HeldUpRequest, told: Callable[[m.HeldUpReply], None]) -> None:
        slips = self.arm.held_up(self.state.slips if self.state else Slips())
        told(m.HeldUpReply(request.client, request.count, slips.count, slips.total_ns, slips.longest_ns))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.simulator", description=__doc__)
    options.add(parser)
    chosen = options.chosen(parser.parse_args())
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    call_thread("simulator")
    try:
        with closing(open_bus(chosen)) as bus, closing(Arm(chosen.stall_limit)) as arm:
            with closing(Controller(arm, chosen)) as controller:
                simulator = Simulator(arm, controller, stop)
                publish = threading.Thread(target=simulator.serve, args=(simulator.publish, bus), name="publish")
                take = threading.Thread(target=simulator.serve, args=(simulator.take, bus), name="take", daemon=True)
                publish.start()
                take.start()
                stop.wait()
            publish.join(2.0)
            take.join(2.0)
    except (BusError, RobotError) as failure:
        print(f"reach: {failure}", file=sys.stderr)
        return 2
    return 2 if simulator.failed else 0


if __name__ == "__main__":
    sys.exit(main())
