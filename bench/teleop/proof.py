"""Runs both arrangements of the teleoperation workload in turn and holds them against the targets; writes
docs/proof/teleop.md (and, with --jitter-hour, docs/proof/teleop-hour.md instead), exit code 1 when a target is missed.

Some 20 minutes, an hour with --jitter-hour; leave the machine alone meanwhile (the hour does not mind company)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import conditions
import hour
import page
import trial

ROOT = Path(__file__).resolve().parents[2]
ROUND = ["source", "right", "right", "source"]
QUICK_ROUNDS, QUICK_SECONDS, QUICK_MINUTES = 1, 8.0, 0.5


def main() -> int:
    options = arguments()
    # What runs beside is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    began = time.monotonic()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.jitter_hour:
        result = hour.run(QUICK_MINUTES if options.quick else options.minutes, options.robots)
        target, checks = "docs/proof/teleop-hour.md", hour.checks(result)
        # What an hour found is kept before anything else is tried.
        (options.keep / "hour.json").write_text(json.dumps(result, indent=1))
        missed = not all(check.holds for check in checks)
        text = hour.text(result, command(options), hour.look(options.taut, options.keep) if missed else None)
        checks = [*hour.settings(result), *checks]
    else:
        trials = all_trials(options)
        text = page.page(trials, command(options), (time.monotonic() - began) / 60)
        target, checks = "docs/proof/teleop.md", page.checks(trials)
    if options.quick:
        print(text)
    else:
        (ROOT / target).write_text(text)
        print("\n".join(map(str, checks)))
        print(f"wrote {target}", file=sys.stderr)
    return 0 if all(check.holds for check in checks) else 1


def all_trials(options: argparse.Namespace) -> list[trial.Trial]:
    wanted = [c for c in conditions.CONDITIONS if c.name in (options.under or [c.name])]
    plan = [(c, a) for _ in range(options.rounds) for c in wanted for a in ROUND]
    found = []
    for at, (condition, arrangement) in enumerate(plan):
        recording = options.keep / f"{condition.name}-{arrangement}-{at + 1}.mcap"
        one = trial.run(arrangement, condition, options.seconds, options.taut, recording)
        found.append(one)
        figures = f"p50 {one.quantile_ms(0.5):.2f} ms, p99 {one.quantile_ms(0.99):.2f} ms, delivered {page.percent(one.delivered)}"
        print(f"{at + 1}/{len(plan)} {condition.name} {arrangement}: {figures}", file=sys.stderr)
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/teleop/run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="turns of source, right, right, source (4)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run (20)")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, or half a minute of the hour; prints, writes no page"
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
