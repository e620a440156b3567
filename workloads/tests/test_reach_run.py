"""Whole runs of the reach workload with its processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from workloads.tests.processes import ROOT, alive, children, in_time, start, until

for package in ("mujoco", "ompl", "ruckig", "cyclonedds", "taut"):
    pytest.importorskip(package, reason=f"{package} is not installed")

AHEAD = list(pytest.importorskip("taut.demo").real_time())
"""With a right to it the controller waits for no other program."""
DOMAIN = 100 + os.getpid() % 100
"""Of this run of the tests alone."""


def reach(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return start("reach", "--domain", str(DOMAIN), "--stall-limit", "5s", *arguments, **environment)


def needs_ros2() -> None:
    from workloads.reach.ros2 import environment

    try:
        environment.interpreter()
    except environment.NoRos2 as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("bus", ["dds", "zenoh", "shm", "ros2", "ros2 together"])
def test_the_arm_reaches_the_goal_over_every_bus(bus: str) -> None:
    bus, *together = bus.split()
    if bus == "ros2":
        needs_ros2()
    else:
        package = {"zenoh": "zenoh", "shm": "iceoryx2"}.get(bus, "cyclonedds")
        pytest.importorskip(package, reason=f"{package} is not installed")
    how = [f"--{word}" for word in together] + AHEAD

    def run() -> tuple[int, str, str]:
        process = reach("--trials", "1", "--json", "--bus", bus, *how)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    code, out, err = in_time(run, lambda result: result[0] == 4, lambda result: result[0] == 1)
    assert code == 0, err + out
    (trial,) = [json.loads(line) for line in out.splitlines()]
    assert trial["success"] and trial["status"] == "success" and trial["goal_error_mm"] < 10
    assert trial["planning_ms"] > 0 and trial["states_checked"] > 50
    assert trial["control_cycles"] * 2 >= trial["planned_ms"] - 2
    assert trial["end_to_end_ms"] > trial["planned_ms"] > 500
    assert trial["feedbacks"] >= 5


def test_a_flood_that_the_planner_takes_arrives_there() -> None:
    from workloads.reach import messages, topics
    from workloads.reach.bus import open_bus
    from workloads.reach.options import Options

    bus = open_bus(Options(domain=DOMAIN))
    send = bus.publisher(topics.flood(1))

    def run() -> tuple[int, str, str]:
        process = reach("--trials", "1", "--json", *AHEAD, REACH_LISTEN="1", REACH_THROTTLE="adaptive")
        while process.poll() is None and topics.flood(1).name in bus.alone():
            bus.spin_once(0.02)
        while process.poll() is None:
            send(messages.String("X" * 1024))
            time.sleep(0.005)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    code, out, err = in_time(run, lambda result: result[0] == 4, lambda result: result[0] == 1)
    assert code == 0, err + out
    (trial,) = [json.loads(line) for line in out.splitlines()]
    assert trial["success"] and trial["flood_taken"] > 10


def with_one_held(part: str) -> tuple[int, dict[str, Any]]:
    """A trial in whose motion this process does not run for 300 ms. A stall is what is longer than 200 ms."""
    from workloads.reach import topics
    from workloads.reach.bus import open_bus
    from workloads.reach.options import Options

    bus, moves = open_bus(Options(domain=DOMAIN)), threading.Event()
    bus.subscribe(topics.FOLLOW_FEEDBACK, lambda _: moves.set())
    process = reach("--trials", "1", "--json", "--stall-limit", "200ms", *AHEAD)
    while process.poll() is None and not moves.is_set():
        bus.spin_once(0.02)
    for pid in named(part, children(process.pid)):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(pid, signal.SIGCONT)
    out, err = process.communicate(timeout=600)
    bus.close()
    assert out, err
    return process.returncode, json.loads(out)


def named(name: str, parents: list[int]) -> list[int]:
    """Children of these whose name it is."""
    return [pid for parent in parents for pid in children(parent) if comm(pid) == name]


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_an_arm_that_the_machine_held_up_is_no_failure_of_the_robot() -> None:
    code, trial = with_one_held("arm")
    assert trial["simulator_slip_max_ms"] > 250
    assert (code, trial["status"], trial["valid"]) == (4, "invalid", False)
    assert "stalled" not in trial["reason"]
    # Without the slip it is the motion that was planned.
    assert abs(trial["excess_ms"]) < 200 and trial["real_time_factor"] < 0.97


def test_a_controller_that_was_held_up_has_failed_by_itself() -> None:
    code, trial = in_time(lambda: with_one_held("controller"), lambda result: not result[1]["valid"])
    assert (code, trial["status"], trial["valid"]) == (1, "execution_failed", True)
    assert trial["reason"] == "execution_failed: control stalled"
    assert trial["control_missed"] >= 125 and trial["control_lateness_max_us"] > 250_000


def on_ros2_held(program: str) -> tuple[int, dict[str, Any]]:
    """A trial on ROS 2, in which this program does not run for 300 ms again and again; some of it before the trial's reset."""
    from workloads.reach import processes
    from workloads.reach.options import Options

    options = Options(bus="ros2", domain=DOMAIN, stall_limit=0.2, priority=AHEAD[-1] if AHEAD else "normal")
    with processes.system(options, threading.Event()):
        client = processes.start("client", options, "--trials", "1")
        nodes = children(os.getpid())
        (pid,) = [
            pid for pid in [*nodes, *(below for node in nodes for below in children(node))] if comm(pid) == program
        ]
        while client.poll() is None:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.4)
        out, _ = client.communicate(timeout=600)
    return client.returncode, json.loads(out)


