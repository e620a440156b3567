"""`taut.guard`: the words, the errors, and one walk through each part. What the parts promise is proven in Rust."""

import json
import math
import os
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from taut import _taut, guard

MS = 1_000_000
TAUT = Path(sys.executable).with_name("taut")


def frame(n: int, mm: float = 0.0, **others: object) -> guard.Frame:
    given = {"sequence": n % 256, "source_ns": n * 10 * MS, "tcp_mm": np.array([mm, 0.0, 500.0])} | others
    return guard.Frame(n * 10 * MS + MS, **given)  # type: ignore[arg-type]


def moving(speed: guard.SpeedGuard, first: int, count: int, mm_a_frame: float) -> guard.Verdict:
    for n in range(first, first + count):
        verdict = speed.update(frame(n, mm_a_frame * n))
    return verdict


def test_words_are_those_of_the_crate() -> None:
    assert list(get_args(guard.Reason)) == guard.REASONS
    assert set(guard.__all__) <= set(dir(guard))
    stub = Path(_taut.__file__).with_name("_taut.pyi").read_text()
    missing = [name for name in guard.__all__ if not re.search(rf"\b{name}\b", stub)]
    assert not missing


def test_an_overspeed_trips_with_its_proof() -> None:
    speed = guard.SpeedGuard(guard.Parameters(10 * MS, tcp_limit_mm_s=1000.0))
    assert speed.state == "init" and not speed.enables_motion
    verdict = moving(speed, 0, 50, 9.0)
    assert verdict.state == "ok" and verdict.enables_motion and 0.85 < verdict.ratio < 0.9
    assert speed.answer(7, 491 * MS) == guard.expected_answer(speed.parameters_hash, 7)
    for n in range(50, 60):
        verdict = speed.update(frame(n, 450.0 + 15.0 * (n - 49)))
    assert verdict.state == "overspeed" and verdict.is_latched and not verdict.enables_motion
    trip = speed.trip
    assert trip is not None and trip.cause == "speed" and trip.channel == "tcp" and trip.ratio > 1.0
    assert trip.time_base == "source"
    assert trip.proof is not None
    earlier, later = trip.proof
    way_mm = math.dist(earlier.tcp_mm, later.tcp_mm) - 2 * 0.05
    longest_s = (trip.span_ns + 2 * MS) * 1e-9 / (1 - 200e-6)
    assert trip.ratio == pytest.approx(way_mm / longest_s / 1000.0) and later.t_ns - earlier.t_ns == trip.span_ns
    assert speed.black_box()[-1].frame.arrival_ns == trip.at_ns
    assert speed.answer(7, 591 * MS) is None
    with pytest.raises(guard.GuardError, match="no reset: frames must be fresh"):
        speed.reset(592 * MS)
    for n in range(60, 80):
        speed.update(frame(n, 600.0))
    speed.reset(792 * MS)
    assert speed.state == "ok" and speed.trip is None and speed.counters["new_frames"] == 80


def test_joints_have_limits_of_their_own() -> None:
    speed = guard.SpeedGuard(guard.Parameters(10 * MS, joint_limits_rad_s=np.full(6, 2.0), joint_error_rad=1e-4))
    for n in range(40):
        verdict = speed.update(frame(n, joints_rad=[0.0, 0.0, 0.03 * n, 0.0, 0.0, 0.0]))
    assert verdict.state == "overspeed" and speed.trip is not None and speed.trip.channel == "joint 2"


def test_silence_and_nonsense_have_codes_of_their_own() -> None:
    speed = guard.SpeedGuard(guard.Parameters(10 * MS, tcp_limit_mm_s=1000.0))
    moving(speed, 0, 20, 1.0)
    assert speed.tick(230 * MS).state == "ok"
    assert speed.tick(245 * MS).state == "stale" and speed.trip is not None and speed.trip.cause == "silence"
    broken = guard.SpeedGuard(speed.parameters)
    verdict = broken.update(frame(0, math.nan))
    assert verdict.state == "fault" and "bad_frame" in verdict.events


