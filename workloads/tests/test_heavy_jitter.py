"""The split arrangement's way from the operator's hand to the arm, in virtual time, on a wire that stands still now and then:
what is commanded, the arm can follow, so that it never makes up for anything by going too fast."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from workloads.teleop.arms import FR3, FR20, HOME_DEG, Array, circle_joints_deg
from workloads.teleop.controller import Hand
from workloads.teleop.follower import command_limits
from workloads.teleop.links import Setpoint
from workloads.teleop.pacing import MS, SETPOINT_PERIOD_NS, Pacing
from workloads.teleop.safety import ClampValidator, Limits
from workloads.teleop.servo import Servo
from workloads.teleop.system import CIRCLE_RADIUS_MM, LAP_S
from workloads.teleop.wire import HeavyWire

CALM_S, RUN_S = 3.0, 15.0
FRAME_STEPS = 10
CALL_MOST_NS = SETPOINT_PERIOD_NS


def setpoints(dice: random.Random, stall_max_s: float) -> Iterator[tuple[int, Setpoint]]:
    """The hand's circle every 20 ms, with the time of arrival: calm at first, then as `HeavyWire` would have it."""
    path = circle_joints_deg(FR3, HOME_DEG, CIRCLE_RADIUS_MM / 1000.0)
    leader = Servo(FR3, HOME_DEG.tolist(), 0)
    leader.follow(Hand(path.tolist(), LAP_S, 0).joints_deg)
    clear_s = stall_s = CALM_S
    for number in range(1, int(RUN_S * 1e9) // SETPOINT_PERIOD_NS):
        source_ns = number * SETPOINT_PERIOD_NS
        leader.advance(source_ns)
        now_s = source_ns / 1e9
        if now_s >= stall_s:
            clear_s = max(clear_s, now_s + dice.uniform(HeavyWire.STALL_S[0], stall_max_s))
            stall_s = now_s + dice.expovariate(HeavyWire.STALLS_HZ)
        if now_s >= CALM_S:
            clear_s = max(clear_s, now_s + dice.expovariate(1 / HeavyWire.MEAN_S))
        arrived_ns = int(1e9 * max(now_s, clear_s if now_s >= CALM_S else 0.0)) + MS // 2
        yield arrived_ns, Setpoint(number, source_ns, source_ns, tuple(leader.joints_deg))


def arm_follows(dice: random.Random, stream: list[tuple[int, Setpoint]], stalls_hz: float = 0.0) -> Array:
    """The arm's joints (deg), a row a millisecond. Threads wake late and calls take their time, each by its own dice; now and
    then the controller stands still: calls are given up, and it takes them all when it comes back."""
    pacing, clamp, rows = Pacing(6), ClampValidator(FR20, command_limits(), HOME_DEG), []
    arm = Servo(FR20, HOME_DEG.tolist(), 0, lambda _, joints: rows.append(list(joints)))
    now_ns = stalled_until_ns = 0
    played_ns: int | None = None
    unanswered: list[Array] = []
    while stream:
        if pacing.due_ns is not None and pacing.due_ns < stream[0][0]:
            now_ns = max(now_ns, pacing.due_ns) + int(dice.expovariate(1 / 150e3))
            command = pacing.next(now_ns)
            if command is None:
                continue
            assert played_ns is None or command.from_ns <= played_ns, "a stretch of the path was left out"
            played_ns = max(played_ns or 0, command.path_ns)
            joints_deg = clamp.clamp(np.array(command.joints_deg), command.limit_ns / 1e9).joints_deg
            assert joints_deg is not None
            if dice.random() < stalls_hz * command.period_ns / 1e9:
                stalled_until_ns = now_ns + int(dice.uniform(20, 80) * MS)
            unanswered.append(joints_deg)
            if now_ns + CALL_MOST_NS < stalled_until_ns:
                now_ns += CALL_MOST_NS
                pacing.answered(now_ns)
                clamp.lose()
                continue
            now_ns = max(now_ns, stalled_until_ns) + int(300e3 + dice.expovariate(1 / 100e3))
            pacing.answered(now_ns)
            arm.advance(now_ns)
            for joints_deg in unanswered:
                arm.aim(joints_deg.tolist())
            unanswered.clear()
        else:
            now_ns = max(now_ns, stream[0][0])
            count = sum(arrived_ns <= now_ns for arrived_ns, _ in stream)
            waiting, stream = stream[:count], stream[count:]
            for n, (_, setpoint) in enumerate(waiting, 1):
                assert pacing.push(setpoint, now_ns, waited=n < count)
    return np.array(rows)


@pytest.mark.parametrize("stalls_hz", [0.0, 0.3], ids=["", "the controller too"])
@pytest.mark.parametrize("stall_max_s", [HeavyWire.STALL_S[1], 0.5])
@pytest.mark.parametrize("seed", [100, 203])
def test_the_arm_stays_within_its_limits_however_long_the_wire_stands_still(
    seed: int, stall_max_s: float, stalls_hz: float
) -> None:
    dice, limits = random.Random(seed), Limits()
    rows = arm_follows(dice, list(setpoints(dice, stall_max_s)), stalls_hz)
    frames = rows[::FRAME_STEPS]
    frame_s = FRAME_STEPS / 1e3
    turns_deg = np.abs(np.diff(frames, axis=0)).max(axis=1)
    ways_m = np.linalg.norm(np.diff([FR20.tool_m(joints) for joints in frames], axis=0), axis=1)
    assert turns_deg.max() / frame_s <= limits.joint_speed_deg_s
    assert ways_m.max() / frame_s <= limits.tool_speed_m_s
    # It did move: round the hand's circle.
    assert np.median(ways_m) / frame_s > 0.5 * limits.tool_speed_m_s
