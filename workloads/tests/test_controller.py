"""A controller behind real sockets: the calls, their codes, the stream."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from workloads.teleop import processes
from workloads.teleop.arms import HOME_DEG
from workloads.teleop.client import SAFETY_STOP, ArmClient
from workloads.tests.processes import until

DONE, BAD_PARAMETER, REFUSED = 0, 4, 14
DRAGGED = 4
HOME = [float(v) for v in HOME_DEG]
REST = ([0.0] * 4, 0.0, 0.0, 0.008, 0.0, 0.0, 1)


@contextmanager
def connected(wire: str = "plain") -> Iterator[ArmClient]:
    with processes.clock(["FR3"]) as page:
        arm = processes.start("FR3", page, wire)
        try:
            client = ArmClient("127.0.0.1", arm.command_port, arm.state_port, "framed")
            try:
                client.start()
                client.wait_for_state(10.0)
                yield client
            finally:
                client.stop()
        finally:
            arm.stop()
        assert arm.told["steps"] > 0 and arm.told["slips"]["total_s"] >= 0.0


@pytest.fixture
def client() -> Iterator[ArmClient]:
    with connected() as it:
        yield it


def test_an_arm_ends_when_asked_to_although_its_clock_waits_for_the_other() -> None:
    with processes.clock() as page:
        arm = processes.start("FR3", page)
        arm.stop()
    assert not arm.was_killed and arm.told["slips"]["count"] == 0


def test_servo_j_needs_an_enabled_arm_in_servo_mode(client: ArmClient) -> None:
    assert client.call("ServoJ", HOME, *REST) == REFUSED
    assert client.call("ServoMoveStart") == REFUSED
    assert client.call("RobotEnable", 1) == DONE
    assert client.call("ServoMoveStart") == DONE
    assert client.call("ServoJ", HOME, *REST) == DONE
    assert client.call("ServoMoveEnd") == DONE
    assert client.call("ServoJ", HOME, *REST) == REFUSED


def test_servo_j_moves_the_arm_and_the_stream_shows_it(client: ArmClient) -> None:
    client.call("RobotEnable", 1)
    client.call("ServoMoveStart")
    target = [HOME[0] + 2.0, *HOME[1:]]
    assert client.servo_j(target, message_id=7) == DONE
    until(lambda: abs(client.wait_for_state(1.0).values["actual_joint_pos"][0] - target[0]) < 0.05)
    assert client.wait_for_state(1.0).values["servoJ_cmd_num"] == (1,)


def test_bad_targets_have_their_codes(client: ArmClient) -> None:
    client.call("RobotEnable", 1)
    client.call("ServoMoveStart")
    assert client.call("ServoJ", HOME[:5], *REST) == BAD_PARAMETER
    assert client.call("ServoJ", [176.0, *HOME[1:]], *REST) == REFUSED


def test_a_stopped_arm_answers_99_from_the_cached_bits_and_from_the_controller(client: ArmClient) -> None:
    client.call("RobotEnable", 1)
    client.call("ServoMoveStart")
    client.call("SimSafetyStop", 1)
    assert client.call("ServoJ", HOME, *REST) == SAFETY_STOP
    until(lambda: client.safety_code() == SAFETY_STOP)
    assert client.servo_j(HOME, message_id=1) == SAFETY_STOP


def test_the_hand_leads_a_dragged_arm_round(client: ArmClient) -> None:
    client.call("RobotEnable", 1)
    assert client.call("SimHandCircle", 15.0, 0.5) == REFUSED
    assert client.call("DragTeachSwitch", 1) == DONE
    assert client.call("SimHandCircle", 15.0, 0.5) == DONE
    until(lambda: float(str(client.call("SimHandLaps"))) > 0.3)
    assert client.wait_for_state(1.0).values["robot_state"] == (DRAGGED,)


def test_a_rough_wire_loses_no_frame() -> None:
    with connected("rough") as client:
        counts = client.receiver.counts
        until(lambda: counts.frames > 100)
        assert (counts.gaps, counts.duplicates, counts.resyncs) == (0, 0, 0)
        assert counts.joined_reads > 0


def test_a_heavy_wire_is_late_and_bunched_but_loses_no_frame() -> None:
    with connected("heavy") as client:
        counts = client.receiver.counts
        until(lambda: counts.frames > 200, seconds=20.0)
        assert (counts.gaps, counts.duplicates, counts.resyncs) == (0, 0, 0)
        assert counts.joined_reads > 0


def test_states_carry_the_robots_own_time_a_period_apart(client: ArmClient) -> None:
    seen: list[int] = []
    client.on_state = lambda state: seen.append(state.source_ns)
    until(lambda: len(seen) > 20)
    steps = {after - before for before, after in pairwise(seen)}
    assert steps <= {9_000_000, 10_000_000, 11_000_000}