def test_on_ros2_too_each_is_held_up_by_itself() -> None:
    needs_ros2()
    code, trial = on_ros2_held("arm")
    assert (code, trial["status"], trial["valid"]) == (4, "invalid", False)
    assert trial["simulator_slip_max_ms"] > 250 and "stalled" not in trial["reason"]
    # The controller is a thread of the node.
    code, trial = in_time(lambda: on_ros2_held("simulator"), lambda result: not result[1]["valid"])
    assert (code, trial["status"]) == (1, "execution_failed")
    assert trial["reason"] == "execution_failed: control stalled" and trial["control_lateness_max_us"] > 250_000


def test_the_run_ends_with_its_controller() -> None:
    process = reach("--duration", "600", "--json")
    until(lambda: process.poll() is not None or bool(named("controller", children(process.pid))))
    os.kill(named("controller", children(process.pid))[0], signal.SIGKILL)
    process.communicate(timeout=600)
    assert process.returncode != 0


def test_a_goal_that_ros2_cancels_stops_the_arm() -> None:
    needs_ros2()
    from workloads.reach import processes
    from workloads.reach.options import Options

    options, stop = (
        Options(bus="ros2", domain=DOMAIN, stall_limit=5.0, priority=AHEAD[-1] if AHEAD else "normal"),
        threading.Event(),
    )

    def run() -> tuple[int, list[dict[str, Any]]]:
        with processes.system(options, stop):
            client = processes.start("client", options, "--trials", "2", "--cancel-after", "600ms")
            out, _ = client.communicate(timeout=600)
        return client.returncode, [json.loads(line) for line in out.splitlines()]

    code, trials = in_time(
        run,
        lambda result: any(trial["status"] == "invalid" for trial in result[1]),
        lambda result: [trial["status"] for trial in result[1]] != ["canceled"] * 2,
    )
    assert code == 0 and [trial["status"] for trial in trials] == ["canceled"] * 2
    # The second goal was accepted, so the first one's motion was over.
    assert all(trial["control_cycles"] * 2 < trial["planned_ms"] for trial in trials)


REFUSING = """
from types import SimpleNamespace

from rclpy.action import GoalResponse
from reach_msgs.action import Follow
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from workloads.reach.ros2.simulator import Simulator

for position, answer in ((0.0, GoalResponse.ACCEPT), (float("nan"), GoalResponse.REJECT)):
    points = [JointTrajectoryPoint(positions=[position] * 7, velocities=[0.0] * 7)]
    assert Simulator.on_goal(SimpleNamespace(goal=None), Follow.Goal(trajectory=JointTrajectory(points=points))) == answer
"""
OVERFLOWING = """
from contextlib import closing

import numpy as np

from workloads.reach import arm, robot
from workloads.reach.options import Options
from workloads.reach.ros2.controller import Controller
from workloads.reach.trajectory import Trajectory

with closing(robot.Arm(5.0)) as robot_arm, closing(Controller(Options(bus="ros2", stall_limit=5.0), robot_arm)) as controller:
    assert controller.reset()
    positions = np.array([arm.Arm().home, np.full(7, 1e308)])
    assert controller.follow(Trajectory(np.array([0.0, 1.0]), positions, np.zeros((2, 7))))
    kind = Controller.NONE
    while kind != Controller.ENDED:
        kind, news = controller.news()
    print(news.reason)
"""


