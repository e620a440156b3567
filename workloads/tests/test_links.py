"""What Python's side has of the split arrangement's links, and what a run says first."""

from collections.abc import Sequence

from workloads.teleop.__main__ import table
from workloads.teleop.links import Control, Link, pair
from workloads.teleop.processes import ArmProcess, held_up


def test_control_words_pass_and_an_end_is_heard() -> None:
    ours, theirs = (Control(end) for end in pair())
    ours.say("go", produced=3)
    assert theirs.hear(1.0) == ("go", {"produced": 3})
    assert theirs.hear(0.01) is None and theirs.is_open
    ours.close()
    assert theirs.hear(1.0) is None and not theirs.is_open


def test_packets_that_wait_are_counted_up_to_the_other_ends_end() -> None:
    ours, theirs = pair()
    link = Link(theirs)
    assert link.waiting() == 0 and link.is_open
    ours.send(b"one")
    ours.send(b"two")
    ours.close()
    assert link.waiting() == 2 and not link.is_open


def run(slipped_s: float = 0.0, failures: Sequence[str] = (), stops: Sequence[str] = ()) -> dict[str, object]:
    arms = [ArmProcess("FR3", None, 0, 0, {"steps": int(1000 * (10.0 - slipped_s)), "slips": {"total_s": slipped_s}})]  # type: ignore[arg-type]
    setpoints = {"produced": 5, "applied": 5, "dropped": {}, "modified": {}, "in_flight": 0, "unexplained": 0}
    counts = {
        "setpoints": setpoints,
        "failures": [*failures],
        "stops": [*stops],
        "leader_stream": {},
        "laps": 1,
        "ran_s": 10.0,
    }
    return {**counts, **held_up(arms)}


def test_a_run_says_first_what_came_of_it() -> None:
    assert table(run()).startswith("teleop: 1 laps in 10.0 s, 5 setpoints: 5 applied")
    assert table(run(0.5, failures=["the guard ended"])).startswith("teleop: failed: the guard ended; 1 laps")
    assert table(run(stops=["guard_latched"])).startswith("teleop: stopped for good: guard_latched; 1 laps")
    result = run(2.0)
    assert result["real_time"] == 0.8 and not result["valid"]
    assert table(result).startswith(
        "teleop: no evidence: the machine held the arms up for 20 % of the run; free a CPU; 1"
    )
