"""The reaching workload's nodes, and the trials of its client: `ros2 launch workloads/reach/ros2/reach.launch.py trials:=5 listen:=4`.

Python is the one that `make ros2` made or that has what it installs; it ends when the client does."""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ROOT = Path(__file__).resolve().parents[3]
PARAMETERS = {
    "listen": "0",
    "depth": "-1",
    "reliability": "reliable",
    "priority": "normal",
    "seed": "1",
    "stall_limit": "0.02",
}
TYPES = {"reliability": str, "priority": str, "stall_limit": float}


def generate_launch_description() -> LaunchDescription:
    given = {name: ParameterValue(LaunchConfiguration(name), value_type=TYPES.get(name, int)) for name in PARAMETERS}

    def node(name: str, *arguments: object, **more: object) -> Node:
        words = ["-m", f"workloads.reach.ros2.{name}", *arguments]
        return Node(
            executable=sys.executable, arguments=words, parameters=[given], output="screen", cwd=str(ROOT), **more
        )

    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=value)
                for name, value in (PARAMETERS | {"trials": "5"}).items()
            ),
            *(node(name) for name in ("simulator", "state_publisher", "planner")),
            node("client", "--trials", LaunchConfiguration("trials"), on_exit=Shutdown()),
        ]
    )
