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
    fall = {"impact_m_s": impact_m_s, "damped_after_s": 0.1}
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
    assert "host-killed" in rows[2] and "2 of 2" in rows[2] and rows[2].endswith("| 1 |")


def test_a_trial_that_is_never_valid_ends(tmp_path: Path) -> None:
    run = module("bench_quad_run", FOLDER / "run")
    kept = run.Kept(tmp_path / "trials.jsonl")
    trial = one(stood=False)
    for _ in range(run.ATTEMPTS):
        assert kept.next([trial["case"]]) == [trial["case"]]
        kept.add(trial["case"], trial["told"])
    assert kept.next([trial["case"]]) == []
