"""What travels between the processes: names and types as ROS 2 puts them on DDS.

Standard types (`sensor_msgs`, `trajectory_msgs`, `tf2_msgs`, `std_msgs`) have their standard fields; `reach_msgs` are ours.
A message of ROS 2 is named by its package, its kind and `dds_`; a topic is prefixed by `rt/`, a request by `rq/`, a reply by `rr/`.
Requests and replies begin with the client's id and a count, as rmw_cyclonedds puts them."""

# No `from __future__ import annotations` here: the types are read at run time.
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float64, int32, int64, sequence, uint8, uint32, uint64

if TYPE_CHECKING:  # The package's marks for lengths say nothing to a type checker.
    Floats: TypeAlias = list[float]
    Strings: TypeAlias = list[str]
    Uuid: TypeAlias = list[int]
    Transforms: TypeAlias = list["TransformStamped"]
    Points: TypeAlias = list["JointTrajectoryPoint"]
else:
    Floats, Strings, Uuid = sequence[float64], sequence[str], array[uint8, 16]
    Transforms = sequence["workloads.reach.messages.TransformStamped"]
    Points = sequence["workloads.reach.messages.JointTrajectoryPoint"]


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32 = 0
    nanosec: uint32 = 0

    @classmethod
    def of(cls, time_ns: int) -> "Time":
        return cls(time_ns // 1_000_000_000, time_ns % 1_000_000_000)

    @property
    def ns(self) -> int:
        return self.sec * 1_000_000_000 + self.nanosec


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass
class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str = ""


@dataclass
class JointState(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    """Its stamp, in ns, is its id in a recording."""

    header: Header
    name: Strings
    position: Floats
    velocity: Floats
    effort: Floats


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@dataclass
class Transform(IdlStruct, typename="geometry_msgs::msg::dds_::Transform_"):
    translation: Vector3
    rotation: Quaternion


@dataclass
class TransformStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TransformStamped_"):
    header: Header
    child_frame_id: str
    transform: Transform


@dataclass
class TFMessage(IdlStruct, typename="tf2_msgs::msg::dds_::TFMessage_"):
    transforms: Transforms


@dataclass
class JointTrajectoryPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectoryPoint_"):
    positions: Floats
    velocities: Floats
    accelerations: Floats
    effort: Floats
    time_from_start: Time  # builtin_interfaces/Duration has the same fields


@dataclass
class JointTrajectory(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectory_"):
    header: Header
    joint_names: Strings
    points: Points


@dataclass
class ResetRequest(IdlStruct, typename="reach_msgs::srv::dds_::Reset_Request_"):
    client: uint64
    count: int64


@dataclass
class ResetReply(IdlStruct, typename="reach_msgs::srv::dds_::Reset_Response_"):
    client: uint64
    count: int64


@dataclass
class HeldUpRequest(IdlStruct, typename="reach_msgs::srv::dds_::HeldUp_Request_"):
    client: uint64
    count: int64


@dataclass
class HeldUpReply(IdlStruct, typename="reach_msgs::srv::dds_::HeldUp_Response_"):
    """How the machine held the simulated arm up since its last reset."""

    client: uint64
    count: int64
    slips: uint64
    total_ns: int64
    longest_ns: int64


@dataclass
class ReachRequest(IdlStruct, typename="reach_msgs::action::dds_::Reach_SendGoal_Request_"):
    """The tool shall be there, in m from the base, hand down."""

    client: uint64
    count: int64
    goal_id: Uuid  # its first eight bytes are the message's id in a recording
    place: Vector3


@dataclass
class ReachReply(IdlStruct, typename="reach_msgs::action::dds_::Reach_SendGoal_Response_"):
    client: uint64
    count: int64
    accepted: bool
    stamp_ns: int64  # when the goal was taken


@dataclass
class ReachFeedback(IdlStruct, typename="reach_msgs::action::dds_::Reach_FeedbackMessage_"):
    goal_id: Uuid
    state: str  # PLANNING, then MONITOR, again and again


@dataclass
class Execution(IdlStruct, typename="reach_msgs::msg::dds_::Execution_"):
    """The controller's own measurements, in ns of CLOCK_MONOTONIC unless a name has another unit."""

    first_command_ns: int64 = 0
    last_command_ns: int64 = 0
    cycles: uint32 = 0  # intended ones
    missed: uint32 = 0  # of them, those that no command was computed for
    late: uint32 = 0  # of them, those that ended after the next was due, the missed ones included
    lateness_p50_ns: int64 = 0
    lateness_p99_ns: int64 = 0
    lateness_max_ns: int64 = 0
    step_p50_ns: int64 = 0  # of the arm's physics, each period
    step_p99_ns: int64 = 0
    slipped_ns: int64 = 0  # from the first to the last command, how long the machine held the arm up
    simulated_s: float64 = 0.0
    wall_s: float64 = 0.0
    tracking_rms_rad: float64 = 0.0
    tracking_max_rad: float64 = 0.0


@dataclass
class ReachResult(IdlStruct, typename="reach_msgs::action::dds_::Reach_GetResult_Response_"):
    client: uint64
    count: int64
    goal_id: Uuid
    code: int32  # of moveit_msgs/MoveItErrorCodes
    reason: str
    taken_ns: int64
    planned_ns: int64
    planning_cpu_ns: int64
    states_checked: uint32
    planned_s: float64
    path_rad: float64
    execution: Execution
    flood_taken: uint64  # flood messages that the planner's callbacks took since the last goal


@dataclass
class FollowRequest(IdlStruct, typename="reach_msgs::action::dds_::Follow_SendGoal_Request_"):
    client: uint64
    count: int64
    goal_id: Uuid
    trajectory: JointTrajectory


@dataclass
class FollowReply(IdlStruct, typename="reach_msgs::action::dds_::Follow_SendGoal_Response_"):
    client: uint64
    count: int64
    accepted: bool


@dataclass
class FollowFeedback(IdlStruct, typename="reach_msgs::action::dds_::Follow_FeedbackMessage_"):
    goal_id: Uuid
    elapsed_s: float64
    error_rad: float64


@dataclass
class FollowResult(IdlStruct, typename="reach_msgs::action::dds_::Follow_GetResult_Response_"):
    client: uint64
    count: int64
    goal_id: Uuid
    code: int32  # of control_msgs/FollowJointTrajectory
    reason: str
    execution: Execution


def message_id(goal_id: list[int]) -> int:
    return int.from_bytes(bytes(goal_id[:8]), "little")
