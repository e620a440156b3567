"""What Python's side has of the split arrangement's links, how arms end, and what a run says first."""

import subprocess
from collections.abc import Sequence

import pytest

from workloads.teleop import processes
from workloads.teleop.__main__ import table, wrong
from workloads.teleop.links import Control, Link, pair
from workloads.teleop.processes import ArmProcess, deaths, held_up


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


def run(
    slipped_s: float = 0.0,
    failures: Sequence[str] = (),
    stops: Sequence[str] = (),
    stopped: str | None = None,
    was_killed: bool = False,
) -> dict[str, object]:
    told = {"steps": int(1000 * (10.0 - slipped_s)), "slips": {"total_s": slipped_s}}
    arms = [ArmProcess("FR3", None, 0, 0, {} if was_killed else told, was_killed=was_killed)]  # type: ignore[arg-type]
    setpoints = {"produced": 5, "applied": 5, "dropped": {}, "modified": {}, "in_flight": 0, "unexplained": 0}
    counts = {
        "setpoints": setpoints,
        "failures": [*failures],
        "stops": [*stops],
        "stopped": stopped,
        "leader_stream": {},
        "laps": 1,
        "ran_s": 10.0,
    }
    return {**counts, **held_up(arms)}


def test_a_run_says_first_what_came_of_it() -> None:
    assert table(run()).startswith("teleop: 1 laps in 10.0 s, 5 setpoints: 5 applied")
    assert table(run(0.5, failures=["the guard ended"])).startswith("teleop: failed: the guard ended; 1 laps")
    stopped = run(stops=["guard_latched"], stopped="guard_latched")
    assert table(stopped).startswith("teleop: failed: the arm was stopped for good: guard_latched; 1 laps")
    went_on = run(stops=["guard_latched"])
    assert table(went_on).startswith("teleop: stopped until a reset: guard_latched; 1 laps") and wrong(went_on) is None
    result = run(2.0)
    assert result["real_time"] == 0.8 and not result["valid"]
    assert table(result).startswith(
        "teleop: no evidence: the machine held the arms up for 20 % of the run; free a CPU; 1"
    )


def arm(script: str) -> ArmProcess:
    """A process in the place of an arm, once it has begun."""
    child = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, bufsize=0)
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    return ArmProcess("FR3", child, 0, 0)


IN_ORDER = """
told() { echo '{"steps": 1000, "slips": {"total_s": 0.0}}'; exit; }
trap told TERM; echo begun; while :; do sleep 0.01; done
"""


def test_an_arm_that_had_to_be_killed_makes_the_run_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = [arm(IN_ORDER), arm("trap '' TERM; echo begun; while :; do sleep 0.01; done")]
    monkeypatch.setattr(processes, "END_TIMEOUT_S", 600.0)
    arms[0].stop()
    assert arms[0].told["steps"] == 1000 and held_up(arms[:1])["valid"]
    monkeypatch.setattr(processes, "END_TIMEOUT_S", 0.1)
    arms[1].stop()
    told = held_up(arms)
    assert (told["valid"], told["real_time"], told["killed"]) == (False, 0.0, ["FR3"])
    assert deaths(arms, is_asked=False) == []
    assert table(run(was_killed=True)).startswith("teleop: no evidence: FR3 did not end within 10 s; free a CPU")


def test_an_arm_that_died_is_a_failure_and_its_death_no_slip_of_the_machine() -> None:
    arms = [arm("echo begun; kill -KILL $$"), arm("echo begun")]
    for one in arms:
        one.process.wait()
        one.stop()
    dead = [f"the FR3 ended during the run, {how}" for how in ("by signal 9", "with exit code 0")]
    # One that ended in order may have been asked to, as the run was.
    assert deaths(arms, is_asked=False) == dead and deaths(arms, is_asked=True) == dead[:1]
    arms[1].told = {"steps": 1000, "slips": {"total_s": 2.0}}
    assert held_up(arms)["valid"]
