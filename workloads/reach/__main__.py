"""Runs the whole system by itself: simulator, state publisher, planner, then trials of the bench client.

Exit code 0: all trials succeeded; 1: one did not; 2: something did not start; 4: the machine held the simulator up for too long in one, and
no other failed. `taut record --` can be put in front."""

import argparse
import json
import statistics
import sys
import threading
from typing import Any

from .. import times
from . import options, processes
from .trial import exit_code

COLUMNS = (
    "planning_ms",
    "planned_ms",
    "excess_ms",
    "notice_ms",
    "end_to_end_ms",
    "control_lateness_p99_us",
    "control_missed",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workloads.reach", description=__doc__)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--trials", type=_trials, default=5, metavar="N", help="how many (5)")
    amount.add_argument(
        "--duration", type=times.within(86_400), metavar="TIME", help="as many as begin within this time"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON line a trial instead of the table")
    parser.add_argument(
        "--together", action="store_true", help="all nodes in one process under a multi-threaded executor (--bus ros2)"
    )
    options.add(parser)
    parsed = parser.parse_args()
    chosen = options.chosen(parsed)
    if parsed.together and chosen.bus != "ros2":
        parser.error(f"--together is for --bus ros2, not {chosen.bus}")
    if chosen.throttle != "none" and chosen.bus == "ros2":
        parser.error("--throttle is not for --bus ros2: what is called back is the executor's choice")
    stop = threading.Event()
    processes.stop_on_signals(stop)
    try:
        with processes.system(chosen, stop, () if parsed.together else processes.NODES):
            client = "together" if parsed.together else "client"
            trials = processes.trials(chosen, stop, parsed.trials, parsed.duration, client)
    except processes.StartError as failure:
        print(f"reach: {failure}", file=sys.stderr)
        return 2
    if parsed.json:
        print("\n".join(json.dumps(trial) for trial in trials))
    else:
        print(table(trials))
    return exit_code(trials) if trials else 1


def verdict(trials: list[dict[str, Any]]) -> str:
    """What a reader has to know before any figure: the first failure, and how many there were; else the first that is no evidence."""
    wrong = [(number, trial) for number, trial in enumerate(trials, 1) if not trial["success"]]
    counted = f"{len(trials) - len(wrong)} of {len(trials)} trials succeeded" if trials else "no trial ended"
    # Stable: failures first, each kind in its order.
    for number, trial in sorted(wrong, key=lambda one: not one[1]["valid"])[:1]:
        word = "failed" if trial["valid"] else "no evidence"
        return f"reach: {word}: trial {number}: {trial['reason'].removeprefix('invalid: ')}; {counted}"
    return f"reach: {counted}"


def table(trials: list[dict[str, Any]]) -> str:
    """One row a trial, and the medians."""
    lines = [
        verdict(trials),
        f"  {'trial':<8}" + "".join(f"{name.replace('control_', ''):>17}" for name in COLUMNS) + "  outcome",
    ]
    for number, trial in enumerate(trials, 1):
        cells = "".join(f"{trial[name]:>17.1f}" if name in trial else f"{'–':>17}" for name in COLUMNS)
        lines.append(f"  {number:<8}{cells}  {'success' if trial['success'] else trial['reason']}")
    values = {name: [trial[name] for trial in trials if name in trial] for name in COLUMNS}
    cells = "".join(f"{statistics.median(values[name]):>17.1f}" if values[name] else f"{'–':>17}" for name in COLUMNS)
    return "\n".join([*lines, f"  {'median':<8}{cells}"])


def _trials(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"{text} is not within 1 to 100000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
