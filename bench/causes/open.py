#!/usr/bin/env python3
"""Open loops: messages come whether or not the last one is done, so they queue. Each case is recorded with a cause put in
and without it; the explanation must name the cause, and what it predicts without the cause is held against the run without.

The loop writes down when each message was due and how long it kept the threads by itself. Run through again by `replayed`, that log says
what the run without the cause is like, and how much of the tail the cause made, without any recording. Where the run without it is
not like that, the machine did something else meanwhile: the case is repeated, and is invalid in the end.

Needs root, a C++20 compiler and what `make setup` leaves in .venv. Writes docs/proof/predictions.md with --page,
bench/causes/results-predictions.md with --figures."""

import argparse
import contextlib
import itertools
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections import deque
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from causes_page import machine
from stage import own_cgroup, set_apart, without_realtime_limit

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "open"
QUANTILES = (0.5, 0.95, 0.99)
LIMIT_RATIO, LIMIT_NS = 0.15, 50_000
RIGHT_MIN = 0.98
COVERED = (0.90, 0.99)
# Of the tail's excess: from here on the cause is what made it; up to the other it is the load. Between them both answers are right.
MADE_BY_CAUSE, MADE_BY_LOAD = 0.6, 0.4
ATTEMPTS = 2
# What a message needs is measured first, at this load.
CALIBRATED_AT, CALIBRATED_BY = 0.2, 300


@dataclass(frozen=True)
class Case:
    program: str
    kind: str
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

    @property
    def is_slow(self) -> bool:
        return self.program in ("asyncio", "python")


@dataclass(frozen=True)
class Logged:
    """A message, as the loop itself wrote it down."""

    due_ns: int
    taken_ns: int
    done_ns: int
    usual_ns: int
    # What was put in, as far as the loop knows it: logs of before 27 November 2026 have none.
    put_in_ns: int = 0

    @property
    def total_ns(self) -> int:
        return self.done_ns - self.due_ns


# Of each kind: the words that together must be the largest cause, and what is predicted without; None: nothing is. The cause of
# a hand-over is what the thread that wakes did; who is woken while a hog has the CPU waits to run; and too much load has no
# remedy that a run could show.
KINDS = {
    "lock": (("lock",), "lock:cfg_lock"),
    "pi_lock": (("lock",), "lock:cfg_lock"),
    "work": (("cpu",), "cpu"),
    "sleep": (("sleep",), "sleep"),
    "preempted": (("preempted", "wakeup"), "thread:hog"),
    "own_priority": (("preempted", "wakeup"), "thread:hog"),
    "quota": (("throttled",), "throttled"),
    "gil": (("gil",), "gil"),
    "semaphore": (("cpu",), "cpu"),
    "atomic_wait": (("cpu",), "cpu"),
    "condition": (("cpu",), "cpu"),
    "condvar": (("cpu",), "cpu"),
    "mpsc": (("cpu",), "cpu"),
    "queue": (("cpu",), "cpu"),
    "overload": (("queued",), None),
}
# In one interpreter a helper that computes keeps the source from the GIL, too.
IN_PYTHON = {kind: (("cpu", "gil"), "thread:helper") for kind in ("condition", "queue")}
# The loop itself does not know when these had its CPU or the GIL.
NOT_LOGGED = ("preempted", "own_priority", "quota", "gil")
LOADS = (0.2, 0.5, 0.8, 0.95)


