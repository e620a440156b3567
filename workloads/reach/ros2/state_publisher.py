"""The state publisher: joint states in, transforms of all links out."""

import sys
import threading
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import Quaternion, Transform, TransformStamped, Vector3
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from ..arm import LINKS, Arm
from . import names, node


class StatePublisher(Node):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__("state_publisher")
        self.options = node.options_of(self)
        self.arm = Arm()
        self.published = 0
        self.tf = self.create_publisher(TFMessage, names.TF, names.qos(self.options, names.TF_DEPTH))
        self.create_subscription(JointState, names.JOINT_STATES, self.on_joint_state, names.qos(self.options))

    def join(self, step: Callable[[float], None], stop: threading.Event) -> None:
        node.until(lambda: self.published, step, stop, "no joint state came")

    def on_joint_state(self, state: JointState) -> None:
        places, turns = self.arm.poses(np.array(state.position))
        links = zip(LINKS, places, turns, strict=True)
        self.tf.publish(TFMessage(transforms=[transform(state, *link) for link in links]))
        self.published += 1


def transform(state: JointState, link: str, place: np.ndarray, turn: np.ndarray) -> TransformStamped:
    x, y, z = map(float, place)
    qw, qx, qy, qz = map(float, turn)
    pose = Transform(translation=Vector3(x=x, y=y, z=z), rotation=Quaternion(x=qx, y=qy, z=qz, w=qw))
    return TransformStamped(header=state.header, child_frame_id=link, transform=pose)


if __name__ == "__main__":
    sys.exit(node.main("state_publisher", StatePublisher, sys.argv[1:]))
