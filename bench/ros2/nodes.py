"""Nodes with one injected cause each, which log their own truth: when each message was published and its callback began.

    python nodes.py TRUTH CASE --seconds 10

Each process of a case runs rclpy nodes as any robot's; nothing here knows taut. What is injected, and when, is in TRUTH/injected.json.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

CASES = ["plain", "executor", "gil", "fifo", "flood", "slow"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--role")
    args = parser.parse_args()
    args.truth.mkdir(parents=True, exist_ok=True)
    if args.role == "hog":
        return hog(args)
    if args.role:
        return node(args)
    roles = (
        ["camera", "detector"] + (["hog"] if args.case == "fifo" else []) + (["flood"] if args.case == "flood" else [])
    )
    every = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--role", role]) for role in roles]
    for process in every:
        process.wait()


def log(args, name, rows):
    (args.truth / f"{name}.json").write_text(json.dumps(rows))


def spin_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def hog(args):
    """Runs above the detector, on its CPU, for 8 ms each 100 ms."""
    os.sched_setaffinity(0, {0})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    end = time.monotonic() + args.seconds + 3
    rows = []
    while time.monotonic() < end:
        time.sleep(0.092)
        begin = time.monotonic_ns()
        spin_for(0.008)
        rows.append([begin, time.monotonic_ns()])
    log(args, "injected", rows)


def node(args):
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    now = time.monotonic_ns
    depth = 1 if args.case == "slow" else 10
    profile = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
    published, received, injected = [], [], []

    class Camera(Node):
        def __init__(self):
            super().__init__("camera")
            self.images = self.create_publisher(String, "image_raw", profile)
            self.create_timer(0.01, self.on_timer)
            self.number = 0

        def on_timer(self):
            if not self.images.get_subscription_count():
                return
            self.number += 1
            before = now()
            self.images.publish(String(data=str(self.number)))
            published.append([self.number, before])

    class Detector(Node):
        def __init__(self):
            super().__init__("detector")
            self.create_subscription(String, "image_raw", self.on_image, profile)
            if args.case == "executor":
                self.create_timer(0.1, self.on_housekeeping)
            if args.case == "flood":
                self.create_subscription(String, "flood", self.on_flood, QoSProfile(depth=50))

        def on_image(self, message, info):
            at, wall = now(), time.time_ns()
            # The middleware takes the source timestamp when it publishes.
            received.append([int(message.data), at, wall - info["source_timestamp"]])
            if args.case == "slow":
                time.sleep(0.015)

        def on_housekeeping(self):
            begin = now()
            time.sleep(0.012)
            injected.append([begin, now()])

        def on_flood(self, message):
            begin = now()
            spin_for(0.005)
            injected.append([begin, now()])

    class Flood(Node):
        def __init__(self):
            super().__init__("flood")
            self.all = self.create_publisher(String, "flood", QoSProfile(depth=50))
            self.create_timer(0.1, self.on_timer)

        def on_timer(self):
            for _ in range(4):
                self.all.publish(String(data="x"))

    def hold_gil():
        """A thread of the same process keeps the GIL for 12 ms each 100 ms: C code that does not release it."""
        usleep = ctypes.PyDLL(None).usleep
        while not is_done.is_set():
            time.sleep(0.088)
            begin = now()
            usleep(12000)
            injected.append([begin, now()])

    if args.case == "fifo" and args.role == "detector":
        os.sched_setaffinity(0, {0})
    signal.alarm(60 + int(args.seconds))
    is_done = threading.Event()
    rclpy.init()
    executor = SingleThreadedExecutor()
    executor.add_node({"camera": Camera, "detector": Detector, "flood": Flood}[args.role]())
    if args.case == "gil" and args.role == "detector":
        threading.Thread(target=hold_gil, name="hog", daemon=True).start()
    # The detector ends last: nothing is under way.
    end = time.monotonic() + args.seconds + (1.0 if args.role == "detector" else 0.0) + 1.0
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
    is_done.set()
    if args.role == "camera":
        log(args, "published", published)
    if args.role == "detector":
        log(args, "received", received)
        if args.case in ("executor", "flood", "gil"):
            log(args, "injected", injected)


main()
