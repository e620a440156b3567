"""The trials of a collection with figures made anew from their messages, to try another definition before it is written into the gate.

refigure.py FROM TO [--late-us 2000] [--stalled-max 0.3] [--slow-times 3] [--slow-by-us 10]: then `run --judge --data TO`.

Made anew are those that vote by default: the median work and the share of slow work of each hop that `trial.rs` keeps the messages of,
and the median own time of the whole way. A message that was under way while the probe beside the program was late by `--late-us` or
more is set aside: while a machine stands still it takes time from a program without a trace, and that looks like work."""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from collect import lines
from numpy.typing import NDArray

MEDIAN_MIN = 20
Times = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="FROM")
    parser.add_argument("target", type=Path, metavar="TO")
    parser.add_argument("--late-us", type=float, default=2000.0, help="0: no message is set aside")
    parser.add_argument("--stalled-max", type=float, default=0.3, help="share of the time; a trial with more is void")
    parser.add_argument("--slow-times", type=float, default=3.0)
    parser.add_argument("--slow-by-us", type=float, default=10.0)
    options = parser.parse_args()
    aside = all_messages = 0
    with options.target.open("w") as file:
        for turn in lines(options.source):
            for side in [turn["a"], *turn["b"].values()]:
                if side.get("messages"):
                    kept = refigure(side, options)
                    aside, all_messages = aside + int((~kept).sum()), all_messages + len(kept)
            file.write(json.dumps(turn, separators=(",", ":")) + "\n")
    for suffix in (".calibration.json", ".background.jsonl"):
        shutil.copy(options.source.with_suffix(suffix), options.target.with_suffix(suffix))
    print(f"{aside} of {all_messages} messages set aside ({100 * aside / max(1, all_messages):.1f} %)")


def refigure(side: dict, options: argparse.Namespace) -> NDArray[np.bool_]:
    """Makes a trial's figures anew, in place; which messages count."""
    trial, messages = side["trial"], side["messages"]
    start_us = np.array(messages["start_us"], float)
    kept = ~meets(start_us, start_us + np.array(side["total_us"], float) + 1.0, side["late"], options.late_us)
    trial["way"]["own"]["p50"] = median(np.array(side["own_us"], float)[kept] * 1000.0)
    for hop in messages["hops"]:
        went = kept & (np.array(hop["total_us"]) + np.array(hop["work_100ns"]) > 0)
        work_ns = np.array(hop["work_100ns"], float)[went] * 100.0
        figures = trial["hops"][hop["hop"]]["times"]["work"]
        figures["p50"] = middle = median(work_ns)
        figures["slow"] = None
        if middle is not None:
            limit = max(options.slow_times * middle, middle + 1000.0 * options.slow_by_us)
            figures["slow"] = float((work_ns > limit).mean())
    stalled = (trial["beside"] or {"stalled": 0.0})["stalled"]
    if trial["void"] is None or trial["void"]["why"] == "stalled":
        trial["void"] = {"why": "stalled", "stalled": stalled} if stalled > options.stalled_max else None
    return kept


def meets(from_us: Times, to_us: Times, late: list[list[int]], least_us: float) -> NDArray[np.bool_]:
    """Which messages were under way in a stall."""
    met = np.zeros(len(from_us), bool)
    for due_us, late_us in late:
        if least_us and late_us >= least_us:
            met |= (from_us < due_us + late_us) & (to_us > due_us)
    return met


def median(times: Times) -> float | None:
    """The lower of the two in the middle, as `taut_stats::rank` has it."""
    if len(times) < MEDIAN_MIN:
        return None
    return float(np.sort(times)[(len(times) + 1) // 2 - 1])


if __name__ == "__main__":
    main()
