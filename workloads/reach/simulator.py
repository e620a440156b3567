"""The controller/simulator process: the 500 Hz control thread, a thread that takes messages and one that publishes.

The control thread sends nothing itself; what it has to say goes through a queue to the publishing thread, as in ros2_control."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue

import numpy as np
import taut

from ..threads import call_thread
from . import messages as m
from . import options, topics
from .arm import JOINTS
from .bus import Bus, BusError, open_bus
from .control import PERIOD_NS, Controller, Follow
from .trajectory import Trajectory

JOINT_STATES_EVERY = 5
"""Cycles: 100 Hz."""
FEEDBACK_EVERY = 10
"""Cycles: 50 Hz."""
CONTROL_PRIORITY, OTHERS_PRIORITY = 80, 70
"""SCHED_FIFO. The other threads are below: one of ordinary priority would keep the interpreter's lock from control while other programs run
in its place."""


@dataclass
class Ended:
    follow: Follow
    reason: str
    execution: m.Execution


@dataclass
class State:
    positions: list[float]
    speeds: list[float]
    efforts: list[float]


@dataclass
class Progress:
    goal_id: list[int]
    elapsed_s: float
    error_rad: float


@dataclass
class Simulator:
    """What the threads share: orders to the control thread, and its news."""

    chosen: options.Options
    stop: threading.Event = field(default_factory=threading.Event)
    orders: SimpleQueue[Follow | None] = field(default_factory=SimpleQueue)
    news: SimpleQueue[Ended | State | Progress | None] = field(default_factory=SimpleQueue)
    reset_done: threading.Event = field(default_factory=threading.Event)

    def control(self) -> None:
        """The control thread."""
        call_thread("control")
        if self.chosen.priority == "fifo":
            fifo(CONTROL_PRIORITY)
        controller = Controller(int(self.chosen.stall_limit * 1e9))
        taut.prepare_thread()
        due_ns = time.monotonic_ns() + PERIOD_NS
        number = 0
        while not self.stop.is_set():
            taut.stamp("control.sleeping", due_ns)
            pause_ns = due_ns - time.monotonic_ns()
            if pause_ns > 0:
                time.sleep(pause_ns / 1e9)
            began_ns = time.monotonic_ns()
            taut.stamp("control.awake", due_ns)
            missed = max(0, (began_ns - due_ns) // PERIOD_NS)
            this_ns, due_ns = due_ns, due_ns + missed * PERIOD_NS
            number += 1 + missed
            self._obey(controller)
            follow = controller.follow
            ended = controller.cycle(due_ns, began_ns, missed)
            done_ns = time.monotonic_ns()
            if follow:
                # What was missed before the first cycle was not this trajectory's.
                follow.late += (missed if follow.steps_ns else 0) + (done_ns > due_ns + PERIOD_NS)
                follow.steps_ns.append(done_ns - began_ns)
            taut.stamp("control.commanded", this_ns)
            taut.applied(this_ns)
            self._tell(controller, number, follow, ended, due_ns)
            due_ns += PERIOD_NS

    def _obey(self, controller: Controller) -> None:
        while not self.orders.empty():
            order = self.orders.get_nowait()
            if order is None:
                controller.reset()
                self.reset_done.set()
            else:
                controller.start(order)

    def _tell(self, controller: Controller, number: int, follow: Follow | None, ended: str | None, due_ns: int) -> None:
        data = controller.data
        if follow and len(follow.steps_ns) == 1:
            taut.stamp("controller.first_command", m.message_id(follow.goal_id))
        if follow and ended is not None:
            taut.stamp("controller.last_command", m.message_id(follow.goal_id))
            self.news.put(Ended(follow, ended, follow.execution(time.monotonic_ns())))
        elif follow and number % FEEDBACK_EVERY == 0:
            self.news.put(Progress(follow.goal_id, (due_ns - follow.began_ns) / 1e9, follow.errors_rad[-1]))
        if number % JOINT_STATES_EVERY == 0:
            self.news.put(State(data.qpos.tolist(), data.qvel.tolist(), data.ctrl.tolist()))

    def publish(self, bus: Bus) -> None:
        """The publishing thread."""
        call_thread("publish")
        joint_states = bus.publisher(topics.JOINT_STATES)
        feedback, result = bus.publisher(topics.FOLLOW_FEEDBACK), bus.publisher(topics.FOLLOW_RESULT)
        taut.prepare_thread()
        while (news := self.news.get()) is not None:
            match news:
                case State():
                    now_ns = time.time_ns()
                    header = m.Header(m.Time.of(now_ns), "panda_link0")
                    taut.stamp("joint_states.published", now_ns)
                    joint_states(m.JointState(header, list(JOINTS), news.positions, news.speeds, news.efforts))
                case Progress():
                    feedback(m.FollowFeedback(news.goal_id, news.elapsed_s, news.error_rad))
                case Ended():
                    code = 0 if not news.reason else -4
                    result(m.FollowResult(0, 0, news.follow.goal_id, code, news.reason, news.execution))

    def take(self, bus: Bus) -> None:
        """The thread that takes messages."""
        call_thread("take")
        accepted, reset = bus.publisher(topics.FOLLOW_ACCEPTED), bus.publisher(topics.RESET_DONE)
        bus.subscribe(topics.FOLLOW_GOAL, lambda request: self._follow(request, accepted))
        bus.subscribe(topics.RESET, lambda request: self._reset(request, reset))
        taut.prepare_thread()
        print("ready", flush=True)
        while not self.stop.is_set():
            bus.spin_once(0.1)

    def _follow(self, request: m.FollowRequest, accepted: Callable[[m.FollowReply], None]) -> None:
        taut.stamp("controller.trajectory_taken", m.message_id(request.goal_id))
        points = request.trajectory.points
        trajectory = Trajectory(
            np.array([point.time_from_start.ns / 1e9 for point in points]),
            np.array([list(point.positions) for point in points]),
            np.array([list(point.velocities) for point in points]),
        )
        self.orders.put(Follow(trajectory, list(request.goal_id)))
        accepted(m.FollowReply(request.client, request.count, True))

    def _reset(self, request: m.ResetRequest, done: Callable[[m.ResetReply], None]) -> None:
        self.reset_done.clear()
        self.orders.put(None)
        if self.reset_done.wait(1.0):
            done(m.ResetReply(request.client, request.count))


def fifo(priority: int) -> None:
    """For the calling thread, and those that it starts. Raises OSError."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.simulator", description=__doc__)
    options.add(parser)
    simulator = Simulator(options.chosen(parser.parse_args()))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: simulator.stop.set())
    call_thread("simulator")
    # The publishing thread must not hold the interpreter for CPython's usual 5 ms while the control thread is due.
    sys.setswitchinterval(0.0005)
    if simulator.chosen.priority == "fifo":
        try:
            # The control thread's first: it takes it by itself, where a refusal would have no reader.
            fifo(CONTROL_PRIORITY)
            fifo(OTHERS_PRIORITY)
        except OSError as refused:
            why = f"{refused.strerror}; it needs root, CAP_SYS_NICE or an rtprio limit"
            print(f"reach: --priority fifo: {why}", file=sys.stderr)
            return 2
    try:
        bus = open_bus(simulator.chosen)
    except BusError as failure:
        print(f"reach: {failure}", file=sys.stderr)
        return 2
    threads = [
        threading.Thread(target=simulator.control, name="control"),
        threading.Thread(target=simulator.publish, args=(bus,), name="publish"),
        threading.Thread(target=simulator.take, args=(bus,), name="take", daemon=True),
    ]
    for thread in threads:
        thread.start()
    threads[0].join()
    simulator.stop.set()
    simulator.news.put(None)
    for thread in threads[1:]:
        thread.join(2.0)
    bus.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