def test_parameters_are_checked_and_survive_their_dict() -> None:
    given = guard.Parameters(8 * MS, tcp_limit_mm_s=250.0, time_base="sequence", trip_count=2, trip_of=3)
    assert given.window_ns == 120 * MS and given.time_base == "sequence" and given.joint_limits_rad_s == ()
    again = guard.Parameters(**given.as_dict())
    assert again == given and again.hash() == given.hash()
    assert guard.Parameters(10 * MS, tcp_limit_mm_s=1000.0).detection_bound_ns(1.25) == 31 * MS
    with pytest.raises(guard.GuardError, match="trip_count is 9; it must lie within 1 and 1"):
        guard.Parameters(8 * MS, tcp_limit_mm_s=250.0, trip_count=9)
    with pytest.raises(guard.GuardError, match="neither tcp_limit_mm_s nor joint_count"):
        guard.Parameters(8 * MS)
    with pytest.raises(guard.GuardError, match='time_base is "clock"; it must be one of source, sequence, arrival'):
        guard.Parameters(8 * MS, tcp_limit_mm_s=250.0, time_base="clock")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'periods'"):
        guard.Parameters(8 * MS, tcp_limit_mm_s=250.0, periods=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        _ = given.colour  # type: ignore[attr-defined]


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(guard.GuardError, match="tcp_mm has 2 numbers; it must have 3"):
        guard.Frame(0, tcp_mm=[1.0, 2.0])
    with pytest.raises(guard.GuardError, match="joints_rad has more than 8"):
        guard.Frame(0, joints_rad=np.zeros(9))
    with pytest.raises(TypeError, match="tcp_mm holds something that is no float"):
        guard.Frame(0, tcp_mm=["a", 0.0, 0.0])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="tcp_mm must be an iterable of floats"):
        guard.Frame(0, tcp_mm=3.0)  # type: ignore[arg-type]


def test_each_setpoint_has_one_fate() -> None:
    ledger = guard.Ledger()
    for setpoint in range(100):
        ledger.produce(setpoint, setpoint * MS)
    with pytest.raises(guard.GuardError, match="in flight already"):
        ledger.produce(5, 0)
    assert ledger.end(0, 5 * MS) == 5 * MS
    assert ledger.end(1, 5 * MS, "modified", "velocity_limit") == 4 * MS
    ledger.end(2, 5 * MS, "superseded", "superseded")
    with pytest.raises(guard.GuardError, match="reason 7 must not reject"):
        ledger.end(3, 5 * MS, "rejected", "velocity_limit")
    with pytest.raises(guard.GuardError, match="setpoint 0 is not in flight"):
        ledger.end(0, 5 * MS)
    for fate, reason, words in [
        ("passed", "stale", "a setpoint that passed has no reason"),
        ("held", None, "a setpoint that was held needs a reason"),
        ("lost", "bored", 'reason is "bored"; it must be one of duplicate'),
        ("dropped", None, 'fate is "dropped"; it must be one of passed'),
    ]:
        with pytest.raises(guard.GuardError, match=words):
            ledger.end(3, 5 * MS, fate, reason)  # type: ignore[arg-type]
    assert ledger.is_in_flight(3) and ledger.end_older(50 * MS, 60 * MS, "lost", "transport") == 47
    balance = ledger.balance(60 * MS)
    assert (balance.produced, balance.acknowledged, balance.superseded) == (100, 2, 1)
    assert (balance.rejected, balance.in_flight, balance.silent) == (47, 50, 0)
    assert balance.is_alarmed and balance.delivered_share == pytest.approx(2 / 49)
    assert ledger.counts() == {"velocity_limit": 1, "superseded": 1, "transport": 47}
    assert ledger.share("transport") == 0.47 and ledger.share("kinematics") == 0.0
    assert ledger.age_max_ns == 60 * MS - 3 * MS


def test_the_mailbox_keeps_the_latest_and_gives_back_the_overwritten() -> None:
    mailbox = guard.Mailbox()
    assert mailbox.take() is None and mailbox.put(1, [1.0, 2.0]) is None
    assert mailbox.put(2, np.array([3.0, 4.0, 5.0])) == 1
    assert mailbox.take() == (2, (3.0, 4.0, 5.0)) and mailbox.take() is None
    assert mailbox.take(timeout_s=0.01) is None
    with pytest.raises(guard.GuardError, match="timeout_s is -1"):
        mailbox.take(-1.0)


