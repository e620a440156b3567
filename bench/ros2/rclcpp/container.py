"""Loads the nodes into a component container, as `ros2 component load` does, and stops it with SIGINT.

    python container.py TRUTH container|container_intra --seconds 10

Needs a ROS 2 with rclcpp_components, and the components of this folder, in the environment."""

import argparse
import os
import pathlib
import signal
import subprocess
import time

import rclpy
from composition_interfaces.srv import LoadNode
from rclpy.parameter import Parameter


def find_container():
    places = [
        pathlib.Path(prefix) / "lib/rclcpp_components/component_container"
        for prefix in os.environ["AMENT_PREFIX_PATH"].split(":")
    ]
    return next(path for path in places if path.exists())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("truth", type=pathlib.Path)
    parser.add_argument("case", choices=["container", "container_intra"])
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    args.truth.mkdir(parents=True, exist_ok=True)
    container = subprocess.Popen([find_container()])
    rclpy.init()
    node = rclpy.create_node("loader")
    client = node.create_client(LoadNode, "/ComponentManager/_container/load_node")
    if not client.wait_for_service(timeout_sec=20):
        raise SystemExit("the container offers no service to load nodes within 20 s")
    for name in "Planner", "Detector", "Camera":
        request = LoadNode.Request(package_name="taut_proof", plugin_name=f"proof::{name}")
        parameters = {"case": args.case, "truth": str(args.truth), "seconds": args.seconds}
        request.parameters = [Parameter(key, value=value).to_parameter_msg() for key, value in parameters.items()]
        request.extra_arguments = [
            Parameter("use_intra_process_comms", value=args.case == "container_intra").to_parameter_msg()
        ]
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=20)
        if not future.result() or not future.result().success:
            raise SystemExit(f"{name} was not loaded: {future.result()}")
    time.sleep(args.seconds + 1)
    container.send_signal(signal.SIGINT)
    container.wait()
    rclpy.shutdown()


main()
