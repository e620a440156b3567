"""`bench/quad/run`: a trial whose premise was not met is invalid, is counted, and is repeated."""

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import quad_page as page

FOLDER = Path(__file__).resolve().parent


def module(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    found = importlib.util.module_from_spec(spec)
    loader.exec_module(found)
    return found


def one(
    stood: bool = True, right: bool = True, valid: bool = True, impact_m_s: float = 0.2, **case: Any
) -> dict[str, Any]:
    """A trial as it is kept."""
    case = {"kind": "live", "failure": "host-killed", "gait": "trot", "seed": 0, "duration_s": 5.0, **case}
    told = {"valid": valid, "stood": stood, "right": right, "failure": case.get("failure", "none")}
    fall: dict[str, Any] = {"impact_m_s": impact_m_s, "damped_after_s": 0.1, "down_after_s": 0.5}
    fall |= dict.fromkeys(["peak_body_n", "fastest_joint_rad_s", "damped_rise_m", "energy_rise_j"], 1.0)
    fall |= {f"{when}_up_m_s": 0.0 for when in page.UPWARD}
    host = {"cause": "servo 1 has timed out", "refused": None}
    return {"case": case, "told": {**told, "fall": fall, "host": host, "second_host": None}, "when": "2026-11-24"}


DROP = one(kind="virtual", failure="power-cut", impact_m_s=1.5)


def test_a_robot_that_lay_on_the_ground_proves_nothing() -> None:
    assert page.is_valid(one())
    assert not page.is_valid(one(stood=False)), "it did not stand when the failure began"
    assert not page.is_valid(one(valid=False)), "the machine did not run the simulator"
    # Without a failure that is not a premise but the result.
    assert page.is_valid(one(stood=False, right=False, failure="none"))


def test_the_claim_holds_only_where_each_trial_has_a_valid_run() -> None:
    assert page.holds([DROP, one()])
    assert page.holds([DROP, one(stood=False), one()]), "repeated"
    assert not page.holds([DROP, one(), one(stood=False, seed=1)]), "never valid"
    assert not page.holds([DROP, one(right=False)])
    assert not page.holds([DROP, one(impact_m_s=0.8)]), "not gentle"
    assert not page.holds([DROP, one(failure="none", stood=False, right=False)]), "did not stay up"


def test_the_page_has_the_least_and_the_most_of_the_speeds_that_the_results_have() -> None:
    drops = [one(kind="virtual", failure="power-cut", gait=gait, impact_m_s=1.0) for gait in page.GAITS]
    speeds = {
        ("stand", "host-killed"): 0.19,
        ("trot", "host-killed"): 0.16,
        ("stand", "bus-cut"): 0.13,
        ("trot", "bus-cut"): 0.11,
    }
    fell = [
        one(kind="virtual", failure=failure, gait=gait, impact_m_s=speed) for (gait, failure), speed in speeds.items()
    ]
    assert "at 11% to 19% of the drop's speed" in page.damping([*drops, *fell])


def test_trials_that_the_command_does_not_ask_for_are_counted() -> None:
    asked = [one(seed=seed)["case"] for seed in (0, 1)]
    assert page.besides([one(seed=0), one(seed=1)], asked) == ""
    said = "1 of the 3 trials were kept from runs with other arguments. "
    assert page.besides([one(seed=0), one(seed=1), one(seed=2)], asked) == said


def test_an_invalid_trial_is_repeated_and_counted(tmp_path: Path) -> None:
    run = module("bench_quad_run", FOLDER / "run")
    kept = run.Kept(tmp_path / "trials.jsonl")
    cases = [one(seed=seed)["case"] for seed in (0, 1)]
    for seed, stood in ((0, True), (1, False), (1, True)):
        trial = one(stood=stood, seed=seed)
        assert trial["case"] in kept.open(cases)
        kept.add(trial["case"], trial["told"])
    assert kept.open(cases) == [] and kept.next(cases) == []
    again = run.Kept(tmp_path / "trials.jsonl")
    assert len(again.all) == 3 and again.open(cases) == [], "kept in the file"
    rows = page.failures([DROP, *again.all]).splitlines()
    assert "host-killed" in rows[2] and "2 of 2" in rows[2] and rows[2].endswith("| 0 | 1: servo N has timed out (1) |")


def test_a_robot_that_fell_by_itself_is_counted_apart_from_a_delayed_simulator() -> None:
    trials = [one(stood=False), one(valid=False, seed=1), one(valid=False, stood=False, seed=2), one(seed=3)]
    said = " ".join(page.repeated(trials).split())
    assert "10 % of the run (2 of 4), or if" in said, said
    assert "when the failure began (1: servo N has timed out (1))" in said, said
    assert page.failures(trials).splitlines()[2].endswith("| 2 | 1: servo N has timed out (1) |")
    assert "when the failure began (0)" in " ".join(page.repeated([one()]).split())
    # Without a failure that is the result, and no trial is invalid for it.
    assert "(0 of 1)" in page.repeated([one(stood=False, failure="none")])


def cell(table: str, row: int, column: str) -> str:
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return rows[row][head.index(column)]


def test_every_row_of_falls_and_of_runs_has_the_cause() -> None:
    falls = page.falls([DROP, one(kind="virtual", gait="trot")])
    falls = falls[falls.index("|") :]
    assert cell(falls, 1, "first cause") == "servo N has timed out (1)" and cell(falls, 1, "stood") == "1 of 1"
    run = one(kind="steady", failure="none", stood=False, right=False, load="idle", rate=400, at_once=1)
    slips, p99 = {"total_s": 0.0, "max_s": 0.0}, {"p99_ns": 9000}
    run["told"] |= {"reason": "servo 3 does not answer; the host lowered the robot", "duration_s": 60.0}
    run["told"] |= {"simulator": {"slips": slips, "replies_late": p99}}
    run["told"]["host"] = {"skipped": 0, "cycles": 9, "missing": 0, "expected": 9, "phases": {"beyond_wire": p99}}
    for columns in ((), page.STEADY_BRIEFLY):
        steady = page.steady([run], columns)
        assert cell(steady, 0, "stood") == "0 of 1"
        assert cell(steady, 0, "cause") == "servo 3 does not answer; the host lowered the robot (1)"


def test_a_trial_that_is_never_valid_ends(tmp_path: Path) -> None:
    run = module("bench_quad_run", FOLDER / "run")
    kept = run.Kept(tmp_path / "trials.jsonl")
    trial = one(stood=False)
    for _ in range(run.ATTEMPTS):
        assert kept.next([trial["case"]]) == [trial["case"]]
        kept.add(trial["case"], trial["told"])
    assert kept.next([trial["case"]]) == []
