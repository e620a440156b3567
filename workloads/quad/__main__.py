"""A quadruped over servo buses. Exit 0: it stood, up to the failure where one was asked for; 1: otherwise; 2: no start."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from typing import Any

from .failures import NAMES, failure


def main() -> int:
    asked = _parse()
    try:
        from .run import Options, StartError, run
    except ModuleNotFoundError as missing:
        print(f"quad: module {missing.name!r} is not installed; run `make setup`", file=sys.stderr)
        return 2
    # As Ctrl-C does: the programs are ended on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    at_s = asked.at if asked.at is not None else max(asked.duration / 2, min(3.0, asked.duration))
    options = Options(
        duration_s=asked.duration,
        rate_hz=asked.rate,
        gait=asked.gait,
        failure=failure(asked.failure, at_s, asked.seed),
        virtual=asked.virtual,
        clear=asked.clear,
        spin_us=asked.spin_us,
        cpu=asked.cpu,
        seed=asked.seed,
    )
    try:
        told = run(options)
    except (StartError, OSError) as error:
        print(f"quad: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(json.dumps(told) if asked.json else table(told))
    host = told["host"]
    fine = told["stood"] and (asked.failure != "none" or host["cause"] is None)
    return 0 if fine else 1


def table(told: dict[str, Any]) -> str:
    """What people read."""
    lines = []
    host = told["host"]
    if host is not None:
        lines += [
            f"  {host['cycles']} cycles at {told['rate_hz']:g} Hz, {host['skipped']} skipped; "
            f"{host['missing']} of {host['expected']} replies missing",
            f"  {'µs':<10}{'p50':>10}{'p99':>10}{'max':>10}",
        ]
        for phase in ("wait", "control", "send", "imu", "receive", "parse", "cycle"):
            figures = [host["phases"][phase][rank] for rank in ("p50_ns", "p99_ns", "max_ns")]
            cells = "".join(f"{'–' if ns is None else f'{ns / 1e3:.1f}':>10}" for ns in figures)
            lines.append(f"  {phase:<10}{cells}")
        why = host["refused"] or host["cause"]
        if why:
            lines.append(f"  the host: {why}")
    if told.get("second_host"):
        lines.append(f"  the host, started again: {told['second_host']['refused']}")
    if "fall" in told:
        lines += [f"  {name:<22}{'–' if value is None else f'{value:.3f}':>10}" for name, value in told["fall"].items()]
    if "physics" in told:
        physics = told["physics"]
        lines.append(
            f"  physics: {physics['steps']} steps of half a millisecond, {physics['skipped']} lost by being late"
        )
    stood = "stood" if told["stood"] else "did not stand"
    if told["failure"] != "none":
        stood += " when it failed"
    lines.append(f"quad: {stood}; {told['failure']}; body now at {100 * told['height_m']:.0f} cm")
    return "\n".join(lines)


def _seconds(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and 0 < value <= 3600):
        raise argparse.ArgumentTypeError(f"{text} is not within 0 to 3600 seconds")
    return value


def _hertz(text: str) -> float:
    value = float(text)
    if not 10 <= value <= 2000:
        raise argparse.ArgumentTypeError(f"{text} is not within 10 to 2000 cycles a second")
    return value


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m workloads.quad", description=__doc__)
    parser.add_argument("--duration", type=_seconds, default=30.0, metavar="S", help="seconds to run (30)")
    parser.add_argument("--rate", type=_hertz, default=400.0, metavar="HZ", help="cycles a second of the host (400)")
    parser.add_argument("--gait", choices=["stand", "trot"], default="trot", help="what it does once it stands")
    parser.add_argument("--failure", choices=NAMES, default="none", help="what goes wrong")
    parser.add_argument("--at", type=_seconds, metavar="S", help="when (half of the duration)")
    parser.add_argument("--seed", type=int, default=1, help="which servo or bus it hits")
    parser.add_argument("--virtual", action="store_true", help="in virtual time: the same run each time")
    parser.add_argument("--clear", action="store_true", help="stop servos that an earlier host left in another mode")
    parser.add_argument(
        "--spin-us", type=int, default=0, metavar="US", help="the host reads the clock for so long before waits"
    )
    parser.add_argument("--cpu", type=int, metavar="N", help="the host's CPU")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
