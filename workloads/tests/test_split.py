"""The parts of the split arrangement by themselves: pacing, links, the account, heartbeat and guards."""

import itertools
import math
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("taut.guard", reason="the taut module is not installed")

from taut import guard

from workloads.teleop import follower
from workloads.teleop.account import Account
from workloads.teleop.arms import FR20, HOME_DEG
from workloads.teleop.follower import MALFORMED_MAX, Follower
from workloads.teleop.guards import Heartbeat, NaiveGuard, TautGuard
from workloads.teleop.links import Control, Numbers, Setpoint, Setpoints, pair
from workloads.teleop.pacing import CATCH_UP, COMMAND_NS, LAST_COMMAND_NS, MS, PATIENCE_NS, SPACING_NS, Command, Pacing
from workloads.teleop.safety import ClampValidator, Limits
from workloads.teleop.stream import State

TRANSPORT_NS = 1 * MS


def setpoint(number: int) -> Setpoint:
    """A motion of one degree a millisecond on all joints."""
    return Setpoint(number, number * 20 * MS, number * 20 * MS, (number * 20.0,) * 6)


def played(late_ns: list[int]) -> list[tuple[int, Command]]:
    """Commands for setpoints that come so late, with the times they were due."""
    pacing, commands = Pacing(6), []
    arrivals = [n * 20 * MS + TRANSPORT_NS + late for n, late in enumerate(late_ns, 1)]
    for number, arrival in enumerate(arrivals, 1):
        assert pacing.push(setpoint(number), arrival)
        until = arrivals[number] if number < len(arrivals) else arrival + 20 * MS
        while pacing.due_ns is not None and pacing.due_ns < until:
            due_ns = pacing.due_ns
            command = pacing.next(due_ns)
            if command is not None:
                commands.append((due_ns, command))
    return commands


def test_three_commands_fill_a_setpoints_period_exactly() -> None:
    commands = played([0] * 10)
    periods = [c.period_ns for _, c in commands]
    begun = periods.index(LAST_COMMAND_NS) + 1
    assert periods[begun : begun + 6] == [COMMAND_NS, COMMAND_NS, LAST_COMMAND_NS] * 2
    for (_, before), (_, after) in itertools.pairwise(commands):
        moved = after.joints_deg[0] - before.joints_deg[0]
        assert moved == pytest.approx(after.period_ns / MS, abs=1e-6), "a degree a millisecond, at every command"


@given(st.lists(st.integers(0, int(PATIENCE_NS * 0.9)), min_size=3, max_size=60))
def test_jitter_within_the_patience_moves_commands_but_not_the_path(late_ns: list[int]) -> None:
    commands = played([0, 0, *late_ns])
    paths = [c.path_ns for _, c in commands]
    assert paths == sorted(paths), "the path never runs back"
    for (due, before), (_, after) in itertools.pairwise(commands):
        moved = after.joints_deg[0] - before.joints_deg[0]
        assert moved <= (1 + CATCH_UP) * after.period_ns / MS + 1e-3, f"too long a step after {due}"


@given(st.lists(st.integers(0, 150 * MS), min_size=3, max_size=30))
def test_whatever_comes_late_commands_keep_their_distance(late_ns: list[int]) -> None:
    arrivals = [n * 20 * MS + late for n, late in enumerate(late_ns)]
    in_order = [max(arrivals[: at + 1]) - at * 20 * MS for at in range(len(arrivals))]
    commands = played(in_order)
    assert all(after - before >= SPACING_NS for (before, _), (after, _) in itertools.pairwise(commands))
    # At the limit all the way, the arm is never told to be further than one command's time ahead.
    spent_ns, begun_ns = 0, commands[0][0] if commands else 0
    for due_ns, command in commands:
        spent_ns += command.limit_ns
        assert spent_ns <= due_ns - begun_ns + COMMAND_NS


