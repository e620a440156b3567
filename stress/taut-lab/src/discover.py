"""Exits with 0 once ROS 2's discovery has found a name: a node, a service, an action, or a topic with a publisher.

Usage: discover.py NAME SECONDS; exit code 1 after so many seconds without. `taut lab` runs it for `ready = { ros2 = NAME }`."""

import os
import sys
import time

import rclpy

name, seconds = sys.argv[1], float(sys.argv[2])
rclpy.init()
node = rclpy.create_node(f"taut_lab_{os.getpid()}", enable_rosout=False, start_parameter_services=False)
end = time.monotonic() + seconds
found = False
while not found and time.monotonic() < end:
    services = [service for service, _ in node.get_service_names_and_types()]
    found = name in node.get_fully_qualified_node_names() or name in services
    found = found or f"{name}/_action/send_goal" in services or node.count_publishers(name) > 0
    time.sleep(0.02)
# Without the end of the context, which takes longer than the search.
os._exit(not found)
