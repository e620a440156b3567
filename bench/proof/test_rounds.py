"""Statistics over rounds, on figures whose answers are known."""

import pytest

from bench.proof import rounds


def test_the_interval_of_a_ratio_decides() -> None:
    equal, wide = rounds.estimate([0.99, 1.0, 1.02] * 5), rounds.estimate([0.5, 1.0, 2.0] * 5)
    assert equal.is_within(0.1) and equal.median == 1.0
    assert not wide.is_within(0.1) and wide.median == 1.0


def test_a_tool_is_as_far_from_itself_either_way() -> None:
    band = rounds.against_itself([1, 2, 4], [2, 1, 4.4])
    assert (round(band.typical, 9), round(band.worst, 9)) == (2, 2)
    assert band.holds(0.5) and not band.holds(2.1)


def test_a_ratio_is_taken_within_rounds_and_each_round_runs_twice() -> None:
    theirs = [10.0, 20.0, 40.0, 80.0]
    found = rounds.estimate(rounds.ratios([value / 5 for value in theirs], theirs))
    assert found.median == found.low == found.high == pytest.approx(0.2)
    assert rounds.middle([1.0, 9.0], [4.0, 9.0]) == [2.0, 9.0]