def in_ros2(script: str) -> subprocess.CompletedProcess[str]:
    from workloads.reach.ros2 import environment

    python, variables = environment.interpreter()
    variables = variables | {
        "ROS_DOMAIN_ID": str(DOMAIN),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run([python, "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done


def test_ros2_refuses_what_is_no_trajectory() -> None:
    needs_ros2()
    assert "a trajectory was refused: a position or velocity that is not finite" in in_ros2(REFUSING).stderr


def test_no_torque_comes_of_what_overflows_on_ros2() -> None:
    needs_ros2()
    assert in_ros2(OVERFLOWING).stdout.strip() == "torque not finite"


def test_the_report_of_unmodified_nodes_shows_their_chains(tmp_path: Path) -> None:
    needs_ros2()
    taut, run = Path(sys.executable).with_name("taut"), str(tmp_path / "run.mcap")
    if not taut.exists():
        pytest.skip(f"{taut} is not there; run `make setup`")
    # As with ROS 2's setup sourced, by which `taut record` knows that the nodes are ROS 2's.
    sourced = os.environ | {"AMENT_PREFIX_PATH": str(ROOT / ".venv-ros2"), "REACH_STALL_LIMIT": "5s"}
    words = ["-m", "workloads.reach", "--bus", "ros2", "--domain", str(DOMAIN), "--trials", "1", "--json", *AHEAD]
    recorded = [str(taut), "record", "--quiet", "--ignore-loss", "-o", run, "--", sys.executable, *words]
    done = in_time(
        lambda: subprocess.run(recorded, cwd=ROOT, env=sourced, capture_output=True, text=True, timeout=600),
        lambda done: done.returncode == 4,
        lambda done: done.returncode == 1,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    reported = subprocess.run(
        [str(taut), "report", run, "--format", "json"], capture_output=True, text=True, timeout=600
    )
    chains = json.loads(reported.stdout)["chains"]

    def most(first: str, passed: str) -> int:
        """Messages of the chain from there that goes through that point."""
        through = (chain for chain in chains if passed in (point["name"] for point in chain["points"]))
        return max((chain["messages"] for chain in through if chain["name"].startswith(first)), default=0)

    # A trial is of more than 0.5 s: 100 joint states a second, 500 updates of the controller.
    for node in ("state_publisher", "planner", "client"):
        assert most("/panda_arm_controller publish /joint_states", f"/{node} callback /joint_states") > 50
    assert most("/panda_arm_controller timer 2 ms", "/panda_arm_controller timer 2 ms end") > 250
    assert any("/client request /simulator/reset" in chain["name"] for chain in chains)


@pytest.mark.parametrize("bus", ["dds", "ros2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_every_process(number: signal.Signals, bus: str) -> None:
    if bus == "ros2":
        needs_ros2()
    run = reach("--duration", "600", "--json", "--bus", bus)
    until(lambda: run.poll() is not None or len(children(run.pid)) == 4)
    assert run.poll() is None, "the system did not come up"
    family = [pid for child in children(run.pid) for pid in [child, *children(child)]]
    assert "arm" in map(comm, family)
    run.send_signal(number)
    run.communicate(timeout=600)
    until(lambda: not any(map(alive, family)))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (["--bus", "ring"], "none of dds, zenoh, shm, ros2"),
        (["--depth", "0"], "neither `all`"),
        (["--trials", "-1"], "-1"),
        (["--together"], "is for --bus ros2"),
        (["--bus", "ros2", "--throttle", "adaptive"], "not for --bus ros2"),
    ],
    ids=str,
)
def test_what_is_not_there_is_refused(choice: list[str], said: str) -> None:
    run = reach(*choice)
    _, err = run.communicate(timeout=600)
    assert run.returncode == 2 and said in err


@pytest.mark.skipif(not AHEAD, reason="needs the right to a real-time priority")
def test_only_the_controller_is_before_the_arm() -> None:
    run = reach("--duration", "600", "--json", "--priority", "fifo")

    def priorities() -> dict[str, tuple[int, int]]:
        found = {}
        for pid in (pid for child in children(run.pid) for pid in [child, *children(child)]):
            with contextlib.suppress(OSError):  # it has ended
                found[comm(pid)] = (os.sched_getscheduler(pid), os.sched_getparam(pid).sched_priority)
        return found

    until(lambda: {"controller", "arm", "simulator", "client"} <= priorities().keys())
    found = priorities()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=600)
    assert (found["controller"], found["arm"]) == ((os.SCHED_FIFO, 80), (os.SCHED_FIFO, 70))
    assert found["simulator"] == found["client"] == (os.SCHED_OTHER, 0)
