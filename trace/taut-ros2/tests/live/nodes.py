"""Nodes that log their own truth: what each published and when, what each received and when, which calls were answered.

    python nodes.py TRUTH --processes camera detector,planner --executor single --count 200 …

Without --roles it starts a process for each group of roles, waits until the camera is done and nothing is under way, and ends them;
with --roles it is such a process, and writes TRUTH/PID.json when SIGTERM ends it. The nodes use rclpy as any node does; nothing here
knows taut.
"""

import argparse
import faulthandler
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

# Each has its messages from the one before.
ROLES = ["camera", "detector", "planner"]
# Exit code where a process wrote its truth and did not end then, as live.rs has it.
HANGS = 75


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("--processes", nargs="+", default=ROLES)
    parser.add_argument("--roles")
    parser.add_argument("--executor", default="single", choices=["single", "multi", "events"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--period", type=float, default=0.01)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--best-effort", action="store_true")
    parser.add_argument("--planner-takes", type=float, default=0.0, help="seconds of work in the planner")
    parser.add_argument(
        "--calls", action="store_true", help="the detector calls a service of the planner for each tenth message"
    )
    parser.add_argument(
        "--goals", action="store_true", help="the detector sends the planner a goal for each tenth message"
    )
    parser.add_argument("--image-topic", default="image_raw")
    parser.add_argument(
        "--restart", action="store_true", help="the detector is killed at half of the images, and started again"
    )
    parser.add_argument("--twice", action="store_true", help="a process has a context before that of its nodes")
    parser.add_argument(
        "--coroutines", action="store_true", help="callbacks of subscriptions are coroutines that await something"
    )
    parser.add_argument(
        "--ordinary-end",
        action="store_true",
        help="nodes end as an interpreter does, and have the transports that an installation has",
    )
    return parser.parse_args()


def main():
    args = arguments()
    run(args) if args.roles else start(args)


def start(args):
    args.truth.mkdir(parents=True, exist_ok=True)
    rest = [word for word in sys.argv[1:]]
    for roles in args.processes:
        rest = [word for word in rest if word != roles]
    rest = [word for word in rest if word != "--processes"]

    environment = dict(os.environ)
    if not args.ordinary_end:
        # A process that ends at once leaves its shared memory behind.
        environment["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"

    def process_of(roles):
        return subprocess.Popen([sys.executable, __file__, *rest, "--roles", roles], env=environment)

    every = [process_of(roles) for roles in args.processes]
    is_to_restart = args.restart
    deadline = time.monotonic() + 300 + args.count * args.period
    try:
        while not (args.truth / "done").exists():
            if time.monotonic() > deadline or any(process.poll() is not None for process in every):
                sys.exit("a node ended or the camera is not done")
            if is_to_restart and (args.truth / "half").exists():
                is_to_restart = False
                detector = args.processes.index("detector")
                every[detector].kill()
                every[detector].wait()
                # The camera goes on when the new one is ready.
                (args.truth / "ready.detector").unlink()
                every[detector] = process_of("detector")
            time.sleep(0.05)
        # What is under way comes to its end.
        idle = [args.truth / f"idle.{role}" for group in args.processes for role in group.split(",")]
        deadline = time.monotonic() + 300
        while not all(path.exists() for path in idle):
            if time.monotonic() > deadline or any(process.poll() is not None for process in every):
                sys.exit(f"a node ended or is not idle: {[path.name for path in idle if not path.exists()]}")
            time.sleep(0.05)
        sys.exit(ended(args, every))
    finally:
        for process in every:
            process.kill()


def ended(args, every):
    """Ends the processes; the exit code: 0 where each ended well."""
    for process in every:
        process.send_signal(signal.SIGTERM)
    truths = {process.pid: args.truth / f"{process.pid}.json" for process in every}
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if all(process.poll() is not None or truths[process.pid].exists() for process in every):
            break
        time.sleep(0.05)
    deadline = time.monotonic() + (60 if args.ordinary_end else 300)
    while time.monotonic() < deadline:
        if all(process.poll() is not None for process in every):
            return int(any(process.returncode for process in every))
        time.sleep(0.05)
    hung = [process for process in every if process.poll() is None]
    for process in hung:
        explain(process, truths[process.pid])
    is_after = all(truths[process.pid].exists() for process in hung)
    return HANGS if is_after and not any(process.returncode for process in every) else 1


def explain(process, truth):
    """Where a process stands that does not end."""
    print(f"{process.pid} does not end; {truth.name} exists: {truth.exists()}", file=sys.stderr)
    for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*"):
        said = []
        for name in ("comm", "wchan", "syscall"):
            try:
                said.append((task / name).read_text().strip())
            except OSError as error:
                said.append(f"{name}: {error.strerror}")
        print(f"  {task.name}: {', '.join(said)}", file=sys.stderr, flush=True)
    process.send_signal(signal.SIGUSR1)
    # It writes where its threads are.
    time.sleep(1)


def run(args):
    import rclpy
    from rcl_interfaces.srv import ListParameters
    from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    if args.goals:
        from rclpy.action import ActionClient, ActionServer
        from test_msgs.action import Fibonacci

    now = time.monotonic_ns
    truth = {
        "pid": os.getpid(),
        "roles": args.roles.split(","),
        "published": [],
        "received": [],
        "served": [],
        "answered": [],
        "timers": [],
        "goals": [],
        "executed": [],
        "feedback": [],
        "results": [],
        "guarded": [],
    }
    profile = QoSProfile(
        depth=args.depth, reliability=ReliabilityPolicy.BEST_EFFORT if args.best_effort else ReliabilityPolicy.RELIABLE
    )
    # A server that does not run for a while has all requests.
    services = QoSProfile(depth=1000)
    padding = "x" * args.bytes
    # What has begun, of which the truth has the end.
    asked, begun = [], []

    def publish(publisher, topic, number):
        before = now()
        publisher.publish(String(data=f"{number} {padding}"))
        truth["published"].append([topic, number, before, now(), threading.get_native_id()])

    def receive(topic, message, info):
        at = now()
        number = int(message.data.split(" ", 1)[0])
        truth["received"].append(
            [
                topic,
                number,
                at,
                info["source_timestamp"] if info else 0,
                info["publication_sequence_number"] if info else 0,
                threading.get_native_id(),
            ]
        )
        return number

    def form_of(node, callback):
        """The same as a coroutine of two steps, of which the second is after the executor did something else; and with one
        argument under the events executor, which knows no other."""

        async def steps(message, info):
            begun.append(message)
            await node.executor.create_task(lambda: None)
            callback(message, info)

        async def steps_of_one(message):
            await steps(message, None)

        def of_one(message):
            callback(message, None)

        if args.executor == "events":
            form = steps_of_one if args.coroutines else of_one
        else:
            form = steps if args.coroutines else callback
        if form is not callback:
            form.__qualname__ = callback.__qualname__
        return form

    class Camera(Node):
        def __init__(self):
            super().__init__("camera")
            # The events executor has no guard conditions.
            self.guard = None if args.executor == "events" else self.create_guard_condition(self.on_guard)
            self.images = self.create_publisher(String, args.image_topic, profile)
            self.number = 0
            self.timer = self.create_timer(args.period, self.on_timer)

        def on_timer(self):
            truth["timers"].append(now())
            if self.images.get_subscription_count() == 0 or not all(
                (args.truth / f"ready.{r}").exists() for r in ("detector", "planner")
            ):
                return
            if self.number == args.count:
                # Nothing is under way when SIGTERM comes: the truth is whole.
                self.timer.cancel()
                (args.truth / "done").touch()
                return
            publish(self.images, "/image_raw", self.number)
            if self.number == args.count // 2:
                (args.truth / "half").touch()
            if self.guard and self.number % 10 == 0:
                self.guard.trigger()
            self.number += 1

        def on_guard(self):
            truth["guarded"].append(now())

    class Detector(Node):
        def __init__(self):
            super().__init__("detector")
            self.detections = self.create_publisher(String, "detections", profile)
            self.images = self.create_subscription(String, args.image_topic, form_of(self, self.on_image), profile)
            self.client = self.create_client(ListParameters, "plan", qos_profile=services) if args.calls else None
            self.turns = ActionClient(self, Fibonacci, "turn") if args.goals else None
            self.ready = self.create_timer(0.05, self.on_ready)

        def on_ready(self):
            truth["timers"].append(now())
            is_called = self.client is None or self.client.service_is_ready()
            is_called = is_called and (self.turns is None or self.turns.server_is_ready())
            if self.detections.get_subscription_count() and self.images.get_publisher_count() and is_called:
                (args.truth / "ready.detector").touch()
                self.ready.cancel()

        def on_image(self, message, info):
            number = receive("/image_raw", message, info)
            publish(self.detections, "/detections", number)
            if self.client and number % 10 == 0:
                sent = now()
                asked.append(number)
                self.client.call_async(ListParameters.Request()).add_done_callback(
                    lambda _: truth["answered"].append([number, sent, now()])
                )
            if self.turns and number % 10 == 0:
                truth["goals"].append([number, now()])
                goal = Fibonacci.Goal(order=number)
                self.turns.send_goal_async(goal, self.on_feedback).add_done_callback(self.on_goal)

        def on_feedback(self, message):
            truth["feedback"].append([message.feedback.sequence[0], now()])

        def on_goal(self, future):
            future.result().get_result_async().add_done_callback(self.on_result)

        def on_result(self, future):
            truth["results"].append([future.result().result.sequence[0], now()])

    class Planner(Node):
        def __init__(self):
            super().__init__("planner")
            self.detections = self.create_subscription(String, "detections", form_of(self, self.on_detections), profile)
            self.turns = ActionServer(self, Fibonacci, "turn", self.on_turn) if args.goals else None
            self.service = None
            if args.calls:
                self.service = self.create_service(ListParameters, "plan", self.on_plan, qos_profile=services)
            self.ready = self.create_timer(0.05, self.on_ready)

        def on_ready(self):
            truth["timers"].append(now())
            if self.detections.get_publisher_count():
                (args.truth / "ready.planner").touch()
                self.ready.cancel()

        def on_detections(self, message, info):
            receive("/detections", message, info)
            end = time.monotonic() + args.planner_takes
            while time.monotonic() < end:
                pass

        def on_turn(self, goal):
            begin, number = now(), goal.request.order
            goal.publish_feedback(Fibonacci.Feedback(sequence=[number]))
            goal.succeed()
            truth["executed"].append([number, begin, now()])
            return Fibonacci.Result(sequence=[number])

        def on_plan(self, request, response):
            truth["served"].append(now())
            return response

    first = min(ROLES.index(role) for role in truth["roles"])
    upstream = args.truth / (f"idle.{ROLES[first - 1]}" if first else "done")
    seen, since, turns = None, 0.0, 0

    def look():
        """Says that nothing is under way here: what comes from upstream is there, and for some turns nothing was added."""
        nonlocal seen, since, turns
        state = upstream.exists(), [len(logged) for logged in truth.values() if isinstance(logged, list)]
        if state != seen or not state[0]:
            seen, since, turns = state, time.monotonic(), 0
        turns += 1
        is_pending = (
            len(asked) > len(truth["answered"])
            or len(truth["goals"]) > len(truth["results"])
            or len(begun) > len(truth["received"])
        )
        # What has not come after that long is lost; whether it may be is the test's to say.
        if turns >= 5 and time.monotonic() - since >= (30 if is_pending else 1):
            for role in truth["roles"]:
                (args.truth / f"idle.{role}").touch()

    faulthandler.register(signal.SIGUSR1, all_threads=True)
    # Whatever becomes of the process that started this one.
    signal.alarm(1300 + int(args.count * args.period))
    rclpy.init()
    if args.twice:
        Node("early").destroy_node()
        rclpy.shutdown()
        rclpy.init()
    if args.executor == "events":
        from rclpy.experimental import EventsExecutor

        executor = EventsExecutor()
    else:
        executor = MultiThreadedExecutor(4) if args.executor == "multi" else SingleThreadedExecutor()
    nodes = [{"camera": Camera, "detector": Detector, "planner": Planner}[role]() for role in args.roles.split(",")]
    for node in nodes:
        executor.add_node(node)
    try:
        # With a time-out: a signal that comes just before a wait without one does not end it, and EventsExecutor.spin() of the
        # wheels (rclpy 9.1.2) waits until the end of time, which overflows: it runs nothing.
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.2)
            look()
    except (ExternalShutdownException, KeyboardInterrupt):
        pass
    except Exception:
        # The multi-threaded executor may be about to wait when SIGTERM shuts the context down.
        if rclpy.ok():
            raise
    file = args.truth / f"{os.getpid()}.json"
    file.with_suffix(".part").write_text(json.dumps(truth))
    file.with_suffix(".part").rename(file)
    if not args.ordinary_end:
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing that comes after it is asserted, and to destroy readers and writers may deadlock in Fast DDS (eProsima/Fast-DDS #6193).
        os._exit(0)


main()
