"""The topics of the system: name on the wire, type, and whether it is a service's (always reliable) or a topic's."""

from dataclasses import dataclass

from cyclonedds.idl import IdlStruct

from . import messages as m


@dataclass(frozen=True)
class Topic:
    name: str
    type: type[IdlStruct]
    service: bool = False
    depth: int = 10
    """As ROS 2's default profiles; of a topic it can be chosen."""
    flood: bool = False


def _request(service: str, name: str, of: type[IdlStruct]) -> Topic:
    return Topic(f"rq/{service}/{name}Request", of, service=True)


def _reply(service: str, name: str, of: type[IdlStruct]) -> Topic:
    return Topic(f"rr/{service}/{name}Reply", of, service=True)


REACH, FOLLOW = "reach", "panda_arm_controller/follow_joint_trajectory"

JOINT_STATES = Topic("rt/joint_states", m.JointState)
TF = Topic("rt/tf", m.TFMessage, depth=100)
RESET = _request("simulator", "reset", m.ResetRequest)
RESET_DONE = _reply("simulator", "reset", m.ResetReply)
ASK_HELD_UP = _request("simulator", "held_up", m.HeldUpRequest)
HELD_UP = _reply("simulator", "held_up", m.HeldUpReply)
REACH_GOAL = _request(REACH, "_action/send_goal", m.ReachRequest)
REACH_ACCEPTED = _reply(REACH, "_action/send_goal", m.ReachReply)
REACH_FEEDBACK = Topic(f"rt/{REACH}/_action/feedback", m.ReachFeedback)
REACH_RESULT = _reply(REACH, "_action/get_result", m.ReachResult)
FOLLOW_GOAL = _request(FOLLOW, "_action/send_goal", m.FollowRequest)
FOLLOW_ACCEPTED = _reply(FOLLOW, "_action/send_goal", m.FollowReply)
FOLLOW_FEEDBACK = Topic(f"rt/{FOLLOW}/_action/feedback", m.FollowFeedback)
FOLLOW_RESULT = _reply(FOLLOW, "_action/get_result", m.FollowResult)


def flood(number: int) -> Topic:
    """The load's, from 1."""
    return Topic(f"rt/flood_topic_{number}", m.String, flood=True)
