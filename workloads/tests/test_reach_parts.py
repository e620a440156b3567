"""The arm, the planner and the links of the reach workload, without processes."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

for package in ("mujoco", "ompl", "ruckig", "cyclonedds", "taut"):
    pytest.importorskip(package, reason=f"{package} is not installed")

from workloads.reach import __main__ as command  # noqa: E402
from workloads.reach import messages as m  # noqa: E402
from workloads.reach.arm import MAX_ACCELERATION_RAD_S2, MAX_SPEED_RAD_S, Arm  # noqa: E402
from workloads.reach.controller import ENDED, EXECUTION, JOINT_STATE, PROGRESS, Ended, Progress, State, parsed  # noqa: E402
from workloads.reach.options import Options  # noqa: E402
from workloads.reach.planner import PlannerNode, Running, travelling  # noqa: E402
from workloads.reach.planning import SCALING, Planner, PlanningFailed  # noqa: E402
from workloads.reach.robot import Slips  # noqa: E402
from workloads.reach.simulator import Simulator  # noqa: E402
from workloads.reach.supervision import Supervision  # noqa: E402
from workloads.reach.throttle import LONGEST_S, SHORTEST_S, Throttle  # noqa: E402
from workloads.reach.trajectory import MOST_POINTS, MOST_S, Refused, Trajectory  # noqa: E402
from workloads.reach.trial import GOAL_M, exit_code, held_up  # noqa: E402

# Modified Denavit-Hartenberg parameters of the Panda: a in m, d in m, alpha in rad; then the flange and the hand's tool point.
DH = [
    (0, 0.333, 0),
    (0, 0, -np.pi / 2),
    (0, 0.316, np.pi / 2),
    (0.0825, 0, np.pi / 2),
    (-0.0825, 0.384, -np.pi / 2),
    (0, 0, np.pi / 2),
    (0.088, 0, np.pi / 2),
    (0, 0.107 + 0.1034, 0),
]


def tool_by_dh(joints: np.ndarray) -> np.ndarray:
    pose = np.eye(4)
    for (a, d, alpha), q in zip(DH, [*joints, 0.0], strict=True):
        ca, sa, cq, sq = np.cos(alpha), np.sin(alpha), np.cos(q), np.sin(q)
        pose = pose @ np.array(
            [[cq, -sq, 0, a], [sq * ca, cq * ca, -sa, -d * sa], [sq * sa, cq * sa, ca, d * ca], [0, 0, 0, 1]]
        )
    tool: np.ndarray = pose[:3, 3]
    return tool


def test_the_model_has_the_published_kinematics() -> None:
    arm, random = Arm(), np.random.default_rng(7)
    for _ in range(50):
        joints = random.uniform(arm.lower, arm.upper)
        assert np.allclose(arm.tool_at(joints), tool_by_dh(joints), atol=1e-9)


def test_home_points_down_and_touches_nothing() -> None:
    arm = Arm()
    assert np.allclose(arm.tool_at(arm.home), [0.3069, 0.0, 0.4869], atol=1e-3)
    assert np.allclose(arm.turned_at(arm.home)[:, 2], [0, 0, -1])
    assert not arm.touches(arm.home)


def test_the_wall_is_in_the_way() -> None:
    arm = Arm()
    goals = arm.reach(np.array(GOAL_M), np.random.default_rng(1))
    assert goals and not any(arm.touches(goal) for goal in goals)
    for goal in goals:
        assert np.allclose(arm.tool_at(goal), GOAL_M, atol=1e-3)
        assert np.allclose(arm.turned_at(goal), arm.turned_at(arm.home), atol=2e-3)
        assert any(arm.touches(arm.home + share * (goal - arm.home)) for share in np.linspace(0, 1, 200))


@pytest.fixture(scope="module")
def plan() -> Trajectory:
    planner = Planner(1)
    return planner.plan(planner.arm.home, np.array(GOAL_M)).trajectory


def test_a_plan_leads_round_the_obstacle_within_the_limits(plan: Trajectory) -> None:
    arm = Arm()
    assert np.allclose(plan.positions[0], arm.home)
    assert np.allclose(arm.tool_at(plan.positions[-1]), GOAL_M, atol=1e-3)
    for time_s in np.linspace(0.0, plan.duration_s, 2000):
        position, speed, acceleration = plan.at(float(time_s))
        assert not arm.touches(position)
        assert (np.abs(speed) <= SCALING * MAX_SPEED_RAD_S * 1.01).all()
        # Between points the acceleration is that of a cubic, which overshoots where the jerk is high.
        assert (np.abs(acceleration) <= SCALING * MAX_ACCELERATION_RAD_S2 * 1.6).all()


def test_where_nothing_can_be_planned_it_says_so() -> None:
    planner = Planner(1)
    with pytest.raises(PlanningFailed, match="no inverse kinematics"):
        planner.plan(planner.arm.home, np.array([2.0, 0.0, 0.5]))
    with pytest.raises(PlanningFailed, match="start in collision"):
        planner.plan(np.array([0.0, 1.7, 0.0, -0.1, 0.0, 1.5, 0.0]), np.array(GOAL_M))


def test_a_trajectory_is_sampled_as_the_controller_samples_it() -> None:
    """src/trajectory.rs is held to the same file, which `Trajectory.at` made."""
    told = json.loads(Path(__file__).with_name("trajectory.json").read_text())
    columns = (np.array([point[name] for point in told["points"]]) for name in ("time_s", "position", "speed"))
    trajectory = Trajectory(*columns)
    for sample in told["samples"]:
        expected = [sample[name] for name in ("position", "speed", "acceleration")]
        assert np.allclose(trajectory.at(sample["time_s"]), expected, rtol=1e-9, atol=1e-9)


GOAL = bytes(range(16))
VALUES = [float(value) for value in range(21)]
NEWS: list[tuple[bytes, Any]] = [
    (
        JOINT_STATE.pack(b"joints/1", 3, 4, 5, 6, *VALUES),
        State(3, Slips(4, 5, 6), VALUES[:7], VALUES[7:14], VALUES[14:]),
    ),
    (PROGRESS.pack(b"motion/1", GOAL, 0.5, 0.25), Progress(list(GOAL), 0.5, 0.25)),
    (
        ENDED.pack(b"ended/1\0", GOAL, b"control stalled", *range(1, 12), 0.5, 1.5, 2.5, 3.5),
        Ended(
            list(GOAL),
            "control stalled",
            m.Execution(**dict(zip(EXECUTION, [*range(1, 12), 0.5, 1.5, 2.5, 3.5], strict=True))),
        ),
    ),
]


@pytest.mark.parametrize(("packet", "news"), NEWS, ids=["state", "progress", "ended"])
def test_news_are_read_whole_and_what_is_none_is_refused(packet: bytes, news: Any) -> None:
    assert parsed(packet) == news
    foreign = [packet[:length] for length in range(len(packet))]
    for wrong in [*foreign, packet + bytes(8), b"other/1\0" + packet[8:]]:
        with pytest.raises(ValueError, match="a packet"):
            parsed(wrong)


def test_a_trial_whose_simulator_was_held_up_is_no_evidence_whatever_came_of_it() -> None:
    failed = {"success": False, "reason": "execution_failed: no feedback from the controller"}
    for outcome in ({"success": True}, failed):
        for total_ns, longest_ns in ((300_000_000, 300_000_000), (600_000_000, 90_000_000)):
            figures = held_up(dict(outcome), 9, total_ns, longest_ns, 4.0)
            assert (figures["status"], figures["success"], figures["valid"]) == ("invalid", False, False)
            assert figures["simulator_slips"] == 9 and figures["simulator_slip_max_ms"] == longest_ns / 1e6
            assert ("no feedback" in figures["reason"]) is (not outcome["success"])
        figures = held_up(dict(outcome), 1, 90_000_000, 90_000_000, 4.0)
        assert figures["valid"] and figures["success"] is outcome["success"]
        assert figures["status"] == ("success" if outcome["success"] else "execution_failed")


def test_a_trajectory_survives_its_message(plan: Trajectory) -> None:
    sent = travelling(plan)
    came = m.JointTrajectory.deserialize(sent.serialize())
    assert came == sent and len(came.points) == len(plan.times_s)


def point(time_s: float = 0.0, position: float = 0.0, speed: float = 0.0, joints: int = 7) -> m.JointTrajectoryPoint:
    return m.JointTrajectoryPoint([position] * joints, [speed] * 7, [], [], m.Time.of(round(1e9 * time_s)))


NO_TRAJECTORIES: list[tuple[str, list[m.JointTrajectoryPoint]]] = [
    ("0 points", []),
    (f"{MOST_POINTS + 1} points", [point()] * (MOST_POINTS + 1)),
    ("without 7", [point(), point(1.0, joints=6)]),
    *(("not finite", [point(), point(1.0, value)]) for value in (np.nan, np.inf, -np.inf)),
    ("not finite", [point(), point(1.0, 0.0, np.nan)]),
    ("go back", [point(), point(1.0), point(0.5)]),
    ("go back", [point(-1.0), point()]),
    (f"more than {MOST_S:g} s", [point(), point(MOST_S + 1.0)]),
]


class FakeBus:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def publisher(self, _: Any) -> Callable[[Any], None]:
        return self.sent.append

    def subscribe(self, _: Any, __: Any) -> None:
        pass


class FakeController:
    """Its news are one state, and then no packet that is known."""

    def __init__(self) -> None:
        self.followed: list[Trajectory] = []

    def follow(self, _: list[int], trajectory: Trajectory) -> None:
        self.followed.append(trajectory)

    def news(self) -> Iterator[State]:
        yield State(0, Slips(), VALUES[:7], VALUES[7:14], VALUES[14:])
        parsed(b"other/1\0")


@pytest.mark.parametrize(("why", "points"), NO_TRAJECTORIES)
def test_what_is_no_trajectory_is_refused_and_not_followed(
    why: str, points: list[m.JointTrajectoryPoint], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused, match=why):
        Trajectory.of(points)
    controller, replies = FakeController(), FakeBus()
    simulator = Simulator(cast(Any, None), cast(Any, controller))
    request = m.FollowRequest(1, 2, list(GOAL), m.JointTrajectory(m.Header(), [], points))
    simulator._follow(request, replies.sent.append)
    assert replies.sent == [m.FollowReply(1, 2, False)] and not controller.followed
    assert why in capsys.readouterr().err
    request.trajectory.points = [point(), point(1.0), point(1.0), point(MOST_S)]
    simulator._follow(request, replies.sent.append)
    assert replies.sent[1:] == [m.FollowReply(1, 2, True)] and len(controller.followed) == 1


def test_a_goal_ends_when_the_controller_refuses_it() -> None:
    bus = FakeBus()
    planner = PlannerNode(Options(), cast(Any, bus))
    result = m.ReachResult(1, 2, list(GOAL), 0, "", 0, 0, 0, 0, 0.0, 0.0, m.Execution(), 0)
    planner.running = Running(result, Supervision(1.0, 0.0, 0.0))
    planner._follow_accepted(m.FollowReply(planner.client, planner.count, False))
    assert planner.running is None and bus.sent == [result]
    assert (result.code, result.reason) == (-4, "execution_failed: controller refused")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_simulator_ends_when_a_thread_of_it_fails() -> None:
    simulator, bus = Simulator(cast(Any, None), cast(Any, FakeController())), FakeBus()
    thread = threading.Thread(target=simulator.serve, args=(simulator.publish, bus))
    thread.start()
    thread.join()
    assert len(bus.sent) == 1 and simulator.stop.is_set() and simulator.failed


def test_the_throttle_backs_off_while_control_is_late_and_comes_back() -> None:
    throttle = Throttle()
    assert throttle.may_look(1.0) and not throttle.may_look(1.0)
    for _ in range(30):
        throttle.control_waited(0.1)
    assert throttle.interval_s == LONGEST_S
    assert throttle.may_look(2.0) and not throttle.may_look(2.0 + LONGEST_S / 2) and throttle.may_look(2.01 + LONGEST_S)
    for _ in range(300):
        throttle.control_waited(0.001)
    assert throttle.interval_s == SHORTEST_S


def test_the_first_line_and_the_exit_code_say_how_the_trials_ended() -> None:
    good = {"success": True, "valid": True}
    bad = {"success": False, "valid": True, "reason": "execution_failed: control stalled"}
    void = {"success": False, "valid": False, "reason": "invalid: the machine held it up"}

    def said(*trials: dict[str, Any]) -> tuple[str, int]:
        return command.table(list(trials)).splitlines()[0], exit_code(list(trials))

    assert said(good, good) == ("reach: 2 of 2 trials succeeded", 0)
    failed = "reach: failed: trial 2: execution_failed: control stalled; 1 of 3 trials succeeded"
    assert said(good, bad, bad) == (failed, 1)
    assert said(void, bad, good) == (failed, 1)
    no_evidence = "reach: no evidence: trial 1: the machine held it up; 1 of 2 trials succeeded"
    assert said(void, good) == (no_evidence, 4)
