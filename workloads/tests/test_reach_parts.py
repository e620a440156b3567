"""The arm, the planner and the controller of the reach workload, without processes."""

import numpy as np
import pytest

for package in ("mujoco", "ompl", "ruckig", "cyclonedds", "taut"):
    pytest.importorskip(package, reason=f"{package} is not installed")

from workloads.reach import __main__ as command  # noqa: E402
from workloads.reach import messages as m  # noqa: E402
from workloads.reach.arm import MAX_ACCELERATION_RAD_S2, MAX_SPEED_RAD_S, Arm  # noqa: E402
from workloads.reach.control import PERIOD_NS, Controller, Follow  # noqa: E402
from workloads.reach.planner import travelling  # noqa: E402
from workloads.reach.planning import SCALING, Planner, PlanningFailed  # noqa: E402
from workloads.reach.throttle import LONGEST_S, SHORTEST_S, Throttle  # noqa: E402
from workloads.reach.trajectory import Trajectory  # noqa: E402
from workloads.reach.trial import GOAL_M  # noqa: E402

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


def follow(controller: Controller, plan: Trajectory, missed_at: dict[int, int]) -> tuple[str | None, Follow]:
    """Runs cycles, each in time but those that `missed_at` says, until the trajectory ends."""
    task = Follow(plan, [0] * 16)
    controller.start(task)
    due_ns = 10**9
    for cycle in range(5000):
        missed = missed_at.get(cycle, 0)
        due_ns += missed * PERIOD_NS
        ended = controller.cycle(due_ns, due_ns + 1000, missed)
        if ended is not None:
            return ended, task
        due_ns += PERIOD_NS
    return None, task


def test_the_arm_follows_and_arrives(plan: Trajectory) -> None:
    controller = Controller(stall_limit_ns=20_000_000)
    ended, task = follow(controller, plan, {})
    assert ended == ""
    execution = task.execution(task.last_command_ns)
    moved_s = (execution.last_command_ns - execution.first_command_ns) / 1e9
    assert 0 <= moved_s - plan.duration_s < 0.1
    assert execution.missed == 0 and execution.tracking_max_rad < 0.02
    assert np.allclose(controller.data.qpos, plan.positions[-1], atol=0.02)


def test_missed_cycles_are_counted_and_the_arm_goes_on_without_them(plan: Trajectory) -> None:
    ended, task = follow(Controller(stall_limit_ns=20_000_000), plan, {100: 4, 200: 1})
    execution = task.execution(task.last_command_ns)
    assert ended == "" and execution.missed == 5
    # A missed cycle is late by all the periods until the one that ran.
    assert execution.lateness_max_ns == 4 * PERIOD_NS + 1000
    assert execution.cycles == len(task.errors_rad) + 5


def test_a_stalled_controller_gives_up(plan: Trajectory) -> None:
    ended, task = follow(Controller(stall_limit_ns=20_000_000), plan, {100: 12})
    assert ended == "control stalled"
    assert len(task.errors_rad) == 101


def test_a_trajectory_survives_its_message(plan: Trajectory) -> None:
    sent = travelling(plan)
    came = m.JointTrajectory.deserialize(sent.serialize())
    assert came == sent and len(came.points) == len(plan.times_s)


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


def test_the_first_line_says_how_the_trials_ended() -> None:
    good, bad = {"success": True}, {"success": False, "reason": "execution_failed: control stalled"}
    assert command.table([good, good]).splitlines()[0] == "reach: 2 of 2 trials succeeded"
    first = command.table([good, bad, bad]).splitlines()[0]
    assert first == "reach: failed: trial 2: execution_failed: control stalled; 1 of 3 trials succeeded"
