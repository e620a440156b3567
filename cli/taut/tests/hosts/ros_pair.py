"""A ROS 2 node of a desk, which publishes setpoints, or of a robot, which answers each with a state: ros_pair.py ROLE COUNT.

The desk begins when it has heard the robot, and publishes COUNT setpoints, one each 10 ms. Either ends with the last state, of which the
desk makes a file, and ends at once: nothing that comes after it is asserted, and to destroy readers and writers may deadlock in Fast DDS
(eProsima/Fast-DDS #6193)."""

import os
import signal
import sys
from pathlib import Path

import rclpy
from rclpy.node import Node
from std_msgs.msg import UInt64

ROLE, COUNT = sys.argv[1], int(sys.argv[2])
# A subscriber that does not run for a while has all messages.
DEPTH = COUNT
LAST = Path("last")


class Desk(Node):
    def __init__(self) -> None:
        super().__init__("desk")
        self.sent, self.received = 0, 0
        self.setpoints = self.create_publisher(UInt64, "setpoint", DEPTH)
        self.create_subscription(UInt64, "state", self.state, DEPTH)
        self.create_timer(0.01, self.tick)

    def tick(self) -> None:
        if self.sent < COUNT and self.setpoints.get_subscription_count() > 0 and self.count_publishers("state") > 0:
            self.sent += 1
            self.setpoints.publish(UInt64(data=self.sent))

    def state(self, message: UInt64) -> None:
        self.received = message.data

    def is_done(self) -> bool:
        return self.received == COUNT


class Robot(Node):
    def __init__(self) -> None:
        super().__init__("robot")
        self.received = 0
        self.states = self.create_publisher(UInt64, "state", DEPTH)
        self.create_subscription(UInt64, "setpoint", self.setpoint, DEPTH)

    def setpoint(self, message: UInt64) -> None:
        self.received = message.data
        self.states.publish(message)

    def is_done(self) -> bool:
        return self.received == COUNT and LAST.exists()


# Whatever becomes of the process that started this one.
signal.alarm(500)
rclpy.init()
node = Desk() if ROLE == "desk" else Robot()
while not node.is_done():
    rclpy.spin_once(node, timeout_sec=0.1)
LAST.touch()
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
