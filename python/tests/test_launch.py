"""The launch action of `taut_ros2`, in the real `launch` with a real node, from Python, XML and YAML.

It needs the wheels of ROS 2 (`make ros2`, or TAUT_TEST_ROS2) and launch, which PyPI does not have:

    make ros2 && .venv-ros2/bin/pip install osrf-pycommon
    git clone --depth 1 https://github.com/ros2/launch /tmp/launch
    .venv-ros2/bin/pip install --no-deps --target /tmp/launch-site /tmp/launch/launch /tmp/launch/launch_xml /tmp/launch/launch_yaml
    TAUT_TEST_LAUNCH=/tmp/launch-site .venv/bin/pytest python/tests/test_launch.py
"""

import json
import os
import subprocess
import textwrap
import tomllib
from pathlib import Path

import pytest
from conftest import TAUT

ROOT = Path(__file__).parents[2]
ROS2 = Path(os.environ.get("TAUT_TEST_ROS2", ROOT / ".venv-ros2"))
LAUNCH = os.environ.get("TAUT_TEST_LAUNCH", "")
MESSAGES = 30

# What `ros2 launch FILE` does, which is not in the wheels.
RUN = """
    import sys
    from launch import LaunchDescription, LaunchService
    from launch.actions import IncludeLaunchDescription
    from launch.launch_description_sources import AnyLaunchDescriptionSource

    service = LaunchService()
    service.include_launch_description(LaunchDescription([IncludeLaunchDescription(AnyLaunchDescriptionSource(sys.argv[1]))]))
    sys.exit(service.run())
"""
NODE = f"""
    import rclpy
    from rclpy.node import Node
    from std_msgs.msg import String

    class Camera(Node):
        def __init__(self):
            super().__init__("camera")
            self.images = self.create_publisher(String, "image_raw", 10)
            self.create_subscription(String, "image_raw", self.on_image, 10)
            self.create_timer(0.01, self.on_timer)
            self.received = 0

        def on_timer(self):
            self.images.publish(String(data="image"))

        def on_image(self, image):
            self.received += 1

    rclpy.init()
    camera = Camera()
    while camera.received < {MESSAGES}:
        rclpy.spin_once(camera)
"""
# Each ends by itself when its last node has; `env` before the action shows that what is set stays.
PYTHON = """
    from launch import LaunchDescription
    from launch.actions import ExecuteProcess
    from taut_ros2 import Record

    def generate_launch_description():
        return LaunchDescription([
            Record(output="{output}", arguments="--tier stamps"{command}),
            ExecuteProcess(cmd=["{python}", "{node}"]),
        ])
"""
XML = """
    <launch>
        <arg name="output" default="{output}"/>
        <taut_record output="$(var output)" arguments="--tier stamps"/>
        <executable cmd="{python} {node}"/>
    </launch>
"""
YAML = """
    launch:
      - taut_record:
          output: {output}
          arguments: --tier stamps
      - executable:
          cmd: {python} {node}
"""


@pytest.fixture
def launched(tmp_path: Path):
    """A function that launches a file, in an environment in which the package `taut_ros2` is installed."""
    python = ROS2 / "bin/python"
    if not python.exists():
        pytest.skip("no wheels of ROS 2: make ros2, or name a virtual environment with TAUT_TEST_ROS2")
    installed = tmp_path / "installed"
    metadata = installed / "taut_ros2-0.dist-info"
    metadata.mkdir(parents=True)
    (installed / "taut_ros2").symlink_to(ROOT / "python/taut_ros2")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: taut-ros2\nVersion: 0\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items()]
    (metadata / "entry_points.txt").write_text("".join(lines))
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(filter(None, [str(installed), LAUNCH])),
        PATH=os.pathsep.join([str(TAUT.parent), os.environ["PATH"]]),
        AMENT_PREFIX_PATH=os.pathsep.join(filter(None, [str(ROS2.resolve()), LAUNCH])),
        LD_LIBRARY_PATH=str(ROS2.resolve() / "lib"),
        ROS_DOMAIN_ID=str(1 + os.getpid() % 100),
        ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
        ROS_HOME=str(tmp_path / "ros"),
        HOME=str(tmp_path),
    )
    if subprocess.run([python, "-c", "import launch.frontend, launch_xml, launch_yaml"], env=environment).returncode:
        pytest.skip("launch is not installed: lay it out as this file says, and name it with TAUT_TEST_LAUNCH")
    (tmp_path / "run.py").write_text(textwrap.dedent(RUN))
    (tmp_path / "node.py").write_text(textwrap.dedent(NODE))

    def launch(name: str, text: str, command: str = "") -> "subprocess.CompletedProcess[str]":
        words = {"output": tmp_path / "run.mcap", "python": python, "node": tmp_path / "node.py", "command": command}
        (tmp_path / name).write_text(textwrap.dedent(text).lstrip().format(**words))
        line = [python, tmp_path / "run.py", tmp_path / name]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120)

    return launch


@pytest.mark.parametrize(("name", "text"), [("a.launch.py", PYTHON), ("a.launch.xml", XML), ("a.launch.yaml", YAML)])
def test_nodes_that_are_launched_after_the_action_are_recorded(launched, tmp_path: Path, name: str, text: str) -> None:
    done = launched(name, text)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[taut_record]: recording process" in done.stdout + done.stderr
    said = subprocess.run([TAUT, "report", "--format", "json", tmp_path / "run.mcap"], capture_output=True, check=True)
    report = json.loads(said.stdout)
    assert report["recording"]["lost_ros_events"] == 0
    chains = {chain["name"]: chain["messages"] for chain in report["chains"]}
    assert chains["/camera timer 10 ms → /camera callback /image_raw end"] >= MESSAGES, chains


def test_the_launch_goes_on_without_a_recorder(launched, tmp_path: Path) -> None:
    done = launched("a.launch.py", PYTHON, ', command="/nowhere/taut"')
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is recorded: [Errno 2] No such file or directory: '/nowhere/taut'" in done.stdout + done.stderr
    assert not (tmp_path / "run.mcap").exists()


def test_the_launch_itself_is_not_named_as_a_node_that_is_not_recorded(launched) -> None:
    # As launch_ros' own node is, which loads components; the recorder looks at processes that live for some time.
    node = "import rclpy\n    rclpy.init()\n    rclpy.create_node('launch')\n    from launch import"
    text = PYTHON.replace("from launch import", node, 1)
    text = text.replace(
        "ExecuteProcess(cmd=", 'ExecuteProcess(cmd=["sleep", "3"]),\n            ExecuteProcess(cmd=', 1
    )
    done = launched("a.launch.py", text)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "was started without" not in done.stdout + done.stderr
