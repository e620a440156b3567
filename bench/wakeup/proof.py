"""Holds `taut wakeup` against its peers, in turn; writes docs/proof/wakeup.md and bench/wakeup/results.md (not with --only), exit code 1 when a limit is
missed.

Some 45 minutes; leave the machine alone meanwhile."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import against_cyclictest
import against_hiccup
import against_python
import hog_named
import logs_read
import memory
import page

ROOT = Path(__file__).resolve().parents[2]
Options = argparse.Namespace
# Starting costs some 4 ms of CPU, a second of wakes 12: shorter runs would compare programs' starts.
CPU_SECONDS = 10
SECTIONS: dict[str, Callable[[Options], page.Section]] = {
    "cyclictest": lambda o: against_cyclictest.measure(o.taut, o.rounds, o.seconds),
    "cpu": lambda o: against_cyclictest.measure_cpu(o.taut, o.rounds, max(o.seconds, CPU_SECONDS)),
    "jhiccup": lambda o: against_hiccup.measure(o.taut, o.rounds, o.seconds, o.jar),
    "python": lambda o: against_python.measure(o.taut, o.rounds, o.seconds, o.old_python),
    "hog": lambda o: hog_named.measure(o.taut, o.rounds, o.seconds),
    "hlog": lambda o: logs_read.measure(o.taut, o.seconds, o.jar),
    "memory": lambda o: memory.measure(o.taut, ROOT),
}


def main() -> None:
    options = arguments()
    # What runs beside is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    began = time.monotonic()
    found = [SECTIONS[name](options) for name in options.only or SECTIONS]
    text = page.page(found, command(options), (time.monotonic() - began) / 60)
    figures = page.results(found, command(options))
    if options.only:
        print(figures)
    else:
        (ROOT / "docs/proof/wakeup.md").write_text(text)
        (ROOT / "bench/wakeup/results.md").write_text(figures)
    checks = [check for section in found for check in section.checks]
    print("\n".join(map(str, checks)))
    sys.exit(0 if all(check.holds for check in checks) else 1)


def arguments() -> Options:
    parser = argparse.ArgumentParser(prog="bench/wakeup/run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each comparison")
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument(
        "--only", metavar="SECTION", action="append", choices=list(SECTIONS), help=f"of {', '.join(SECTIONS)}"
    )
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    parser.add_argument("--old-python", metavar="FILE", help="a Python before 3.11, which sleeps in select()")
    parser.add_argument(
        "--jar", type=Path, default=ROOT / "target/bench-probe/HdrHistogram-2.2.2.jar", help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if os.geteuid() != 0 or (os.cpu_count() or 1) < 2:
        parser.error("needs root (real-time priority, kernel events) and two CPUs")
    return options


def command(options: Options) -> str:
    """What to type for this again; where things lie is left out."""
    only = "".join(f" --only {name}" for name in options.only or [])
    return f"bench/wakeup/run --rounds {options.rounds} --seconds {options.seconds}{only}"


if __name__ == "__main__":
    main()
