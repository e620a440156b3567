"""How the nodes are started: the interpreter that has ROS 2, what its environment must hold, and the command line. Runs without ROS 2."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from ..options import Options

ROOT = Path(__file__).resolve().parents[3]
NEEDED = "rclpy, reach_msgs, tf2_msgs, mujoco, ompl, ruckig"
QUIET = ("--disable-stdout-logs", "--disable-external-lib-logs")
"""What the nodes log goes to /rosout alone."""


class NoRos2(Exception):
    """The text says what to do."""


@cache
def interpreter() -> tuple[str, dict[str, str]]:
    """A Python with ROS 2 and all that the nodes import, and its environment: this one, that of the PATH, or that of `make ros2`.
    Raises NoRos2."""
    # A robot on the same network is not disturbed, and does not disturb.
    local = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"} | os.environ
    why = ""
    for python in (
        sys.executable,
        shutil.which("python3"),
        os.environ.get("REACH_ROS2"),
        str(ROOT / ".venv-ros2/bin/python"),
    ):
        if not python or not Path(python).exists():
            continue
        prefix = Path(python).parent.parent
        # PyPI's wheels are found by their prefix; a ROS 2 whose setup is sourced is found already.
        libraries = os.pathsep.join(filter(None, [str(prefix / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        wheels = {"AMENT_PREFIX_PATH": str(prefix), "LD_LIBRARY_PATH": libraries}
        environment = local | (wheels if (prefix / "lib/librcl.so").exists() else {})
        tried = subprocess.run([python, "-c", f"import {NEEDED}"], env=environment, capture_output=True, text=True)
        if tried.returncode == 0:
            return python, environment
        why = f" ({python}: {tried.stderr.strip().splitlines()[-1]})"
    raise NoRos2(f"no Python has {NEEDED}{why}; run `make ros2`")


def command(node: str, options: Options, *more: str) -> list[str]:
    """The command line of a node. Raises NoRos2."""
    parameters = [word for name, value in options.parameters().items() for word in ("-p", f"{name}:={value}")]
    python, _ = interpreter()
    return [python, "-m", f"workloads.reach.ros2.{node}", *more, "--ros-args", *QUIET, *parameters]
