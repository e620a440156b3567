"""Runs both arrangements of the teleoperation workload in turn and holds them against the targets; writes
docs/proof/teleop.md and bench/teleop/results.md (with --jitter-hour: teleop-hour.md and results-hour.md); exit code 1 when a target is missed.

Some 30 minutes, an hour with --jitter-hour; leave the machine alone meanwhile (the hour does not mind company). The page is written
after each round: ended early, it has the rounds until then."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import conditions
import hour
import page
import trial

from bench.proof.page import Check

ROOT = Path(__file__).resolve().parents[2]
ORDERS = [["source", "right"], ["right", "source"]]
"""Rounds take these in turn, so that what the machine does meanwhile meets both sides alike."""
QUICK_ROUNDS, QUICK_SECONDS, QUICK_MINUTES = 1, 8.0, 0.5


def main() -> int:
    options = arguments()
    # What runs is brought down again, and the page has the rounds until then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    began = time.monotonic()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.jitter_hour:
        result = hour.run(QUICK_MINUTES if options.quick else options.minutes, options.robots)
        checks = hour.checks(result)
        # What an hour found is kept before anything else is tried.
        (options.keep / "hour.json").write_text(json.dumps(result, indent=1))
        missed = not all(check.holds for check in checks)
        looked_at = hour.look(options.taut, options.keep) if missed else None
        show(options, "docs/proof/teleop-hour.md", hour.text(result, command(options)))
        show(options, "bench/teleop/results-hour.md", hour.figures(result, command(options), looked_at))
        return verdict([*hour.settings(result), *checks])
    found, checks = page.Found(options.rounds, command(options)), []
    try:
        for _ in rounds(found, options):
            checks = page.checks(found)
            minutes = (time.monotonic() - began) / 60
            show(options, "docs/proof/teleop.md", page.page(found, minutes))
            show(options, "bench/teleop/results.md", page.results(found, minutes))
    finally:
        code = verdict(checks)
    return code


def show(options: argparse.Namespace, target: str, text: str) -> None:
    if options.quick:
        print(text)
    else:
        (ROOT / target).write_text(text)
        print(f"wrote {target}", file=sys.stderr)


def verdict(checks: list[Check]) -> int:
    """Prints what was held against limits; gives the exit code."""
    print("\n".join(map(str, checks)) or "no round has both sides under any condition")
    return 0 if checks and all(check.holds for check in checks) else 1


def rounds(found: page.Found, options: argparse.Namespace) -> Iterator[None]:
    """Adds round after round to what is found. One of which a side has no result is left out under that condition."""
    wanted = [c for c in conditions.CONDITIONS if c.name in (options.under or [c.name])]
    began, longest_s = time.monotonic(), 0.0
    while found.done < found.rounds:
        round_began = time.monotonic()
        if round_began - began + longest_s > 60 * options.max_minutes:
            print(f"no further round ends within {options.max_minutes:g} minutes", file=sys.stderr)
            return
        for condition in wanted:
            found.trials += both_sides(found, condition, options)
        found.done += 1
        longest_s = max(longest_s, time.monotonic() - round_began)
        if found.trials:
            yield


def both_sides(found: page.Found, condition: conditions.Condition, options: argparse.Namespace) -> list[trial.Trial]:
    """Nothing where one has no result."""
    number, sides = found.done + 1, []
    for arrangement in ORDERS[found.done % 2]:
        recording = options.keep / f"{condition.name}-{arrangement}-{number}.mcap"
        try:
            one = trial.run(arrangement, condition, options.seconds, options.taut, recording)
        except RuntimeError as failure:
            found.left.append((arrangement, f"round {number}, {failure}"))
            print(f"round {number}: left out: {failure}", file=sys.stderr)
            return []
        sides.append(one)
        figures = f"p50 {one.quantile_ms(0.5):.2f} ms, p99 {one.quantile_ms(0.99):.2f} ms, delivered {page.percent(one.delivered)}"
        print(f"round {number} of {found.rounds}, {condition.name} {arrangement}: {figures}", file=sys.stderr)
    return sides


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/teleop/run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="turns of both arrangements under each condition (10)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run (20)")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, or half a minute of the hour; prints, writes no page"
    )
    parser.add_argument(
        "--max-minutes", type=float, default=34.0, help="no round begins that would not end within so long (34)"
    )
    names = [condition.name for condition in conditions.CONDITIONS]
    parser.add_argument("--under", action="append", choices=names, help="only under this condition; may be given again")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the hour (60)")
    parser.add_argument("--robots", type=int, default=1, help="that share the hour, beside one another (1)")
    parser.add_argument("--jitter-hour", action="store_true", help="an hour of heavy jitter instead")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "target/bench-teleop", metavar="FOLDER", help="for recordings"
    )
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = QUICK_ROUNDS, QUICK_SECONDS
    if options.rounds < 1 or options.seconds < 5:
        parser.error("needs one round and 5 seconds at least: the hand takes 1.5 s to come up to speed")
    return options


def command(options: argparse.Namespace) -> str:
    """What to type for this again."""
    words = ["bench/teleop/run"]
    if options.jitter_hour:
        words += ["--jitter-hour"] + [f"--minutes {options.minutes:g}"] * (options.minutes != 60.0)
        words += [f"--robots {options.robots}"] * (options.robots != 1)
    else:
        words += [f"--rounds {options.rounds} --seconds {options.seconds:g}"]
        words += [f"--under {name}" for name in options.under or []]
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
