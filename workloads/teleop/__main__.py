"""Command line of the teleoperation workload. Exit 0: balanced; 1: a setpoint is unexplained, an arm or a part failed, or the
arm is still stopped; 2: no start; 4: the machine held the arms up for too long, so that the run is no evidence."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import threading
from pathlib import Path

from .. import times
from ..threads import call_thread
from .cnde import RECEIVERS
from .companions import COMPANIONS
from .hosts import Hosts
from .processes import END_TIMEOUT_S, StartError
from .safety import VALIDATORS

WIRES = ["plain", "rough", "heavy"]


def main() -> int:
    options_given = _parse()
    call_thread("teleop")
    try:
        from . import system
    except ModuleNotFoundError as missing:
        print(f"teleop: module {missing.name!r} is not installed; run `make setup`", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    options = system.Options(
        options_given.duration,
        options_given.receiver,
        options_given.validator,
        options_given.wire,
        options_given.arrangement,
        options_given.guard,
        options_given.companions,
        options_given.journal,
        options_given.operator,
        options_given.two_hosts,
    )
    try:
        result = system.run(options, stop)
    except (StartError, OSError, ValueError) as failure:
        print(f"teleop: {failure}", file=sys.stderr)
        return 2
    print(json.dumps(result) if options_given.json else table(result))
    return 4 if not result["valid"] else 1 if wrong(result) else 0


def wrong(result: dict[str, object]) -> str | None:
    """What failed, if anything did."""
    setpoints, failures = result["setpoints"], result["failures"]
    assert isinstance(setpoints, dict) and isinstance(failures, list)
    if failures:
        return str(failures[0])
    if unexplained := setpoints.get("unexplained", 0):
        return f"{unexplained} setpoints without an outcome"
    return f"the arm was stopped for good: {result['stopped']}" if result["stopped"] else None


def verdict(result: dict[str, object]) -> str | None:
    """What a reader has to know before any figure."""
    share, stops, killed = 1.0 - float(str(result["real_time"])), result["stops"], result["killed"]
    assert isinstance(stops, list) and isinstance(killed, list)
    if killed:
        return f"no evidence: {' and '.join(killed)} did not end within {END_TIMEOUT_S:.0f} s; free a CPU"
    if not result["valid"]:
        return f"no evidence: the machine held the arms up for {100 * share:.0f} % of the run; free a CPU"
    if failed := wrong(result):
        return f"failed: {failed}"
    return f"stopped until a reset: {', '.join(stops)}" if stops else None


def table(result: dict[str, object]) -> str:
    """One line that says it all, and the ledger as a small table."""
    setpoints = result["setpoints"]
    stream = result["leader_stream"]
    assert isinstance(setpoints, dict) and isinstance(stream, dict)
    produced = setpoints["produced"]
    rows = [("produced", produced), ("applied", setpoints["applied"])]
    rows += [(f"dropped: {reason}", count) for reason, count in _most_first(setpoints["dropped"])]
    rows += [("in flight", setpoints["in_flight"]), ("unexplained", setpoints["unexplained"])]
    rows += [(f"changed: {reason}", count) for reason, count in _most_first(setpoints["modified"])]
    lines = [f"  {name:<28}{count:>7}{100.0 * count / max(1, produced):>7.1f} %" for name, count in rows]
    read = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(stream.items()))
    lines += [f"  leader stream: {read}"]
    lines += [f"  failure: {failure}" for failure in result["failures"]]  # type: ignore[attr-defined]
    dropped = sum(setpoints["dropped"].values())
    done = (
        f"{result['laps']} laps in {result['ran_s']} s, {produced} setpoints: "
        f"{setpoints['applied']} applied, {dropped} dropped, {setpoints['in_flight']} in flight"
    )
    share = 1.0 - float(str(result["real_time"]))
    if share > 0.001 and not result["killed"]:
        lines.append(f"  arms: held up by the machine for {100 * share:.1f} % of the run; their time stood meanwhile")
    said = "; ".join(filter(None, [verdict(result), done]))
    return "\n".join([f"teleop: {said}", *lines])


def _most_first(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workloads.teleop", description=__doc__)
    parser.add_argument(
        "--duration", type=times.within(86_400), default=30.0, metavar="TIME", help="how long to run (30s)"
    )
    parser.add_argument(
        "--arrangement", choices=["source", "split"], default="source", help="how nodes share processes"
    )
    parser.add_argument("--receiver", choices=RECEIVERS, default="framed", help="how the state stream is read")
    parser.add_argument("--validator", choices=VALIDATORS, default="reject", help="what a broken limit does")
    parser.add_argument(
        "--guard",
        choices=["naive", "taut"],
        default="naive",
        help="how speed is estimated; naive trips are only counted",
    )
    parser.add_argument(
        "--wire", choices=WIRES, default="plain", help="rough: joins and cuts frames; heavy: also late, in bunches"
    )
    parser.add_argument(
        "--companions", choices=COMPANIONS, default="none", help="what runs beside the loop: recorder, display, …"
    )
    parser.add_argument(
        "--operator",
        action="store_true",
        help="an operator presses reset a second after the guard has stopped motion (split, clamp)",
    )
    parser.add_argument(
        "--hosts",
        type=int,
        choices=[1, 2],
        default=1,
        help="2: leader and follower on hosts of their own, joined by a relay, and recorded there (split; root)",
    )
    parser.add_argument(
        "--relay", default="200:0", metavar="DELAY:JITTER", help="of the relay, in µs, the jitter's mean (200:0)"
    )
    parser.add_argument(
        "--hog",
        type=times.within(0.19),
        default=0.0,
        metavar="TIME",
        help="of each 200 ms a hog has the CPU of the follower's host so long (none)",
    )
    parser.add_argument(
        "--recordings", default=".", metavar="FOLDER", help="where leader.mcap and follower.mcap go (.)"
    )
    parser.add_argument("--journal", metavar="FOLDER", help="keep there what the arms truly did, step by step")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    options = parser.parse_args()
    if options.operator and (options.arrangement, options.validator) != ("split", "clamp"):
        parser.error(
            "--operator needs --arrangement split and --validator clamp, which leads the arm back to the hand's path"
        )
    options.two_hosts = None
    if options.hosts == 2:
        if options.arrangement != "split":
            parser.error("--hosts 2 needs --arrangement split, whose parts are processes")
        if not re.fullmatch(r"\d{1,7}:\d{1,7}", options.relay):
            parser.error(f"--relay {options.relay}: takes DELAY:JITTER in µs, as 200:100")
        folder = Path(options.recordings)
        folder.mkdir(parents=True, exist_ok=True)
        options.two_hosts = Hosts(options.relay, options.hog, folder)
    return options


if __name__ == "__main__":
    sys.exit(main())