def test_setpoints_that_waited_are_on_the_path_and_add_no_delay() -> None:
    """Five come in time, then this side sleeps for 80 ms; three wait behind a fourth."""
    pacing, commands = Pacing(6), []

    def play_until(until_ns: int) -> None:
        while pacing.due_ns is not None and pacing.due_ns < until_ns:
            due_ns = pacing.due_ns
            if command := pacing.next(due_ns):
                commands.append(command)

    def zigzag(number: int) -> Setpoint:
        return Setpoint(number, number * 20 * MS, number * 20 * MS, (float(number % 2),) * 6)

    for number in range(1, 6):
        assert pacing.push(zigzag(number), number * 20 * MS)
        play_until((number + 1) * 20 * MS)
    before = len(commands)
    for number in range(6, 10):
        assert pacing.push(zigzag(number), 180 * MS, waited=number < 9)
    for number in range(10, 40):
        play_until(number * 20 * MS)
        assert pacing.push(zigzag(number), number * 20 * MS)
    assert {c.added_delay_ns for c in commands} == {commands[0].added_delay_ns}
    for number in range(6, 10):
        stretch = [c for c in commands[before:] if (number - 1) * 20 * MS < c.path_ns <= number * 20 * MS]
        assert len(stretch) >= 2, f"no command plays setpoint {number}"
        nearest = min(stretch, key=lambda c: number * 20 * MS - c.path_ns)
        share = nearest.path_ns / (20 * MS) - (number - 1)
        expected = share if number % 2 else 1 - share
        assert nearest.joints_deg[0] == pytest.approx(expected, abs=1e-3)