def test_recorded_frames_are_replayed(tmp_path: Path) -> None:
    """At 0.6 of the limit, with frames that are held up and come in a bunch every half second."""
    program = """
        from taut import guard
        MS = 1_000_000
        for n in range(300):
            held = (3 - n % 50) * 10 * MS + n % 50 * MS // 2 if n % 50 < 4 else 0
            frame = guard.Frame(
                n * 10 * MS + 2 * MS + held, sequence=n % 256, source_ns=n * 10 * MS, tcp_mm=(6.0 * n, 0.0, 500.0)
            )
            guard.record_frame("arm", frame, truth_mm_s=600.0)
    """
    (tmp_path / "robot.py").write_text(textwrap.dedent(program))
    run = tmp_path / "run.mcap"
    env = {name: value for name, value in os.environ.items() if name != "TAUT_SESSION"}
    command = [TAUT, "record", "-q", "--ignore-loss", "-o", run, "--", sys.executable, tmp_path / "robot.py"]
    subprocess.run(command, check=True, env=env)
    replay = [TAUT, "guard", "replay", run, "--tcp-limit", "1000", "--truth", "recorded", "--format", "json"]
    told = json.loads(subprocess.run(replay, check=True, capture_output=True).stdout)
    assert (told["stream"], told["frames"], told["incomplete"]) == ("arm", 300, 0)
    ours, naive, *_ = told["runs"]
    assert ours["overspeed_trips"] == ours["stale_trips"] == 0 and ours["largest"] <= 0.6 + 1e-9
    assert naive["judgement"]["false_trips"] == 3 and naive["frames_over"] == 18 and naive["largest"] > 5


def test_nothing_between_two_threads_is_lost_unsaid() -> None:
    mailbox = guard.Mailbox()
    taken: list[int] = []
    late: list[object] = []

    def receive() -> None:
        while got := mailbox.take(timeout_s=10.0):
            taken.append(got[0])
            if got[0] == 20_000:
                break

    receiver = threading.Thread(target=receive)
    receiver.start()
    superseded = [before for n in range(1, 20_001) if (before := mailbox.put(n, [float(n)])) is not None]
    receiver.join()
    assert taken == sorted(taken) and sorted(taken + superseded) == list(range(1, 20_001))
    waiting = threading.Thread(target=lambda: late.append(mailbox.take(60.0)))
    waiting.start()
    mailbox.close()
    waiting.join()
    assert late == [None]


@pytest.mark.parametrize("policy", ["clamp", "scale"])
def test_a_limit_modifies_and_never_rejects(policy: str) -> None:
    limiter = guard.Limiter(
        np.zeros(2),
        period_ns=20 * MS,
        position_min=[-1.0, -1.0],
        position_max=[1.0, 1.0],
        velocity_max=[1.0, 2.0],
        policy=policy,  # type: ignore[arg-type]
    )
    shaped = limiter.shape([0.04, 0.02])
    assert shaped.setpoint == ((0.02, 0.02) if policy == "clamp" else (0.02, 0.01))
    assert (shaped.fate, shaped.reason) == ("modified", "velocity_limit") and shaped.amount >= 0.02
    assert limiter.sent == shaped.setpoint and limiter.shape(limiter.sent).fate == "passed"
    with pytest.raises(guard.GuardError, match="target is not a finite number"):
        limiter.shape([math.nan, 0.0])
    assert limiter.malformed_in_row == 1
    limiter.rehome([0.5, 0.5])
    assert limiter.sent == (0.5, 0.5)
    with pytest.raises(guard.GuardError, match="target has 3 numbers; it must have 2"):
        limiter.shape([0.0, 0.0, 0.0])


def test_motion_slows_to_a_boundary_and_a_rate_is_lowered_on_purpose() -> None:
    approach = guard.Approach(stop_at=10.0, resume_at=15.0, slow_at=60.0)
    limiter = guard.Limiter([0.0], period_ns=20 * MS, position_min=[-1.0], position_max=[1.0], velocity_max=[1.0])
    slowed = limiter.shape([0.01], approach.share(35.0, 34.0))
    assert slowed.setpoint == (0.005,) and (slowed.fate, slowed.reason) == ("modified", "work_area")
    held = limiter.shape([0.02], approach.share(10.0, 9.0))
    assert repr(held).startswith("Shaped(setpoint=[0.005], fate=held: work_area, amount=0.0")
    assert held.setpoint == (0.005,) and (held.fate, held.reason) == ("held", "work_area") and approach.is_held
    assert limiter.shape([0.0], approach.share(10.0, 11.0)).fate == "passed"
    with pytest.raises(guard.GuardError, match="resume_at is 5"):
        guard.Approach(stop_at=10.0, resume_at=5.0, slow_at=60.0)
    decimate = guard.Decimate(40 * MS)
    assert [decimate.keeps(n * 20 * MS) for n in range(5)] == [True, False, True, False, True]