def cases() -> list[Case]:
    """Round by round, so that the first ones are of every kind."""
    places = [
        ("pipe", 1, False),
        ("socket", 1, True),
        ("shm", 3, False),
        ("shm", 1, True),
        ("pipe", 3, True),
        ("socket", 3, False),
    ]
    found = []
    for number, (load, arrivals) in enumerate(
        (load, arrivals) for arrivals in ("poisson", "periodic") for load in LOADS
    ):
        for at, kind in enumerate(("lock", "pi_lock", "preempted", "own_priority", "work", "sleep", "quota")):
            found.append(Case("c++", kind, load, arrivals, *places[(number + at) % len(places)]))
        for kind in ("semaphore", "atomic_wait", "condition"):
            found.append(Case("c++", kind, load, arrivals))
        for kind in ("condvar", "mpsc", "lock"):
            found.append(Case("rust", kind, load, arrivals, "channel"))
        # What the interpreter and asyncio do for a message comes on top.
        for kind in ("sleep", "work", "gil"):
            found.append(Case("asyncio", kind, round(load * 0.75, 2), arrivals, "socket"))
        for kind in ("condition", "queue", "lock"):
            found.append(Case("python", kind, round(load * 0.75, 2), arrivals, "threads"))
        if number < 2:
            found.append(Case("c++", "overload", (1.1, 1.3)[number], arrivals))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that hold this word")
    parser.add_argument("--from", dest="first", type=int, default=0, help="of these cases, number of the first")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--every", type=int, default=1, help="of the cases, each one of so many")
    parser.add_argument("--results", type=Path, help="append the results here, a JSON line a case")
    parser.add_argument("--page", type=Path, help="write what --results holds as a page here, and record nothing")
    parser.add_argument("--figures", type=Path, help="with --page: write all figures of --results here")
    parser.add_argument("--beside", default="nothing else", help="with --page: what the machine did meanwhile")
    parser.add_argument("--made-by", default="", help="with --page: the options of the run that made the results")
    parser.add_argument("--keep", type=Path, help="keep the recordings here; those that are here are explained again")
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    parser.add_argument("--explain", default="", help="a command instead of `taut explain`")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"))
    parser.add_argument("--seconds", type=float, default=5.0, help="of a recording")
    parser.add_argument("--priority", type=int, default=10, help="of the loop (SCHED_FIFO); 0: none")
    options = parser.parse_args()
    if options.page:
        results = [json.loads(line) for line in options.results.read_text().splitlines()]
        command = "bench/causes/open.py" + "".join(f" {word}" for word in options.made_by.split())
        made_by = f"Made by `{command}` on {date.today()}: {machine()}, beside {options.beside}."
        options.page.write_text(page(results, made_by))
        if options.figures:
            options.figures.write_text(figures(results, f"Made by `{command}` on {date.today()}."))
        return
    # What was set up is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    if os.geteuid() != 0:
        parser.error("needs root: real-time priority and the full tier")
    numbered = [(number, case) for number, case in enumerate(cases()) if options.only in case.name][:: options.every]
    chosen = numbered[options.first : options.first + options.count]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
        cgroup = stack.enter_context(own_cgroup())
        stack.enter_context(without_realtime_limit())
        bench = Bench(options, folder, build(folder, options), cgroup, {})
        for number, case in chosen:
            if case.kind == "quota" and cgroup is None:
                print(f"{case.name}: no cgroup with a CPU quota may be made", flush=True)
                continue
            result = bench.measure(case, number)
            print(line(result), flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(result) + "\n")


