"""What the scripts of proofs write: a missed limit stands there as missed, and each quantity has one limit."""

import argparse
import importlib.machinery
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent


@contextmanager
def script(name: str) -> Iterator[ModuleType]:
    """A script of another folder; its neighbours are found by their names, which others have too."""
    path = BENCH / name
    names = {neighbour.stem for neighbour in path.parent.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    sys.path.insert(0, str(path.parent))
    loader = importlib.machinery.SourceFileLoader("bench_" + re.sub(r"\W", "_", name), str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(path.parent))
        for one in names:
            sys.modules.pop(one, None)
        sys.modules.update(others)


def test_a_cost_above_its_limit_is_missed_though_its_peer_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    quantiles = {"update": [1, 2, 3, 4, 9024, 9], "control": [1, 2, 3, 4, 31387, 9]}
    call = {"write": [1, 2, 300, 4], "cold": [1, 2, 290, 4], "lost": 0, "n": 24000}
    with script("performance/measured.py") as measured:
        monkeypatch.setattr(measured, "run", lambda *_, **__: json.dumps(quantiles))
        guard = {row.limit: row.holds for row in measured.guard(quick=True)}
        monkeypatch.setattr(measured, "run", lambda *_, **__: json.dumps({"rows": [call]}))
        telemetry = {row.limit: row.holds for row in measured.telemetry(quick=True)}
    assert guard == {"≤ 1000 ns": False, "≤ 1 × (0.29 ×)": True}
    assert telemetry == {"≤ 250 ns": False, "≤ 1.2 × (1.03 ×)": True}


# A quantity, and where its limit stands: on docs/performance.md first.
LIMITS = {
    "a stamp in C, TSC reads": [
        ("docs/performance.md", r"stamp in C .* ≤ ([\d.]+) ×"),
        ("bench/stamp/README.md", r"native stamp ÷ TSC read .* ≤ ([\d.]+) "),
    ],
    "a stamp in Rust, TSC reads": [
        ("docs/performance.md", r"stamp in Rust .* ≤ ([\d.]+) ×"),
        ("bench/stamp/README.md", r"in Rust ÷ TSC read .* ≤ ([\d.]+) "),
    ],
    "a stamp in Python, readings of the clock": [
        ("docs/performance.md", r"stamp in Python, in a session .* ≤ ([\d.]+) ×"),
        ("bench/stamp/README.md", r"Python stamp ÷ time.* ≤ ([\d.]+) "),
    ],
    "the recorder, % of a core": [
        ("docs/performance.md", r"recorder, full tier .* ≤ ([\d.]+) %"),
        ("bench/record/README.md", r"one core .*\(limit ([\d.]+) %\)"),
    ],
    "a kernel event, bytes": [
        ("docs/performance.md", r"kernel event on disk .* ≤ ([\d.]+) bytes"),
        ("bench/record/README.md", r"charged to them \(limit ([\d.]+)\)"),
    ],
    "p99 of a recorded cycle": [
        ("docs/performance.md", r"recorded, cycle p99 .* within ([\d.]+ to [\d.]+) ×"),
        ("bench/record/README.md", r"limit: interval within ([\d.]+ to [\d.]+) "),
    ],
    "taut top, % of a core": [
        ("docs/performance.md", r"taut top` beside .* ≤ ([\d.]+) %"),
        ("docs/proof/live.md", r"taut top` \| .*≤ ([\d.]+)"),
    ],
    "a guard's update, ns": [
        ("docs/performance.md", r"guard `update`.* ≤ ([\d.]+) ns"),
        ("docs/proof/guard.md", r"p99.99 ≤ ([\d.]+) µs"),
    ],
    "a telemetry call, ns": [
        ("docs/performance.md", r"telemetry, .* ≤ ([\d.]+) ns"),
        ("docs/proof/telemetry.md", r"p99.9 ≤ ([\d.]+) ns"),
    ],
    "a telemetry call, copies": [
        ("docs/performance.md", r"telemetry, .* ≤ ([\d.]+) ×"),
        ("docs/proof/telemetry.md", r"A later limit, ([\d.]+) times"),
    ],
}


@pytest.mark.parametrize("quantity", LIMITS)
def test_a_quantity_has_one_limit_on_all_pages(quantity: str) -> None:
    found = []
    for page, pattern in LIMITS[quantity]:
        match = re.search(pattern, (ROOT / page).read_text())
        assert match, f"{page} has no limit of it"
        # Of a microsecond, in ns.
        found.append("1000" if match[0].endswith("1 µs") else match[1])
    assert len(set(found)) == 1, found


def test_the_scripts_have_the_limits_of_the_pages() -> None:
    with script("stamp/run") as run:
        limits = {sentence: limit for sentence, _, limit, _ in run.TARGETS}
    assert limits["native stamp ÷ TSC read"] == limits["in Rust ÷ TSC read"] == 1.1
    with script("top/measure.py") as measure:
        assert measure.MOST_PERCENT == 1


def test_a_run_that_tried_nothing_counts_among_the_trials() -> None:
    runs = [
        {
            "situation": "lock",
            "answer": "nothing helps",
            "remedies": [],
            "load": 1.0,
            "cpus": 2,
            "max_s": 150.0,
            "trials": n,
        }
        for n in (0, 12, 83)
    ]
    with script("tune/run") as run:
        assert "had 0 to 83 trials each" in run.page(runs)


def test_the_results_of_causes_have_all_that_the_page_holds_against_limits() -> None:
    tier = dict.fromkeys(("disturbed", "unexplained", "tail_unknown_ns", "innocent_guilty"), 0)
    tier |= {"messages": 40, "injected": 10, "right": 10, "innocent_judged": 1, "tail_ns": 1}
    tier |= {"confusion": [["work", "work"]], "errors": [["work", 10**6, 10]], "what_if_pairs": [[100, 100, 200]]}
    cells = [
        {"language": name, "kind": "work", "impossible": None, "tiers": {"full": tier}} for name in ("native", "python")
    ]
    options = argparse.Namespace(rounds=1, messages=40, gap_ms="1,3", seed=1, tiers="full")
    with script("causes/causes_page.py") as causes:
        figures, page = causes.figures(cells, options), causes.page(cells, options)
        rows = [f"| {what} | {figure} | {limit} | holds |" for what, figure, limit, _ in causes.checks(cells)]
    assert len(rows) == 7 and all(row in page and row in figures for row in rows)


def test_a_limit_counts_only_the_programs_that_it_applies_to() -> None:
    with script("hosts/page.py") as page:
        programs = sys.modules["programs"]
        chained = programs.Matched("redis: TCP", 100, 100, 100, 99, 1.0, 2.0)
        spins = programs.Matched("sockperf: UDP", 100, 100, 100, None, None, None)
        broken = programs.Matched("mosquitto: TCP", 100, 100, 100, 50, 1.0, 2.0)
        found = [sys.modules["clocks"].Found("a relay", 100, 1.0, 2.0, (1.0, 1.0), (1.0, 1.0))]
        cost = sys.modules["cost"].Cost(events=1000, one_s=1.0, joined_s=2.0)
        named = [sys.modules["causes"].Named("it computes", "cpu", 50, 50)]
        loops = [sys.modules["teleop"].Loop("a hog has the CPU", "the hog", 5, 5)]
        properties = {"moments": "1", "widest": "1.0", "moments_of_several": "1"}
        text, _, holds = page.page(found, named, [chained, spins], loops, cost, properties, "run")
        assert holds and "2 of 2 programs, 1 of 1 with a chain, 1 of 1 with clocks aligned by messages" in text
        text, _, holds = page.page(found, named, [chained, spins, broken], loops, cost, properties, "run")
        assert (
            not holds
            and "3 of 3 programs, 1 of 2 with a chain, **missed**, 2 of 2 with clocks aligned by messages" in text
        )
        # What was measured is not what the limit is of.
        assert "**Not all** limits hold, that of CPU time with 1,000 kernel events instead of 5,000,000." in text
        whole = sys.modules["cost"].Cost(events=5_000_000, one_s=1.0, joined_s=2.0)
        assert " All limits hold.\n" in page.page(found, named, [chained], loops, whole, properties, "run")[0]
        wrong = [sys.modules["teleop"].Loop("a hog has the CPU", "the hog", 5, 4)]
        assert not page.page(found, named, [chained], wrong, whole, properties, "run")[2]
