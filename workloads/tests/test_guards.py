"""The guards of the source arrangement, on frames that come in bunches."""

from dataclasses import replace

import pytest

pytest.importorskip("taut.guard", reason="the taut module is not installed")

from workloads.teleop.guards import NaiveGuard, TautGuard
from workloads.teleop.safety import Limits
from workloads.teleop.stream import State

MS = 1_000_000


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
        ours.update(replace(state, count=n % 256, source_ns=n * 10 * MS, arrived_ns=n * 10 * MS))
    trips = ours.summary()["trips"]
    assert isinstance(trips, list) and trips[0]["state"] == "overspeed" and not trips[0]["is_false"]
    assert not ours.enables_motion