def build(folder: Path, options: argparse.Namespace) -> dict[str, list[str]]:
    """The command of each language."""
    loop = folder / "loop"
    compiler = [
        "c++",
        "-std=c++20",
        "-O2",
        f"-I{ROOT / 'include'}",
        str(HERE / "loop.cpp"),
        "-o",
        str(loop),
        "-lpthread",
    ]
    subprocess.run(compiler, check=True)
    cargo = ["cargo", "build", "--quiet", "--locked", "-p", "taut-stamp", "--example", "open_loop"]
    subprocess.run(cargo, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    python = [options.python, str(HERE / "loop.py")]
    return {
        "c++": [str(loop)],
        "rust": [str(target / "debug/examples/open_loop")],
        "asyncio": python,
        "python": [*python, "--threads"],
    }


@dataclass
class Bench:
    """What all cases share."""

    options: argparse.Namespace
    folder: Path
    programs: dict[str, list[str]]
    cgroup: Path | None
    # By what it depends on: how long a message keeps the threads, µs.
    needs: dict[tuple, float]

    def measure(self, case: Case, seed: int) -> dict:
        """The best of several attempts: one that is valid counts for predictions though its tail is not known."""
        best = None
        for attempt in range(1, ATTEMPTS + 1):
            result = self.attempt(case, seed, attempt)
            worth = (result["is_valid"], result["is_tail_known"])
            if best is None or worth > (best["is_valid"], best["is_tail_known"]):
                best = result
            if all(worth):
                break
        return best

    def attempt(self, case: Case, seed: int, attempt: int) -> dict:
        words_right, without = (case.program == "python" and IN_PYTHON.get(case.kind)) or KINDS[case.kind]
        command = self.command(case, seed, self.needed_us(case) / case.load)
        on, log = self.explained(case, command, without, f"on {attempt}")
        predictions, is_valid, is_tail_known, made = [], True, True, 1.0
        if without:
            off, log_off = self.explained(case, [*command, "--off"], None, f"off {attempt}")
            replay = replayed(log, case.stages)
            made = made_by_cause(log, replay)
            is_tail_known = knows_tail(log, log_off, case)
            found = next(w for w in on["predictions"] if w["without"] == without)
            # Of messages that were not done in time nothing is predicted; their root cause counts all the same.
            for found_at in found["quantiles"]:
                low_ns, high_ns = found_at["interval"]
                measured_ns = at(found_at["quantile"], [message["total_ns"] for message in off["all"]])
                replayed_ns = at(found_at["quantile"], replay)
                is_valid &= is_within(replayed_ns, at(found_at["quantile"], [m.total_ns for m in log_off]))
                predictions.append(
                    {
                        **found_at,
                        "low_ns": low_ns,
                        "high_ns": high_ns,
                        "measured_ns": measured_ns,
                        "replayed_ns": replayed_ns,
                    }
                )
        shares = {share["cause"]: share["tail_share"] for share in on["by_cause"]}
        share = sum(shares.pop(word, 0.0) for word in words_right)
        other = max(shares, key=lambda cause: shares[cause], default="-")
        is_named = share > shares.get(other, 0.0)
        is_load = without is not None and other == "queued" and not is_named
        return {
            "name": case.name,
            "program": case.program,
            "kind": case.kind,
            "messages": len(on["all"]),
            "root_cause": " or ".join(words_right) if is_named else other,
            "share": share,
            "made_by_cause": made,
            "is_right": (is_named and made >= MADE_BY_LOAD) or (is_load and made <= MADE_BY_CAUSE),
            "queued": shares.get("queued", 0.0),
            "predictions": predictions,
            "is_valid": is_valid,
            "is_tail_known": is_tail_known,
            "attempts": attempt,
        }

    def needed_us(self, case: Case) -> float:
        """How long a message keeps the threads when nothing is put in: what it computes, and all that comes with it."""
        way = case.kind if KINDS[case.kind][0] == ("cpu",) and case.kind != "work" else ""
        key = (case.program, way, case.transport, case.stages, case.processes)
        if key not in self.needs:
            work_us = 300 if case.is_slow else 200
            log = self.folder / "calibrated.log"
            words = ["--off", "--messages", str(CALIBRATED_BY), "--log", str(log)]
            command = self.command(case, 1, work_us / CALIBRATED_AT)
            recording = self.folder / "calibrated.mcap"
            self.record(recording, [*command, *words])
            recording.unlink()
            self.needs[key] = statistics.median(message.usual_ns for message in read_log(log)) / 1e3
        return self.needs[key]

    def command(self, case: Case, seed: int, period_us: float) -> list[str]:
        work_us = 300 if case.is_slow else 200
        size_us, every_us = strikes(case)
        words = {
            "kind": case.kind,
            "work-us": work_us,
            "period-us": round(period_us),
            "messages": int(self.options.seconds * 1e6 / period_us),
            "size-us": size_us,
            "every-us": round(every_us),
            "seed": seed + 1,
            # A quota is of threads without a real-time priority.
            "priority": 0 if case.kind == "quota" else self.options.priority,
        }
        if case.program == "c++":
            words |= {"transport": case.transport, "stages": case.stages}
        if case.kind == "quota":
            # What the loop needs, the thread that uses it up, and no more: of 100 ms.
            (self.cgroup / "cpu.cfs_quota_us").write_text(str(round(100_000 * case.load + 40_000)))
            words |= {"cgroup": self.cgroup / "cgroup.procs"}
        command = [
            *self.programs[case.program],
            *(str(word) for pair in words.items() for word in (f"--{pair[0]}", pair[1])),
        ]
        return command + ["--poisson"] * (case.arrivals == "poisson") + ["--processes"] * case.processes

    def record(self, recording: Path, command: list[str]) -> None:
        run([self.options.taut, "record", "-q", "-o", str(recording), "--", *command], preexec_fn=set_apart)

    def explained(self, case: Case, command: list[str], without: str | None, side: str) -> tuple[dict, list[Logged]]:
        """The chain of one recording, and the loop's own log; a recording that was kept is explained anew."""
        options = self.options
        recording = (options.keep or self.folder) / f"{case.name} {side}.mcap".replace("/", "-")
        log = recording.with_suffix(".log")
        if not (options.keep and log.exists()):
            self.record(recording, [*command, "--log", str(log)])
        explain = options.explain.split() or [options.taut, "explain"]
        asked = ["--without", without] if without else []
        chains = json.loads(run([*explain, str(recording), *asked, "--all", "--format", "json"]))["chains"]
        logged = read_log(log)
        if not options.keep:
            recording.unlink()
        return max(chains, key=lambda chain: chain["messages"]), logged


def strikes(case: Case) -> tuple[int, float]:
    """How long what is put in lasts, and its mean distance, µs."""
    if case.kind == "quota":
        return 60_000, 400_000
    size_us, every_us = (15_000, 100_000) if case.is_slow else (6000, 46_000)
    # Two are at least half the mean distance apart: twice as long as a strike and the queue behind it last.
    return size_us, max(every_us, size_us * 4 / max(1 - case.load, 0.05))


def read_log(path: Path) -> list[Logged]:
    return [Logged(*map(int, line.split())) for line in path.read_text().splitlines()]


def replayed(log: list[Logged], stages: int, with_cause: bool = False) -> list[int]:
    """The messages' totals if each kept the threads for only as long as it does by itself, or by itself and by what was put in. The stages are on one CPU, at one real-time
    priority: a stage goes on while it has messages, and the one that could run first comes next."""
    # What comes on top where a message finds all idle: the way to the CPU, less what the thread's clock counts between messages.
    idle = [
        message.total_ns - message.usual_ns
        for before, message in itertools.pairwise(log)
        if before.done_ns < message.due_ns
    ]
    wake_ns = int(statistics.median(idle)) if idle else 0
    arrivals = [message.due_ns + wake_ns for message in log]
    boxes: list[deque[int]] = [deque() for _ in range(stages)]
    ready: deque[int] = deque()
    totals = [0] * len(log)
    now = came = 0

    def hand(stage: int, number: int, running: int) -> None:
        boxes[stage].append(number)
        if stage != running and stage not in ready:
            ready.append(stage)

    while came < len(log) or ready:
        if not ready:
            now = max(now, arrivals[came])
        running = ready.popleft() if ready else 0
        while True:
            while came < len(log) and arrivals[came] <= now:
                hand(0, came, running)
                came += 1
            if not boxes[running]:
                break
            number = boxes[running].popleft()
            now += log[number].usual_ns // stages
            if running + 1 < stages:
                hand(running + 1, number, running)
            else:
                now += log[number].put_in_ns * with_cause
                totals[number] = now - log[number].due_ns
    return totals


def knows_tail(log: list[Logged], log_off: list[Logged], case: Case) -> bool:
    """Whether the tails of both runs are what the log makes of the load and of what was put in. Else other programs made a part of
    them, and no answer is known."""

    def agree(logged: list[Logged], replay: list[int]) -> bool:
        return is_within(at(0.99, replay), at(0.99, [message.total_ns for message in logged]))

    without = agree(log_off, replayed(log, case.stages))
    return without and (case.kind in NOT_LOGGED or agree(log, replayed(log, case.stages, with_cause=True)))


def made_by_cause(log: list[Logged], replay: list[int]) -> float:
    """How much of the tail's excess over the typical message is gone in the replay."""
    totals = [message.total_ns for message in log]
    limit_ns, typical_ns = at(0.99, totals), at(0.5, replay)
    tail = [(total, without) for total, without in zip(totals, replay, strict=True) if total >= limit_ns]
    excess_ns = sum(max(total - typical_ns, 0) for total, _ in tail)
    gone_ns = sum(max(total - max(without, typical_ns), 0) for total, without in tail)
    return gone_ns / max(excess_ns, 1)


def at(quantile: float, values: list[int]) -> int:
    return sorted(values)[math.ceil(quantile * len(values)) - 1]


def is_within(value_ns: float, truth_ns: float) -> bool:
    return abs(value_ns - truth_ns) <= max(LIMIT_RATIO * truth_ns, LIMIT_NS)


def is_near(predicted: dict) -> bool:
    return is_within(predicted["after_ns"], predicted["measured_ns"])


def is_covered(predicted: dict) -> bool:
    return predicted["low_ns"] <= predicted["measured_ns"] <= predicted["high_ns"]


def line(result: dict) -> str:
    parts = [
        f"p{100 * p['quantile']:.0f} {p['before_ns'] / 1e6:.3f} → {p['after_ns'] / 1e6:.3f} "
        f"[{p['low_ns'] / 1e6:.3f}, {p['high_ns'] / 1e6:.3f}], measured {p['measured_ns'] / 1e6:.3f}, by its log "
        f"{p['replayed_ns'] / 1e6:.3f} {'ok' if is_near(p) else 'OFF'}"
        for p in result["predictions"]
    ]
    return (
        f"{result['name']}: {'' if result['is_valid'] else 'INVALID '}{'' if result['is_right'] else 'WRONG '}{'' if result['is_tail_known'] else 'TAIL UNKNOWN '}"
        f"{result['root_cause']} {100 * result['share']:.0f} % of {100 * result['made_by_cause']:.0f} %, queued {100 * result['queued']:.0f} %; "
        + "; ".join(parts)
    )


def valid(measured: list[dict]) -> tuple[list[dict], list[dict]]:
    """All cases and those that are valid: of a case that was measured again the last result counts."""
    measured = list({result["name"]: result for result in measured}.values())
    return measured, [result for result in measured if result["is_valid"]]


def known(results: list[dict]) -> list[dict]:
    """Rows with a tail that the log explains. Results from before this check are not known."""
    return [result for result in results if result.get("is_tail_known", False)]


def rights(results: list[dict]) -> tuple[int, int]:
    """How many root causes are right, of how many that count."""
    return sum(result["is_right"] for result in known(results)), len(known(results))


def page(measured: list[dict], made_by: str) -> str:
    """What holds and what was missed."""
    measured, results = valid(measured)
    predictions = [p for result in results for p in result["predictions"]]
    right, counted = rights(results)
    near, covered = sum(map(is_near, predictions)), sum(map(is_covered, predictions))
    is_right = counted > 0 and right >= RIGHT_MIN * counted
    is_met = bool(predictions) and near == len(predictions)
    is_honest = COVERED[0] <= covered / max(len(predictions), 1) <= COVERED[1]
    out = "# Predictions where messages queue\n\n"
    out += "Where messages queue: is the root cause right, and is the latency without it predicted as it is then measured?\n"
    out += "All figures: [results](../../bench/causes/results-predictions.md).\n\n"
    out += f"{wrapped(made_by)}\n## Limits\n\n"
    out += "| | measured | limit |\n|---|--:|---|\n"
    out += f"| root cause right | {right} of {counted} | ≥ {100 * RIGHT_MIN:.0f} %: {verdict(is_right)} |\n"
    out += (
        f"| predicted p50, p95, p99 within {100 * LIMIT_RATIO:.0f} % or {LIMIT_NS / 1e3:.0f} µs of the run without | "
    )
    out += f"{near} of {len(predictions)} | all: {verdict(is_met)} |\n"
    out += f"| that run's quantile is in the 95 % interval | {covered} of {len(predictions)} | "
    out += f"{100 * COVERED[0]:.0f} to {100 * COVERED[1]:.0f} %: {verdict(is_honest)} |\n\n"
    out += "| load | root cause right | predictions within the limit | in the interval |\n|---|--:|--:|--:|\n"
    for low, high in ((0, 0.3), (0.3, 0.55), (0.55, 0.9), (0.9, 9)):
        of_load = [result for result in results if low <= load(result) < high]
        if not of_load:
            continue
        of = [p for result in of_load for p in result["predictions"]]
        right, counted = rights(of_load)
        loads = sorted({load(result) for result in of_load})
        out += f"| {loads[0]} to {loads[-1]} | {right} of {counted} | {sum(map(is_near, of))} of {len(of)} | "
        out += f"{sum(map(is_covered, of))} of {len(of)} |\n"
    out += f"\n{len(measured) - len(results)} of {len(measured)} cases were left out, since the loop's own log did not explain the run without the cause\n"
    out += "([how](../../bench/causes/results-predictions.md#how)).\n"
    return out


def figures(measured: list[dict], made_by: str) -> str:
    """All of it."""
    measured, results = valid(measured)
    predictions = [p for result in results for p in result["predictions"]]
    out = "# Predictions where messages queue: results\n\n"
    out += f"{made_by} Do not edit.\n[The page](../../docs/proof/predictions.md) has the limits.\n\n"
    out += "| program, kind | cases | root cause right | predictions | within the limit | in the interval |\n|---|--:|--:|--:|--:|--:|\n"
    for program, kind in dict.fromkeys((result["program"], result["kind"]) for result in results):
        of_kind = [result for result in results if (result["program"], result["kind"]) == (program, kind)]
        of = [p for result in of_kind for p in result["predictions"]]
        right, counted = rights(of_kind)
        out += f"| {program}, {kind} | {len(of_kind)} | {right} of {counted} | {len(of)} | {sum(map(is_near, of))} | {sum(map(is_covered, of))} |\n"
    out += "\n| quantile | within the limit | in the interval |\n|---|--:|--:|\n"
    for quantile in QUANTILES:
        of = [p for p in predictions if p["quantile"] == quantile]
        near, covered = sum(map(is_near, of)), sum(map(is_covered, of))
        out += f"| p{100 * quantile:.0f} | {near} of {len(of)} | {covered} of {len(of)} |\n"
    out += "\nEach case at the highest quantile that it carries; times are in ms, and **off** is outside the limit:\n\n"
    out += "| case | root cause | its share | queued | quantile | with | predicted | interval | measured without | by the log |\n"
    out += "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    for result in results:
        cause = result["root_cause"] if result["is_right"] else f"**{result['root_cause']}**"
        cause = cause if known([result]) else "not known"
        head = f"| {result['name']} | {cause} | {100 * result['share']:.0f} % | {100 * result['queued']:.0f} % "
        if not result["predictions"]:
            out += head + "| | | | | | |\n"
            continue
        p = result["predictions"][-1]
        keys = ("before_ns", "after_ns", "low_ns", "high_ns", "measured_ns", "replayed_ns")
        ms = {key: f"{p[key] / 1e6:.3f}" for key in keys}
        mark = "" if is_near(p) else " **off**"
        out += (
            head
            + f"| p{100 * p['quantile']:.0f} | {ms['before_ns']} | {ms['after_ns']} | {ms['low_ns']} – {ms['high_ns']} | {ms['measured_ns']}{mark} | {ms['replayed_ns']} |\n"
        )
    out += "\n## How\n\n"
    out += "A case is one recording with the cause and one without it; both send at the same times. Load: the time that a message occupies\n"
    out += "its threads over the mean period.\n\n"
    out += "The loop logs what each message needs by itself. A replay of that log without the cause must agree with the run without it; else the\n"
    out += f"case is repeated and then left out: {len(measured) - len(results)} of {len(measured)} cases.\n"
    out += f"By the same log it is known how much of the tail the cause made: where that is less than {100 * MADE_BY_LOAD:.0f} % the load is the right root\n"
    out += f"cause, and above {100 * MADE_BY_CAUSE:.0f} % the cause.\n"
    counted = rights(results)[1]
    if counted < len(results):
        out += "A root cause counts where p99 of both runs is what the log makes of the load and of what was put in:\n"
        out += f"{counted} of {len(results)} cases.\n"
    return out


def wrapped(text: str) -> str:
    return textwrap.fill(text, 140, break_long_words=False, break_on_hyphens=False) + "\n"


def load(result: dict) -> float:
    return float(result["name"].split("load ")[1].split(",")[0])


def verdict(holds: bool) -> str:
    return "holds" if holds else "**missed**"


def run(command: list[str], **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
