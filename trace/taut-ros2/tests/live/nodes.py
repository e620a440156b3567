"""Nodes that log their own truth: what each published and when, what each received and when, which calls were answered.

    python nodes.py TRUTH --processes camera detector,planner --executor single --count 200 …

Without --roles it starts a process for each group of roles, waits until the camera is done, and ends them; with --roles it is
such a process, and writes TRUTH/PID.json when SIGTERM ends it. The nodes use rclpy as any node does; nothing here knows taut.
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


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("--processes", nargs="+", default=["camera", "detector", "planner"])
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
    every = [subprocess.Popen([sys.executable, __file__, *rest, "--roles", roles]) for roles in args.processes]
    deadline = time.monotonic() + 300 + args.count * args.period
    try:
        while not (args.truth / "done").exists():
            if time.monotonic() > deadline or any(process.poll() is not None for process in every):
                sys.exit("a node ended or the camera is not done")
            time.sleep(0.05)
        time.sleep(max(1.0, args.depth * args.planner_takes + 0.5))
        for process in every:
            process.send_signal(signal.SIGTERM)
        sys.exit(any(process.wait(timeout=30) for process in every))
    except subprocess.TimeoutExpired:
        for process in every:
            process.send_signal(signal.SIGUSR1)
        time.sleep(1)
        raise
    finally:
        for process in every:
            process.kill()


def run(args):
    import rclpy
    from rcl_interfaces.srv import ListParameters
    from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor, SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    now = time.monotonic_ns
    truth = {
        "pid": os.getpid(),
        "roles": args.roles.split(","),
        "published": [],
        "received": [],
        "served": [],
        "answered": [],
        "timers": [],
    }
    profile = QoSProfile(
        depth=args.depth, reliability=ReliabilityPolicy.BEST_EFFORT if args.best_effort else ReliabilityPolicy.RELIABLE
    )
    padding = "x" * args.bytes

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
                info["source_timestamp"],
                info["publication_sequence_number"],
                threading.get_native_id(),
            ]
        )
        return number

    class Camera(Node):
        def __init__(self):
            super().__init__("camera")
            self.images = self.create_publisher(String, "image_raw", profile)
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
            self.number += 1

    class Detector(Node):
        def __init__(self):
            super().__init__("detector")
            self.detections = self.create_publisher(String, "detections", profile)
            self.images = self.create_subscription(String, "image_raw", self.on_image, profile)
            self.client = self.create_client(ListParameters, "plan") if args.calls else None
            self.ready = self.create_timer(0.05, self.on_ready)

        def on_ready(self):
            truth["timers"].append(now())
            is_called = self.client is None or self.client.service_is_ready()
            if self.detections.get_subscription_count() and self.images.get_publisher_count() and is_called:
                (args.truth / "ready.detector").touch()
                self.ready.cancel()

        def on_image(self, message, info):
            number = receive("/image_raw", message, info)
            publish(self.detections, "/detections", number)
            if self.client and number % 10 == 0:
                sent = now()
                self.client.call_async(ListParameters.Request()).add_done_callback(
                    lambda _: truth["answered"].append([number, sent, now()])
                )

    class Planner(Node):
        def __init__(self):
            super().__init__("planner")
            self.detections = self.create_subscription(String, "detections", self.on_detections, profile)
            self.service = self.create_service(ListParameters, "plan", self.on_plan) if args.calls else None
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

        def on_plan(self, request, response):
            truth["served"].append(now())
            return response

    faulthandler.register(signal.SIGUSR1, all_threads=True)
    # Whatever becomes of the process that started this one.
    signal.alarm(400 + int(args.count * args.period))
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
        if args.executor == "events":
            executor.spin()
        # With a time-out: a signal that comes just before a wait without one does not end it.
        while rclpy.ok():
            executor.spin_once(timeout_sec=0.2)
    except (ExternalShutdownException, KeyboardInterrupt):
        pass
    except Exception:
        # The multi-threaded executor may be about to wait when SIGTERM shuts the context down.
        if rclpy.ok():
            raise
    (args.truth / f"{os.getpid()}.json").write_text(json.dumps(truth))


main()