def test_playout_interpolates_20_ms_to_8_ms() -> None:
    playout = guard.Playout(2, period_ns=20 * MS, jitter_ns=15 * MS, delay_most_ns=200 * MS)
    assert playout.play(0) is None
    for n in range(5):
        assert playout.push(n * 20 * MS, np.array([20.0 * n, -20.0 * n]), n * 20 * MS)
    assert not playout.push(0, [0.0, 0.0], 100 * MS)
    now = playout.play(105 * MS)
    assert now is not None and now.setpoint == pytest.approx((70.0, -70.0))
    assert now.source == "interpolated" and now.added_delay_ns == 35 * MS
    later = playout.play(900 * MS)
    assert later is not None and later.source == "resting"


def test_retargeting_keeps_velocity_acceleration_and_jerk() -> None:
    dt = 0.008
    retarget = guard.Retarget([0.0], period_ns=8 * MS, velocity_max=[1.0], acceleration_max=[5.0], jerk_max=[50.0])
    last, fates = 0.0, []
    for n in range(400):
        step = retarget.step([0.5 if n < 100 else -0.5])
        (x,), (v,), (a,) = step.position, step.velocity, step.acceleration
        assert abs(v) <= 1.0 + 1e-9 and abs(a) <= 5.0 + 1e-9 and abs(a - last) <= 50.0 * dt + 1e-6
        last = a
        fates.append((step.fate, step.reason))
    assert x == pytest.approx(-0.5)
    assert ("modified", "acceleration_limit") in fates and ("passed", None) in fates
    walled = guard.Retarget(
        [0.0],
        period_ns=8 * MS,
        velocity_max=[1.0],
        acceleration_max=[5.0],
        jerk_max=[50.0],
        position_min=[-0.3],
        position_max=[0.3],
        margin=0.01,
    )
    steps = [walled.step([0.5], [1.0]) for _ in range(400)]
    assert max(step.position[0] for step in steps) <= 0.3 and steps[-1].position[0] == pytest.approx(0.29)
    assert (steps[-1].fate, steps[-1].reason) == ("modified", "position_limit")


def test_retry_and_keep_alive_are_bounded() -> None:
    retry = guard.Retry(20 * MS, 3)
    retry.begin(0)
    assert [retry.again(n * MS) for n in (5, 6, 7)] == [True, True, False] and retry.left_ns(5 * MS) == 15 * MS
    keep = guard.KeepAlive(0.001, watchdog_ns=90 * MS, period_ns=8 * MS)
    sent = [n for n in range(100) if keep.is_due([1.0, 2.0], n * 8 * MS)]
    assert sent[0] == 0 and max(np.diff(sent)) * 8 <= 30 and len(sent) < 40


def test_the_watchdog_ends_in_damping() -> None:
    servo = guard.ServoWatchdog(100_000, 10 * MS)
    assert servo.command("enable") and servo.command("position") and servo.tick() == "position"
    assert [servo.tick() for _ in range(101)][-1] == "damp" and servo.mode == "timeout"
    assert not servo.command("position") and servo.command("stop") and servo.drive == "off"
    assert servo.counters == {"commands": 1, "ignored": 1, "timeouts": 1, "faults": 0}
    with pytest.raises(guard.GuardError, match="timeout_s is NaN"):
        servo.position(math.nan)
    chain = guard.DegradeChain(3, guard.Timeouts(), reply_age_max=5)
    chain.start(0)
    for cycle in range(1, 20):
        for n in range(3):
            chain.reply(n, "faulted" if (n, cycle) == (1, 10) else "healthy")
        chain.operator(cycle * MS)
        assert chain.cycle(cycle * MS) == ("running" if cycle < 10 else "degraded")
    assert chain.cause == ("servo_fault", 1) and chain.action(1) == ("stop", 1.0)
    assert chain.action(0) == ("zero_velocity", 1.5) and chain.reply_age_cycles(2) == 0
    assert chain.counters == {"cycles": 19, "missing_replies": 0, "later_causes": 0}
    with pytest.raises(guard.GuardError, match="servo is 3; this chain has 3"):
        chain.reply(3)
    with pytest.raises(guard.GuardError, match="host_stale_ns must be below servo_ns"):
        guard.Timeouts(host_stale_ns=100 * MS)
    ramp = guard.Ramp([0.0, 0.0], 0.05)
    assert ramp.next([1.0, 0.0]) == ((0.0, 0.0), False) and ramp.next([1.0, 0.0]) == ((0.05, 0.0), False)
    assert guard.damping_torque(2.0, 3.0, 5.0) == -5.0
    assert guard.best_stop(has_power=True, has_encoder=False, has_speed=True, has_driver=True) == "damp"
