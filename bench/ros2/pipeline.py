"""One node of a pipeline, which logs its own truth: what it published and when, and when its callbacks began.

    python pipeline.py NAME LOG --in a,b --out c --hz 100 --bytes 100 --depth 10 --best-effort --seconds 10 --first 0

It publishes a number at each tick of its timer, and each number that it receives. pipeline.c is the same on rcl.
"""

import argparse
import json
import pathlib
import signal
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("--in", dest="inputs", default="")
    parser.add_argument("--out", default="")
    parser.add_argument("--hz", type=float, default=0)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--best-effort", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--serve", default="")
    parser.add_argument("--call", default="")
    parser.add_argument("--executor", default="single", choices=["single", "events"])
    run(parser.parse_args())


def run(args):
    import rclpy
    from rcl_interfaces.srv import ListParameters
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import String

    now = time.monotonic_ns
    reliability = ReliabilityPolicy.BEST_EFFORT if args.best_effort else ReliabilityPolicy.RELIABLE
    profile = QoSProfile(depth=args.depth, reliability=reliability)
    truth = {"name": args.name, "published": [], "received": [], "called": [], "served": [], "answered": []}
    padding = "x" * args.bytes

    class Pipe(Node):
        def __init__(self):
            super().__init__(args.name)
            self.publisher = self.create_publisher(String, args.out, profile) if args.out else None
            for topic in filter(None, args.inputs.split(",")):
                self.create_subscription(String, topic, self.callback_of(topic), profile)
            self.service = self.create_service(ListParameters, args.serve, self.on_request) if args.serve else None
            self.client = self.create_client(ListParameters, args.call) if args.call else None
            if args.hz:
                self.create_timer(1 / args.hz, self.on_timer)
            self.number = args.first
            self.end = time.monotonic() + args.seconds

        def publish(self, number):
            message = String(data=f"{number} {padding}")
            before = now()
            self.publisher.publish(message)
            truth["published"].append([f"/{args.out}", number, before])

        def on_timer(self):
            if time.monotonic() > self.end:
                return
            if self.client and self.client.service_is_ready():
                self.number += 1
                truth["called"].append([self.number, now()])
                done = self.client.call_async(ListParameters.Request())
                done.add_done_callback(lambda _: truth["answered"].append(now()))
            if self.publisher and self.publisher.get_subscription_count():
                self.number += 1
                self.publish(self.number)

        def callback_of(self, topic):
            def on_message(message, info):
                at, wall = now(), time.time_ns()
                number = int(message.data.split(" ", 1)[0])
                # The middleware takes the source timestamp when it publishes, after Python's message has become rcl's.
                took = [wall - info["source_timestamp"]] if info else []
                truth["received"].append([f"/{topic}", number, at, *took])
                if self.publisher:
                    self.publish(number)

            # The events executor passes no information about the message.
            return on_message if args.executor == "single" else lambda message: on_message(message, None)

        def on_request(self, request, response):
            truth["served"].append(now())
            return response

    signal.alarm(120 + int(args.seconds))
    rclpy.init()
    if args.executor == "events":
        from rclpy.experimental import EventsExecutor

        executor = EventsExecutor()
    else:
        executor = SingleThreadedExecutor()
    node = Pipe()
    executor.add_node(node)
    # Those that receive end last: nothing is under way.
    end = node.end + (3.0 if args.inputs or args.serve else 2.0)
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.1)
    args.log.write_text(json.dumps(truth))


main()
