"""What is set aside, and what stays."""

from argparse import Namespace

import numpy as np
from refigure import meets, refigure

USUAL = Namespace(late_us=2000.0, stalled_max=0.3, slow_times=3.0, slow_by_us=10.0)


def trial(work_us: list[int], late: list[list[int]], stalled: float) -> dict:
    hop = {"hop": 0, "total_us": work_us, "machine_us": [0] * len(work_us), "work_100ns": [10 * us for us in work_us]}
    return {
        "trial": {
            "way": {"own": {"p50": None}},
            "hops": [{"times": {"work": {"p50": None, "slow": None}}}],
            "beside": {"stalled": stalled},
            "void": {"why": "stalled", "stalled": stalled},
        },
        "total_us": work_us,
        "own_us": work_us,
        "messages": {"start_us": [4000 * at for at in range(len(work_us))], "hops": [hop]},
        "late": late,
    }


def test_a_message_in_a_stall_is_set_aside_and_a_slow_one_is_not() -> None:
    side = trial([100] * 50 + [1000, 1000], [[4000 * 50 - 1500, 2500], [4000 * 51, 1999]], stalled=0.1)
    kept = refigure(side, USUAL)
    assert kept.tolist() == [True] * 50 + [False, True]
    assert side["trial"]["hops"][0]["times"]["work"] == {"p50": 100_000.0, "slow": 1 / 51}
    assert side["trial"]["way"]["own"]["p50"] == 100_000.0
    assert side["trial"]["void"] is None


def test_a_trial_that_was_mostly_stalled_stays_void() -> None:
    side = trial([100] * 50, [], stalled=0.4)
    assert refigure(side, USUAL).all()
    assert side["trial"]["void"] == {"why": "stalled", "stalled": 0.4}


def test_stalls_begin_when_the_wake_was_due() -> None:
    from_us = np.array([0.0, 10.0, 20.0, 30.0])
    assert meets(from_us, from_us + 5.0, [[15, 10]], 10.0).tolist() == [False, False, True, False]
    assert not meets(from_us, from_us + 5.0, [[15, 10]], 0.0).any()
