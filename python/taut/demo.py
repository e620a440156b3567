"""`taut demo`: a robot's loop, recorded and reported, from the wheel alone.

The robots are the repository's workloads. The wheel brings them as data, under share/taut, so that `import workloads` of other code is unchanged.
"""

import argparse
import importlib.util
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from taut.__main__ import folder_of


@dataclass(frozen=True)
class Demo:
    """A robot: what it is, what it needs beside taut, how it is run, and what to ask of its recording."""

    about: str
    modules: tuple[str, ...]
    arguments: tuple[str, ...]
    question: str


CAP_SYS_NICE, FIFO_MOST = 23, 80
"""Its number, and the highest priority that a robot here asks for."""


def real_time() -> tuple[str, ...]:
    """The other robots take a real-time priority where they may have one; reach is asked for it, for its labs compare both. Without it
    other programs fail its controller, which gives up when it is 20 ms late."""
    return ("--priority", "fifo") if may_be_real_time() else ()


def may_be_real_time() -> bool:
    """Whether this process may use SCHED_FIFO: root in a container may not."""
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return (
        limit == resource.RLIM_INFINITY or limit >= FIFO_MOST or bool(int(effective.split()[1], 16) >> CAP_SYS_NICE & 1)
    )


SOURCE = "--arrangement source --receiver sdk --validator reject --guard naive --companions all"
DEMOS = {
    "teleop": Demo(
        "a small arm leads a large one, 50 setpoints a second; all nodes are threads of one interpreter",
        ("numpy",),
        tuple(SOURCE.split()),
        "explain {run} --hypothesis gil --hypothesis lock:sdk_lock",
    ),
    "quad": Demo(
        "a quadruped trots on twelve simulated servos on four buses, 400 cycles a second",
        ("mujoco",),
        (),
        "explain {run} --worst 3",
    ),
    "reach": Demo(
        "an arm reaches over a wall: planner, controller and client, four processes over DDS",
        ("numpy", "mujoco", "ompl", "ruckig", "cyclonedds"),
        real_time(),
        "explain {run} --hypothesis process:planner",
    ),
    "ros2": Demo(
        "unmodified ROS 2 nodes: camera, detector, planner and controller, four processes",
        ("rclpy", "std_msgs"),
        (),
        "explain {run} --hypothesis executor",
    ),
}
SECONDS = 15.0
# Exit codes of a robot that ran.
FAILED = {1: "the robot failed", 4: "the machine could not run the robot", 5: "the recording lost data"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="taut demo", description="Record a robot and report.")
    parser.add_argument("robot", choices=DEMOS)
    parser.add_argument("--duration", type=float, default=SECONDS, metavar="S")
    parser.add_argument("--output", type=Path, metavar="RUN")
    parser.add_argument("--taut", default="taut", metavar="PROGRAM")
    asked = parser.parse_args()
    try:
        code = show(asked.robot, asked.duration, asked.output or Path(f"taut-demo-{asked.robot}.mcap"), asked.taut)
        sys.stdout.flush()
    except OSError as failed:
        # Whoever read has read enough, or nothing more can be written; either way Python would try again at its end.
        code = 0 if isinstance(failed, BrokenPipeError) else 6
        if code:
            print(f"taut: demo: {failed}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def show(robot: str, seconds: float, run: Path, taut: str) -> int:
    """Records the robot, reports, and says what to ask next. Gives the exit code."""
    demo = DEMOS[robot]
    python, environment = (ros2_python() or (sys.executable, {})) if robot == "ros2" else (sys.executable, {})
    missing = [name for name in demo.modules if python == sys.executable and importlib.util.find_spec(name) is None]
    workloads = folder_of_workloads()
    if missing and robot == "ros2":
        return refuse(
            f"demo ros2: no Python with {' and '.join(missing)}; source ROS 2's setup.bash, or with Python 3.11: "
            "pip install ros-rclpy ros-std-msgs ros-rmw-fastrtps-cpp ros-tracetools"
        )
    if missing:
        return refuse(f"demo {robot}: {sys.executable} has no {', '.join(missing)}; pip install 'taut-….whl[demo]'")
    if workloads is None:
        return refuse(f"demo {robot}: the robots came with no installed wheel; pip install 'taut-….whl[demo]'")
    print(f"taut: {robot}: {demo.about}; {seconds:g} s", file=sys.stderr)
    path = os.pathsep.join(filter(None, [str(workloads), os.environ.get("PYTHONPATH")]))
    program = [python, "-m", f"workloads.{robot}", "--duration", f"{seconds:g}", *demo.arguments]
    recorded = subprocess.run(
        [taut, "record", "-o", run, "--", *program], env=os.environ | environment | {"PYTHONPATH": path}
    )
    # The robot's own verdict on its run, whose reason it has printed, or a loss; the report of that run is worth reading all the same.
    failed = FAILED.get(recorded.returncode)
    if recorded.returncode and failed is None:
        return recorded.returncode
    if failed:
        print(f"taut: demo {robot}: {failed}; the report is of that run", flush=True)
    reported = subprocess.run([taut, "report", run])
    page = run.with_suffix(".html")
    print(f"\nNext:\n  taut {demo.question.format(run=run)}")
    print(f"  taut report {run} --format html -o {page}\n  taut export perfetto {run}")
    return recorded.returncode or reported.returncode


def ros2_python() -> tuple[str, dict[str, str]] | None:
    """An interpreter with rclpy, and what the environment must hold for it: of ROS 2's wheels, where their libraries lie."""
    # `make ros2` puts it into the checkout: where the package is, or beside the environment that it is installed in.
    own = [folder / ".venv-ros2" / "bin" / "python" for folder in (Path(__file__).parents[2], Path(sys.prefix).parent)]
    for python in [sys.executable, shutil.which("python3"), *map(str, own)]:
        if python is None or not Path(python).exists():
            continue
        prefix = Path(python).parent.parent
        libraries = os.pathsep.join(filter(None, [str(prefix / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        wheels = {"AMENT_PREFIX_PATH": str(prefix), "LD_LIBRARY_PATH": libraries}
        environment = wheels if (prefix / "lib" / "librcl.so").exists() else {}
        tried = [python, "-c", "import rclpy, std_msgs"]
        if subprocess.run(tried, env=os.environ | environment, capture_output=True).returncode == 0:
            return python, environment
    return None


def refuse(why: str) -> int:
    print(f"taut: {why}", file=sys.stderr)
    return 2


def folder_of_workloads() -> Path | None:
    """The folder that `workloads` is imported from: the checkout's, or where the wheel put it."""
    checkout = Path(__file__).parents[2]
    if (checkout / "workloads" / "teleop").is_dir():
        return checkout
    package = folder_of("share/taut/workloads/__init__.py")
    return package.parent if package else None
