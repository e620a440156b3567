"""Names and quality of service of topics, services and actions."""

from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

from ..options import Options

JOINT_STATES, TF = "joint_states", "tf"
REACH, FOLLOW = "reach", "panda_arm_controller/follow_joint_trajectory"
RESET, HELD_UP = "simulator/reset", "simulator/held_up"
DEPTH, TF_DEPTH = 10, 100
"""As ROS 2's default profiles."""


def qos(options: Options, own_depth: int = DEPTH) -> QoSProfile:
    """Of a topic. Those of services and actions are ROS 2's own."""
    return profile(options, own_depth, ReliabilityPolicy[options.reliability.upper()])


def flood_qos(options: Options) -> QoSProfile:
    return profile(options, DEPTH, ReliabilityPolicy.BEST_EFFORT)


def profile(options: Options, own_depth: int, reliability: ReliabilityPolicy) -> QoSProfile:
    depth = own_depth if options.depth is None else options.depth
    history = HistoryPolicy.KEEP_LAST if depth else HistoryPolicy.KEEP_ALL
    return QoSProfile(history=history, depth=depth, reliability=reliability)


def flood(number: int) -> str:
    """The load's, from 1."""
    return f"flood_topic_{number}"
