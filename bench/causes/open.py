#!/usr/bin/env python3
"""Open loops: messages come whether or not the last one is done, so they queue. Each case is recorded with a cause put in
and without it; the explanation must name the cause, and what it predicts without the cause is held against the run without.

Needs root, a C compiler and what `make setup` leaves in .venv. Writes docs/predictions-proof.md with --page."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "open"
QUANTILES = (0.5, 0.95, 0.99)
LIMIT_RATIO, LIMIT_NS = 0.15, 50_000
ROOT_CAUSE_SHARE = 0.5


@dataclass(frozen=True)
class Case:
    program: str
    kind: str
    without: str
    load: float
    arrivals: str
    transport: str = "pipe"
    stages: int = 1
    processes: bool = False

    @property
    def name(self) -> str:
        where = "processes" if self.processes else "threads"
        stages = f", {self.stages} threads" if self.stages > 1 else ""
        return f"{self.program} {self.kind}, {self.arrivals}, load {self.load}, {self.transport}, {where}{stages}"


CAUSES = {"lock": "lock:cfg_lock", "work": "work", "sleep": "sleep", "preempted": "preempted", "gil": "gil"}


def cases() -> list[Case]:
    found = []
    c = [
        ("pipe", 1, False),
        ("socket", 1, True),
        ("shm", 3, False),
        ("shm", 1, True),
        ("pipe", 3, True),
        ("socket", 3, False),
    ]
    loads = [0.2, 0.5, 0.8, 0.95]
    for number, (kind, arrivals, load) in enumerate(
        (kind, arrivals, load)
        for kind in ("lock", "preempted", "work", "sleep")
        for arrivals in ("periodic", "poisson")
        for load in loads
    ):
        transport, stages, processes = c[number % len(c)]
        found.append(Case("c", kind, CAUSES[kind], load, arrivals, transport, stages, processes))
    for kind in ("sleep", "work", "gil"):
        for load in (0.15, 0.4, 0.7):
            found.append(Case("asyncio", kind, CAUSES[kind], load, "poisson", "socket"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that hold this word")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--results", type=Path, help="append the results here, a JSON line a case")
    parser.add_argument("--page", type=Path, help="write what --results holds as a page here, and record nothing")
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    parser.add_argument("--explain", default="", help="a command instead of `taut explain`")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"))
    parser.add_argument("--seconds", type=float, default=5.0, help="of a recording")
    options = parser.parse_args()
    if options.page:
        results = [json.loads(line) for line in options.results.read_text().splitlines()]
        options.page.write_text(page(results))
        return
    if os.geteuid() != 0:
        parser.error("needs root: real-time priority and the full tier")
    chosen = [case for case in cases() if options.only in case.name][options.first : options.first + options.count]
    with tempfile.TemporaryDirectory() as folder:
        loop = Path(folder) / "loop"
        command = [
            "cc",
            "-std=gnu17",
            "-O2",
            f"-I{ROOT / 'include'}",
            str(HERE / "loop.c"),
            "-o",
            str(loop),
            "-lpthread",
            "-lm",
        ]
        subprocess.run(command, check=True)
        for number, case in enumerate(chosen):
            result = measure(case, number + options.first, Path(folder), options, loop)
            print(line(result), flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(result) + "\n")


def measure(case: Case, seed: int, folder: Path, options: argparse.Namespace, loop: Path) -> dict:
    work_us = 200 if case.program == "c" else 300
    period_us = work_us / case.load
    messages = int(options.seconds * 1e6 / period_us)
    # Of the time that is free, so that the queue ends before the next one begins.
    size_us = 6000 if case.program == "c" else 15000
    every_us = (
        max(46_000, size_us * 1.5 / (1 - case.load))
        if case.program == "c"
        else max(100_000, size_us * 1.5 / (1 - case.load))
    )
    words = [
        "--kind",
        case.kind,
        "--work-us",
        str(work_us),
        "--period-us",
        str(round(period_us)),
        "--messages",
        str(messages),
    ]
    words += ["--size-us", str(size_us), "--every-us", str(round(every_us)), "--seed", str(seed + 1)]
    words += ["--poisson"] if case.arrivals == "poisson" else []
    if case.program == "c":
        words += ["--transport", case.transport, "--stages", str(case.stages)]
        words += ["--processes"] if case.processes else []
        program = [str(loop), *words]
    else:
        program = [options.python, str(HERE / "loop.py"), *words]
    chains = []
    for off in ([], ["--off"]):
        recording = folder / "run.mcap"
        run([options.taut, "record", "-o", str(recording), "--", *program, *off])
        explain = options.explain.split() or [options.taut, "explain"]
        explained = run([*explain, str(recording), "--without", case.without, "--all", "--format", "json"])
        chains.append(max(json.loads(explained)["chains"], key=lambda chain: chain["messages"]))
        recording.unlink()
    on, off = chains
    found = next(w for w in on["what_if"] if w["without"] == case.without)
    measured = sorted(message["total_ns"] for message in off["all"])
    shares = {share["cause"]: share["tail_share"] for share in on["by_cause"]}
    predictions = []
    for predicted in found["quantiles"]:
        truth = measured[math.ceil(predicted["quantile"] * len(measured)) - 1]
        predictions.append({**predicted, "measured_ns": truth})
    word = case.without.split(":")[0]
    return {
        "name": case.name,
        "kind": case.kind,
        "messages": len(on["all"]),
        "root_cause": max(shares, key=lambda cause: shares[cause], default="-"),
        "share": shares.get(word, 0.0),
        "is_right": max(shares, key=lambda cause: shares[cause], default="-") == word,
        "queued": shares.get("queued", 0.0),
        "predictions": predictions,
    }


def is_near(predicted: dict) -> bool:
    error = abs(predicted["after_ns"] - predicted["measured_ns"])
    return error <= max(LIMIT_RATIO * predicted["measured_ns"], LIMIT_NS)


def is_covered(predicted: dict) -> bool:
    return predicted["low_ns"] <= predicted["measured_ns"] <= predicted["high_ns"]


def line(result: dict) -> str:
    parts = [
        f"p{100 * p['quantile']:.0f} {p['before_ns'] / 1e6:.3f} → {p['after_ns'] / 1e6:.3f} "
        f"[{p['low_ns'] / 1e6:.3f}, {p['high_ns'] / 1e6:.3f}], measured {p['measured_ns'] / 1e6:.3f} {'ok' if is_near(p) else 'OFF'}"
        for p in result["predictions"]
    ]
    return (
        f"{result['name']}: {result['root_cause']} {100 * result['share']:.0f} %, queued {100 * result['queued']:.0f} %; "
        + "; ".join(parts)
    )


def page(results: list[dict]) -> str:
    out = "# Open loops: root causes and predictions\n\n"
    out += "Written by `bench/causes/open.py`. Each case is one recording with the cause and one without it, on the same machine; times in ms.\n\n"
    right = sum(result["is_right"] for result in results)
    out += f"Root cause right in {right} of {len(results)} cases.\n\n"
    out += "| quantile | within 15 % or 50 µs of the run without | in the interval |\n|---|--:|--:|\n"
    for quantile in QUANTILES:
        of = [p for result in results for p in result["predictions"] if p["quantile"] == quantile]
        near, covered = sum(map(is_near, of)), sum(map(is_covered, of))
        out += f"| p{100 * quantile:.0f} | {near} of {len(of)} | {covered} of {len(of)} |\n"
    out += "\n| case | root cause | its share | queued | p99 with | predicted | interval | measured without |\n|---|---|--:|--:|--:|--:|--:|--:|\n"
    for result in results:
        p = result["predictions"][-1]
        ms = {key: f"{p[key] / 1e6:.3f}" for key in ("before_ns", "after_ns", "low_ns", "high_ns", "measured_ns")}
        mark = "" if is_near(p) else " **off**"
        out += (
            f"| {result['name']} | {result['root_cause']} | {100 * result['share']:.0f} % | {100 * result['queued']:.0f} % | {ms['before_ns']} "
            f"| {ms['after_ns']} | {ms['low_ns']} – {ms['high_ns']} | {ms['measured_ns']}{mark} |\n"
        )
    return out


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
