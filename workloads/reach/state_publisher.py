"""The state publisher process: joint states in, transforms of all links out."""

import argparse
import sys

import numpy as np
import taut

from . import messages as m
from . import node, options, topics
from .arm import LINKS, Arm
from .bus import Bus


def run(chosen: options.Options, bus: Bus, stop: node.Stop) -> None:
    arm = Arm()
    tf = bus.publisher(topics.TF)

    def joint_state(state: m.JointState) -> None:
        taut.stamp("state_publisher.joint_state_taken", state.header.stamp.ns)
        places, turns = arm.poses(np.array(state.position))
        tf(m.TFMessage([transform(state.header, *link) for link in zip(LINKS, places, turns, strict=True)]))
        taut.stamp("state_publisher.tf_published", state.header.stamp.ns)
        taut.applied(state.header.stamp.ns)

    bus.subscribe(topics.JOINT_STATES, joint_state)
    bus.until_joined(node.JOIN_S, topics.JOINT_STATES)
    print("ready", flush=True)
    while not stop.is_set():
        bus.spin_once(0.1)


def transform(header: m.Header, link: str, place: np.ndarray, turn: np.ndarray) -> m.TransformStamped:
    w, x, y, z = map(float, turn)
    place_m = m.Vector3(*map(float, place))
    return m.TransformStamped(header, link, m.Transform(place_m, m.Quaternion(x, y, z, w)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m workloads.reach.state_publisher", description=__doc__)
    options.add(parser)
    sys.exit(node.main("state_publisher", run, options.chosen(parser.parse_args())))
