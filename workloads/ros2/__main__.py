"""camera → detector → planner → controller over /image_raw, /detections and /plan; `python -m workloads.ros2 --duration 15`.

The planner also updates its map, in the same executor: twice a second a plan is late by up to the 40 ms that this takes.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

from .. import times

CAMERA_PERIOD_S = 0.033
DETECT_S = 0.006
PLAN_S = 0.002
MAP_PERIOD_S = 0.5
MAP_S = 0.04
ROLES = ["camera", "detector", "planner", "controller"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workloads.ros2", description=__doc__)
    parser.add_argument(
        "--duration", type=times.within(86_400), default=15.0, metavar="TIME", help="how long to run (15s)"
    )
    parser.add_argument("--node", choices=ROLES, help="run this node only")
    args = parser.parse_args()
    if args.node:
        spin(args.node, args.duration)
        return 0
    # A robot on the same network is not disturbed, and does not disturb.
    environment = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", **os.environ}
    command = [sys.executable, "-m", "workloads.ros2", "--duration", f"{args.duration:g}", "--node"]
    nodes = {role: subprocess.Popen([*command, role], env=environment) for role in ROLES}
    codes = {role: node.wait() for role, node in nodes.items()}
    failed = [f"the {role} {how(code)}" for role, code in codes.items() if code]
    print(f"ros2: failed: {', '.join(failed)}" if failed else f"ros2: {len(nodes)} nodes ran for {args.duration:g} s")
    return int(bool(failed))


def how(code: int) -> str:
    """A process ended."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def work(seconds: float) -> None:
    """Computes for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def spin(role: str, seconds: float) -> None:
    import rclpy
    from rclpy.node import Node
    from std_msgs.msg import String

    class Camera(Node):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("camera")
            self.images = self.create_publisher(String, "image_raw", 5)
            self.create_timer(CAMERA_PERIOD_S, self.on_timer)

        def on_timer(self) -> None:
            self.images.publish(String(data="image " * 2000))

    class Detector(Node):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("detector")
            self.detections = self.create_publisher(String, "detections", 5)
            self.create_subscription(String, "image_raw", self.on_image, 5)

        def on_image(self, image: String) -> None:
            work(DETECT_S)
            self.detections.publish(String(data="box"))

    class Planner(Node):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("planner")
            self.plans = self.create_publisher(String, "plan", 1)
            self.create_subscription(String, "detections", self.on_detections, 1)
            self.create_timer(MAP_PERIOD_S, self.on_map_update)

        def on_detections(self, detections: String) -> None:
            work(PLAN_S)
            self.plans.publish(String(data="turn left"))

        def on_map_update(self) -> None:
            work(MAP_S)

    class Controller(Node):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("controller")
            self.create_subscription(String, "plan", self.on_plan, 1)

        def on_plan(self, plan: String) -> None:
            work(0.0002)

    rclpy.init()
    node = {"camera": Camera, "detector": Detector, "planner": Planner, "controller": Controller}[role]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rclpy.spin_once(node, timeout_sec=0.1)


if __name__ == "__main__":
    sys.exit(main())
