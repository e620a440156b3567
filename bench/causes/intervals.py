#!/usr/bin/env python3
"""Of what does the error of a prediction consist beyond its sampling error, and do intervals that allow for it hold?

Each case of open.py is recorded once with its cause and twice without it. The two without it differ by what any two runs differ by; so
much is also between a prediction and a run. Cases are split by their number in open.py's list: of three in a row the second calibrates
`OTHER_RUN` (explain/taut-analysis/src/predictions.rs), and the others confirm it.

Needs what open.py needs. Prints the tables of bench/causes/results-intervals.md."""

import argparse
import contextlib
import importlib.util
import itertools
import json
import math
import statistics
import tempfile
from pathlib import Path

# Its name is that of a module of Python's.
spec = importlib.util.spec_from_file_location("open_loops", Path(__file__).with_name("open.py"))
open_loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(open_loops)

SIDES = ("on", "off 1", "off 2")
SETS = {"calibration": 1, "confirmation": 2, "second-confirmation": 0}
# At a higher load the cases of open.py are seldom alike twice.
LOAD_MAX = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--keep", type=Path, required=True, help="recordings are here; those that are missing are made")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--taut", default=str(open_loops.ROOT / ".venv/bin/taut"))
    parser.add_argument("--sampling", help="a taut whose intervals allow for sampling alone, to compare")
    parser.add_argument("--python", default=str(open_loops.ROOT / ".venv/bin/python"))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--priority", type=int, default=10)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    numbered = enumerate(open_loops.cases())
    chosen = [
        (number, case)
        for number, case in numbered
        if number % 3 == SETS[options.set] and case.load < LOAD_MAX and without(case)
    ][: options.count]
    record([(number, case) for number, case in chosen if not path(options, number, SIDES[-1]).exists()], options)
    print(tables([found for number, case in chosen for found in compared(number, case, options)]))


def without(case: open_loops.Case) -> str | None:
    return ((case.program == "python" and open_loops.IN_PYTHON.get(case.kind)) or open_loops.KINDS[case.kind])[1]


def path(options: argparse.Namespace, number: int, side: str) -> Path:
    return options.keep / f"{number} {side}.mcap"


def record(missing: list, options: argparse.Namespace) -> None:
    if not missing:
        return
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cgroup = stack.enter_context(open_loops.own_cgroup())
        stack.enter_context(open_loops.without_realtime_limit())
        bench = open_loops.Bench(options, folder, open_loops.build(folder, options), cgroup, {})
        for number, case in missing:
            command = bench.command(case, number, bench.needed_us(case) / case.load)
            for side in SIDES:
                recording = path(options, number, side)
                words = ["--log", str(recording.with_suffix(".log"))] + ["--off"] * (side != "on")
                bench.record(recording, [*command, *words])


def explained(taut: str, recording: Path, asked: str | None) -> dict:
    words = ["--without", asked] if asked else []
    found = json.loads(open_loops.run([taut, "explain", str(recording), *words, "--all", "--format", "json"]))
    return max(found["chains"], key=lambda chain: chain["messages"])


def quantiles(taut: str, recording: Path, asked: str) -> list[dict]:
    predictions = explained(taut, recording, asked)["predictions"]
    return next(found["quantiles"] for found in predictions if found["without"] == asked)


def compared(number: int, case: open_loops.Case, options: argparse.Namespace) -> list[dict]:
    """A prediction's quantiles beside those of both runs without the cause."""
    asked = without(case)
    logs = [open_loops.read_log(path(options, number, side).with_suffix(".log")) for side in SIDES]
    replay = open_loops.replayed(logs[0], case.stages)
    runs = [
        [m["total_ns"] for m in explained(options.taut, path(options, number, side), None)["all"]] for side in SIDES[1:]
    ]
    predicted = quantiles(options.taut, path(options, number, "on"), asked)
    sampled = quantiles(options.sampling or options.taut, path(options, number, "on"), asked)
    at = open_loops.at
    is_valid = all(
        open_loops.is_within(at(p["quantile"], replay), at(p["quantile"], [m.total_ns for m in logs[1]]))
        for p in predicted
    )
    found = []
    for p, s in zip(predicted, sampled, strict=True):
        first, second = (at(p["quantile"], run) for run in runs)
        found.append(
            {
                **p,
                "case": number,
                "is_valid": is_valid,
                "measured_ns": first,
                "error": math.log(first / p["after_ns"]),
                "of_two_runs": math.log(first / second),
                "idle": undisturbed(logs),
                "is_held": p["interval"][0] <= first <= p["interval"][1],
                "is_held_by_sampling": s["interval"][0] <= first <= s["interval"][1],
                "sampling": math.log(s["interval"][1] / s["interval"][0]) / 2,
                "width": math.log(p["interval"][1] / p["interval"][0]) / 2,
            }
        )
    return found


def undisturbed(logs: list[list]) -> float | None:
    """By how much messages that found all idle in each of the runs, the same ones, took longer in the first run without the cause than in
    that with it."""
    idle = [
        {at for at, (before, m) in enumerate(itertools.pairwise(log), 1) if before.done_ns < m.due_ns} for log in logs
    ]
    usual_ns = statistics.median(message.total_ns for message in logs[1])
    both = [at for at in set.intersection(*idle) if logs[0][at].total_ns < 1.5 * usual_ns]
    if not both:
        return None
    with_ns, without_ns = (statistics.median(log[at].total_ns for at in both) for log in logs[:2])
    return math.log(without_ns / with_ns)


def middle(found: list[dict], key: str) -> str:
    """Of the ratio whose logarithm this is, or of its inverse."""
    return f"{100 * math.expm1(statistics.median(abs(p[key]) for p in found)):.1f} %"


def tables(all_found: list[dict]) -> str:
    found = [p for p in all_found if p["is_valid"]]
    out = f"{len({p['case'] for p in found})} of {len({p['case'] for p in all_found})} cases were valid.\n\n"
    out += "| quantile | predictions | held by sampling alone | held | half of the interval, sampling alone | half of the interval "
    out += "| error | two runs without the cause |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
    for name, of in [
        *((f"p{100 * q:.0f}", [p for p in found if p["quantile"] == q]) for q in open_loops.QUANTILES),
        ("all", found),
        ("all, also of cases that are not valid", all_found),
    ]:
        if not of:
            continue
        out += f"| {name} | {len(of)} | {sum(p['is_held_by_sampling'] for p in of)} | {sum(p['is_held'] for p in of)} "
        out += f"| {middle(of, 'sampling')} | {middle(of, 'width')} | {middle(of, 'error')} | {middle(of, 'of_two_runs')} |\n"
    idle = list({p["case"]: p["idle"] for p in found if p["idle"] is not None}.values())
    if len(idle) < 2:
        return out
    out += "\nMessages that found all idle in each run: the run without the cause less that with it, median "
    out += f"{100 * statistics.median(idle):+.1f} %, middle half {100 * statistics.quantiles(idle)[0]:+.1f} to "
    out += f"{100 * statistics.quantiles(idle)[2]:+.1f} %.\n"
    return out


if __name__ == "__main__":
    main()