@given(st.integers(20, 220))
def test_a_late_setpoint_waits_for_the_path_and_skips_nothing(late_ms: int) -> None:
    late_ns = [0] * 10 + [late_ms * MS] + [max(0, late_ms - 20 * n) * MS for n in range(1, 12)] + [0] * 30
    commands = [command for _, command in played(late_ns)]
    for before, after in itertools.pairwise(commands):
        assert after.path_ns - before.path_ns <= 2 * COMMAND_NS, "the path leaps ahead"
    played_up_to = [c.path_ns // (20 * MS) for c in commands]
    assert set(played_up_to) >= set(range(played_up_to[0], played_up_to[-1] + 1))


class Clock:
    """Time for the follower, in the place of `time`: it passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_ns = 10**12

    def monotonic_ns(self) -> int:
        self.now_ns += 1000  # asking takes time
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * 1e9)


class Arm:
    """Takes every command, or bends one, and says so in its states."""

    def __init__(self, clock: Clock, bends: int | None = None) -> None:
        self.clock, self.bends, self.count = clock, bends, 0
        self.target = tuple(map(float, HOME_DEG))

    def servo_j(self, joints: Sequence[float], period_s: float, setpoint: int, timeout_s: float) -> int:
        self.count += 1
        self.target = (joints[0] + 0.1 * (self.count == self.bends), *joints[1:])
        return 0

    def call(self, name: str, *arguments: object, timeout_s: float = 0.0) -> object:
        return 0

    def read(self, wait: bool = True) -> list[State]:
        now_ns = self.clock.monotonic_ns()
        values = {"servoJ_cmd_num": (self.count,), "last_servoJ_target": self.target}
        values |= {"safety_stop0_state": (0,), "safety_stop1_state": (0,)}
        return [State(values, self.count % 256, now_ns, now_ns, 1)]


class Loop:
    """A follower on virtual time, and the leader's end of its link."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, bends: int | None = None) -> None:
        self.clock = Clock()
        monkeypatch.setattr(follower, "time", self.clock)
        self.arm = Arm(self.clock, bends)
        ours, theirs = pair()
        self.link, heartbeat = Setpoints(ours), Numbers(pair()[0])
        asker = Heartbeat(parameters_hash=7, lapse_ns=60_000 * MS)
        question = asker.question(self.clock.now_ns)
        assert question is not None
        asker.hear(guard.expected_answer(7, question), self.clock.now_ns)
        validator = ClampValidator(FR20, Limits(), np.array(HOME_DEG))
        arm: Any = self.arm
        self.follower = Follower(arm, arm, Setpoints(theirs), heartbeat, asker, validator)
        self.start_ns = self.clock.now_ns

    def send(self, number: int, turn_deg: float = 0.1) -> None:
        """A slow turn of the first joint, a setpoint every 20 ms of the robot's time."""
        joints = (float(HOME_DEG[0]) + turn_deg * number, *map(float, HOME_DEG[1:]))
        assert self.link.send(Setpoint(number, self.source_ns(number), self.clock.now_ns, joints))

    def source_ns(self, number: int) -> int:
        return self.start_ns + number * 20 * MS

    def turn_until(self, number: int) -> None:
        """As the process does, until that setpoint is made."""
        while self.clock.now_ns < self.source_ns(number):
            self.clock.sleep(min(0.001, self.follower.timeout_s(self.clock.now_ns)))
            self.follower.turn()

    def come(self, numbers: range) -> None:
        for number in numbers:
            self.turn_until(number)
            self.send(number)


def test_what_waited_is_merged_and_the_path_is_played_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    loop.come(range(1, 6))
    loop.clock.sleep(0.080)
    for number in range(6, 10):
        loop.send(number)
    loop.come(range(10, 21))
    loop.follower.finish(produced=20)
    summary = loop.follower.account.summary()
    assert summary["applied"] == 20 and summary["dropped"] == {} and summary["in_flight"] == 0
    assert summary["modified"] == {"superseded": 4} and summary["silent"] == 0
    assert loop.follower.account.failure is None and loop.follower.diverged == 0
    assert loop.arm.target[0] == pytest.approx(float(HOME_DEG[0]) + 2.0, abs=0.05)


def test_what_a_path_that_is_begun_anew_leaves_out_is_superseded(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    loop.come(range(1, 6))
    loop.clock.sleep(0.280)
    for number in range(6, 20):
        loop.send(number)
    loop.come(range(20, 26))
    loop.follower.finish(produced=25)
    summary = loop.follower.account.summary()
    dropped = summary["dropped"]
    assert isinstance(dropped, dict) and set(dropped) <= {"superseded", "stale"}
    assert (
        5 <= dropped["superseded"] <= 14
        and summary["applied"] == 25 - sum(dropped.values())
        and summary["unexplained"] == 0
    )


def test_a_command_that_the_arm_bent_was_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch, bends=10)
    loop.come(range(1, 11))
    loop.follower.finish(produced=10)
    assert loop.follower.diverged >= 1


def test_a_state_that_is_held_up_does_not_say_that_a_command_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    loop.come(range(1, 6))
    old = loop.arm.read()[0]
    loop.come(range(6, 16))
    # What was sampled 200 ms ago comes now.
    monkeypatch.setattr(loop.arm, "read", lambda wait: [replace(old, arrived_ns=loop.clock.now_ns)])
    loop.follower.turn()
    monkeypatch.undo()
    monkeypatch.setattr(follower, "time", loop.clock)
    loop.follower.finish(produced=15)
    summary = loop.follower.account.summary()
    assert summary["applied"] == 15 and summary["silent"] == 0


def test_setpoints_that_are_no_numbers_stop_the_arm_after_some(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(monkeypatch)
    for number in range(1, MALFORMED_MAX + 3):
        loop.send(number, turn_deg=math.nan)
    loop.follower.turn()
    assert loop.follower.stops == ["malformed"]
    loop.follower.finish(produced=MALFORMED_MAX + 2)
    summary = loop.follower.account.summary()
    assert summary["dropped"] == {"malformed": MALFORMED_MAX + 2} and summary["unexplained"] == 0


def test_an_older_setpoint_is_of_no_use() -> None:
    pacing = Pacing(6)
    assert pacing.push(setpoint(2), 41 * MS)
    assert not pacing.push(setpoint(1), 42 * MS)


def test_setpoints_come_whole_and_in_order_and_a_full_link_says_so() -> None:
    ours, theirs = pair()
    sender, receiver = Setpoints(ours), Setpoints(theirs)
    assert receiver.waiting() == []
    sent = 0
    while sender.send(setpoint(sent + 1)):
        sent += 1
    assert [one.id for one in receiver.waiting()] == list(range(1, sent + 1))
    sender.close()
    assert receiver.waiting() == [] and not receiver.is_open


def test_control_words_pass_and_an_end_is_heard() -> None:
    ours, theirs = (Control(end) for end in pair())
    ours.say("go", produced=3)
    assert theirs.hear(1.0) == ("go", {"produced": 3})
    assert theirs.hear(0.01) is None and theirs.is_open
    ours.close()
    assert theirs.hear(1.0) is None and not theirs.is_open


@given(st.lists(st.sampled_from(["pass", "modify", "supersede", "refuse", "skip", "fly"]), max_size=200))
def test_the_account_is_conserved_whatever_happens(fates: list[str]) -> None:
    account, entered, flying = Account(), 0, 0
    for number, fate in enumerate(fates, 1):
        if fate == "skip":
            continue  # the link lost it: the next one, or the leader's count, tells
        if flying > 200:
            break
        account.enter(number, number)
        entered = number
        match fate:
            case "pass":
                account.deliver(number, None)
            case "modify":
                account.deliver(number, "velocity_limit")
            case "supersede":
                account.drop(number, "superseded", "superseded")
            case "refuse":
                account.drop(number, "rejected", "guard_latched")
            case "fly":
                flying += 1
    produced = max(entered, len(fates) if flying <= 200 else entered)
    account.close(produced)
    summary = account.summary()
    dropped = summary["dropped"]
    assert isinstance(dropped, dict)
    assert account.failure is None and summary["unexplained"] == 0
    assert summary["produced"] == produced and summary["in_flight"] == flying
    assert dropped.get("queue_overflow", 0) == fates[:produced].count("skip")
    assert bool(summary["silent"]) == ("skip" in fates[:produced])


def test_a_count_that_disagrees_with_the_leaders_is_a_failure() -> None:
    account = Account()
    account.enter(2, 0)
    account.close(1)
    assert account.failure and "made 1" in account.failure


def test_only_the_agreed_guards_newest_answer_keeps_the_heart_beating() -> None:
    asker = Heartbeat(parameters_hash=7, lapse_ns=50 * MS)
    assert not asker.beats(0)
    question = asker.question(100 * MS)
    assert question is not None and asker.question(101 * MS) is None
    asker.hear(guard.expected_answer(8, question), 101 * MS)
    assert not asker.beats(101 * MS), "another guard's parameters"
    asker.hear(guard.expected_answer(7, question), 102 * MS)
    assert asker.beats(152 * MS) and not asker.beats(153 * MS)
    assert asker.question(153 * MS) == question + 1
    asker.hear(guard.expected_answer(7, question), 154 * MS)
    assert not asker.beats(154 * MS), "an old answer"


def frames(arrivals_ms: list[float], mm_per_ms: float) -> list[State]:
    values = {"actual_joint_pos": (0.0,) * 6, "actual_TCP_cmpvel": (1000.0 * mm_per_ms, 0.0)}
    return [
        State(
            {**values, "actual_TCP_pos": (10.0 * n * mm_per_ms, 0, 0, 0, 0, 0)}, n % 256, n * 10 * MS, int(at * MS), 1
        )
        for n, at in enumerate(arrivals_ms)
    ]


def test_bunched_frames_trip_the_naive_guard_falsely_and_ours_not_at_all() -> None:
    arrivals = [10.0 * n for n in range(30)]
    arrivals[20] += 8.0  # held up; the next one follows after 2 ms
    naive, ours = NaiveGuard(Limits()), TautGuard(Limits(), "plain")
    for state in frames(arrivals, mm_per_ms=0.6):
        naive.update(state)
        ours.update(state)
    assert [trip.is_false for trip in naive.trips] == [True]
    assert ours.enables_motion and ours.summary()["trips"] == [] and ours.summary()["naive_trips"] == 1


def test_a_true_overspeed_trips_both_and_is_not_called_false() -> None:
    ours = TautGuard(Limits(), "plain")
    for state in frames([10.0 * n for n in range(30)], mm_per_ms=0.5):
        ours.update(state)
    assert ours.enables_motion
    fast = frames([10.0 * n for n in range(30)], mm_per_ms=1.5)
    for n, state in enumerate(fast[1:], 30):
        ours.update(State(state.values, n % 256, n * 10 * MS, n * 10 * MS, 1))
    trips = ours.summary()["trips"]
    assert isinstance(trips, list) and trips[0]["state"] == "overspeed" and not trips[0]["is_false"]
    assert not ours.enables_motion and ours.answer(1, 600 * MS) is None


def test_socket_pairs_are_whole_packets() -> None:
    ours, theirs = pair()
    assert ours.type & socket.SOCK_SEQPACKET
    Numbers(ours).send(5)
    assert Numbers(theirs).waiting() == [5]
