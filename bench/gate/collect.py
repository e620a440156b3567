"""Runs pairs of trials under the background load; one JSON line a pair, so that a collection can be cut and gone on with."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from plan import KINDS, Pair, pairs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = str(ROOT / ".venv/bin/python")
SECONDS = {"native": 1.5, "teleop": 3.0}
"""Length of a trial: 1500 and 450 messages."""
POINTS = {"native": 8, "teleop": 12}
TRIAL_TIMEOUT_S = 60.0


class Collection:
    """The file of trials, and the tools that make them."""

    def __init__(self, data: Path, taut: str, seed: int) -> None:
        self.data, self.taut, self.seed = data, taut, seed
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples"
        self.loop, self.trial, self.replay = target / "gate_loop", target / "gate_trial", target / "gate_replay"
        self.recording = data.with_suffix(".mcap")

    def build(self) -> None:
        for package, example in (
            ("taut-stamp", "gate_loop"),
            ("taut-gate", "gate_trial"),
            ("taut-gate", "gate_replay"),
        ):
            command = ["cargo", "build", "--release", "--quiet", "--locked", "-p", package, "--example", example]
            subprocess.run(command, cwd=ROOT, check=True)

    def run(self, minutes: float) -> None:
        """Collects until the time is over; what the file has already is not run again."""
        done = {line["number"] for line in lines(self.data)}
        text = self.data.read_text() if self.data.exists() else ""
        if text and not text.endswith("\n"):
            # Cut in the middle of a line: what follows begins a new one.
            with self.data.open("a") as file:
                file.write("\n")
        until = time.monotonic() + 60 * minutes
        with background(self.seed + len(done), self.data.with_suffix(".background.jsonl")):
            for pair in pairs(self.seed):
                if pair.number in done:
                    continue
                if time.monotonic() > until:
                    return
                line = self.pair(pair)
                with self.data.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                say(pair, line, until)

    def pair(self, pair: Pair) -> dict:
        began = time.monotonic()
        sides = {side: self.one(pair, side) for side in ("ba" if pair.b_first else "ab")}
        line = {"number": pair.number, "system": pair.system, "kind": pair.kind, "seed": pair.seed}
        line |= {"b_first": pair.b_first, "at": began, "seconds": round(time.monotonic() - began, 3)}
        return line | {"a": sides["a"], "b": sides["b"]}

    def one(self, pair: Pair, side: str) -> dict:
        """Records and measures one trial; one that fails says why instead."""
        command = [self.loop] if pair.system == "native" else [PYTHON, HERE / "teleop.py"]
        command += ["--seconds", SECONDS[pair.system], "--seed", pair.seed]
        command += KINDS[pair.kind] if side == "b" else []
        cpu = max(os.sched_getaffinity(0))
        if pair.kind == "hog":
            command = ["taskset", "-c", cpu, *command]
        record = [self.taut, "record", "--quiet", "--probe", "-o", self.recording, "--", *command]
        began = time.monotonic()
        with hog(cpu) if pair.kind == "hog" and side == "b" else contextlib.nullcontext():
            failed = run(record)
        recorded = time.monotonic()
        if failed:
            return {"void": failed}
        measured = subprocess.run([self.trial, self.recording], capture_output=True, text=True)
        if measured.returncode:
            return {"void": measured.stderr.strip()}
        result = json.loads(measured.stdout)
        if len(result["trial"]["points"]) != POINTS[pair.system]:
            return {"void": f"no message went all the way: {' → '.join(result['trial']['points'])}"}
        took = {"record_s": round(recorded - began, 3), "analyse_s": round(time.monotonic() - recorded, 3)}
        return took | result


def lines(data: Path) -> list[dict]:
    """The pairs of a file; a last line that was cut is left out."""
    read: list[dict] = []
    with contextlib.suppress(FileNotFoundError), data.open() as file:
        for line in file:
            with contextlib.suppress(json.JSONDecodeError):
                read.append(json.loads(line))
    return read


def run(command: list) -> str:
    """Why it failed, or nothing."""
    words = [*map(str, command)]
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    ) as child:
        try:
            _, talk = child.communicate(timeout=TRIAL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return f"took over {TRIAL_TIMEOUT_S:.0f} s"
    return "" if child.returncode == 0 else f"exit {child.returncode}: {talk.strip()[-300:]}"


@contextlib.contextmanager
def background(seed: int, log: Path) -> Iterator[None]:
    load = subprocess.Popen([sys.executable, HERE / "background.py", str(seed), log], cwd=log.parent)
    try:
        yield
    finally:
        load.terminate()
        load.wait()


@contextlib.contextmanager
def hog(cpu: int) -> Iterator[None]:
    spins = subprocess.Popen(
        [sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
    )
    try:
        yield
    finally:
        spins.kill()
        spins.wait()


def say(pair: Pair, line: dict, until: float) -> None:
    left = max(0.0, until - time.monotonic()) / 60
    void = " · ".join(f"{side}: {line[side]['void']}" for side in "ab" if "void" in line[side])
    text = f"pair {pair.number}: {pair.system}, {pair.kind}, {line['seconds']:.1f} s; {left:.1f} min left"
    if void:
        print(f"{text}; VOID {void}", file=sys.stderr)
    elif sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif pair.number % 20 == 0:
        print(text, file=sys.stderr)
