"""Runs trials in turns under the background load; one JSON line a turn, so that a collection can be cut and gone on with."""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from background import dies_with_its_parent
from plan import KINDS, PINNED, Turn, turns

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = str(ROOT / ".venv/bin/python")
SECONDS = {"native": 0.5, "teleop": 0.6}
"""Length of a trial, as `taut gate` chooses it: 125 and 30 messages."""
POINTS = {"native": 8, "teleop": 12}
SLOWED = {
    "native": "estimate.begin → estimate.end",
    "teleop": "follower.command_pre_hardware_write → follower.command_pre_lock",
}
"""The hop that the injections are in."""
TRIED_STEPS, MEASURE_S, MEASURED_RUNS = (6, 60), {"native": 2.0, "teleop": 8.0}, 3
"""Steps that every second setpoint has more, at first; how long changes are measured for, and in how many runs."""
TRIAL_TIMEOUT_S, GRACE_S = 60.0, 10.0


class Collection:
    """The file of trials, and the tools that make them."""

    def __init__(self, data: Path, taut: str, seed: int) -> None:
        self.data, self.taut, self.seed = data, taut, seed
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples"
        self.loop, self.trial, self.replay = target / "gate_loop", target / "gate_trial", target / "gate_replay"
        self.recording = data.with_suffix(".mcap")
        self.calibration = data.with_suffix(".calibration.json")

    def build(self) -> None:
        for package, example in (
            ("taut-stamp", "gate_loop"),
            ("taut-gate", "gate_trial"),
            ("taut-gate", "gate_replay"),
        ):
            command = ["cargo", "build", "--release", "--quiet", "--locked", "-p", package, "--example", example]
            subprocess.run(command, cwd=ROOT, check=True)

    def run(self, minutes: float) -> None:
        """Collects for so long, what the file has already included; that is not run again."""
        kept = lines(self.data)
        done = {line["number"] for line in kept}
        left_s = 60 * minutes - sum(line["seconds"] for line in kept)
        if self.data.exists() and not self.data.read_text().endswith("\n"):
            # Cut in the middle of a line: what follows begins a new one.
            with self.data.open("a") as file:
                file.write("\n")
        with background(self.seed + len(done), self.data.with_suffix(".background.jsonl")):
            steps = self.calibrated()
            until = time.monotonic() + left_s
            for turn in turns(self.seed):
                if turn.number in done:
                    continue
                if time.monotonic() > until:
                    break
                line = self.turn(turn, steps)
                with self.data.open("a") as file:
                    file.write(json.dumps(line, separators=(",", ":")) + "\n")
                say(turn, line, until)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        self.recording.unlink(missing_ok=True)

    def calibrated(self) -> dict[str, float]:
        """Steps of the validator that are as much more work as each kind asks for, as it is on this machine: the first steps cost more than
        later ones, so a line goes through two measurements. What the changes of both systems then come to is measured by the programs
        themselves, without taut."""
        if not self.calibration.exists():
            print("calibrating", file=sys.stderr)
            few, many = TRIED_STEPS
            of_few, of_many = (change(self.measured("teleop", ["--more", steps])) for steps in TRIED_STEPS)
            of_step = (of_many - of_few) / (many - few)
            steps = {kind: max(0.0, few + (more - of_few) / of_step) for kind, more in KINDS.items() if more}
            shares = {kind: more for kind, more in KINDS.items() if 0.0 < more < 1.0}
            native = {kind: self.measured("native", ["--slow", more]) for kind, more in shares.items()}
            teleop = {kind: self.measured("teleop", ["--more", steps[kind]]) for kind in shares}
            said = {"steps": steps, "changes": {"native": native, "teleop": teleop}}
            self.calibration.write_text(json.dumps(said))
        return json.loads(self.calibration.read_text())["steps"]

    def measured(self, system: str, words: list) -> list[dict]:
        """CPU time of the slowed hop by the program's own clock, of messages that are slowed and of those between them."""
        command = [*self.program(system), "--seconds", MEASURE_S[system], "--measure", *words]
        return [measurement(command) for _ in range(MEASURED_RUNS)]

    def program(self, system: str) -> list:
        return [self.loop] if system == "native" else [PYTHON, HERE / "teleop.py"]

    def turn(self, turn: Turn, steps: dict[str, float]) -> dict:
        began = time.monotonic()
        trials = {kind: self.of_kind(turn, kind, steps) for kind in turn.order}
        line = {"number": turn.number, "system": turn.system, "seed": turn.seed, "before": turn.before}
        line |= {"at": began, "seconds": round(time.monotonic() - began, 3)}
        return line | {"a": trials.pop(None), "b": trials}

    def of_kind(self, turn: Turn, kind: str | None, steps: dict[str, float]) -> dict:
        is_pinned = bool({turn.before, turn.after} & PINNED)
        words: list = []
        if kind and KINDS[kind]:
            words = ["--tail"] if kind == "tail" else ["--slow", KINDS[kind]]
            if turn.system == "teleop":
                words = ["--tail" if kind == "tail" else "--more", steps[kind]]
        with hog() if kind == "hog" else contextlib.nullcontext():
            return self.one(turn.system, turn.seed, words, is_pinned)

    def one(self, system: str, seed: int, words: list, is_pinned: bool) -> dict:
        """Records and measures one trial; one that fails says why instead. `seconds`: what it took of a gate's time."""
        command = [*self.program(system), "--seconds", SECONDS[system], "--seed", seed, *words]
        if is_pinned:
            command = ["taskset", "-c", pinned_cpu(), *command]
        record = [self.taut, "record", "--quiet", "--wakeup", "-o", self.recording, "--", *command]
        began = time.monotonic()
        failed = run(record)
        recorded = time.monotonic()
        took = {"record_s": round(recorded - began, 3)}
        if failed:
            return took | {"seconds": took["record_s"], "void": failed}
        measured = subprocess.run([self.trial, self.recording], capture_output=True, text=True)
        ended = time.monotonic()
        took |= {"analyse_s": round(ended - recorded, 3), "seconds": round(ended - began, 3)}
        if measured.returncode:
            return took | {"void": measured.stderr.strip()}
        result = json.loads(measured.stdout)
        if len(result["trial"]["points"]) != POINTS[system]:
            return took | {"void": f"no message went all the way: {' → '.join(result['trial']['points'])}"}
        return took | result


def lines(data: Path) -> list[dict]:
    """The turns of a file; a last line that was cut is left out."""
    read: list[dict] = []
    with contextlib.suppress(FileNotFoundError), data.open() as file:
        for line in file:
            with contextlib.suppress(json.JSONDecodeError):
                read.append(json.loads(line))
    return read


def pairs(turns: list[dict]) -> Iterator[dict]:
    """The pairs of turns, in the order that `replay.rs` has them in."""
    for turn in turns:
        for kind, b in sorted(turn["b"].items()):
            seconds = turn["a"]["seconds"] + b["seconds"]
            yield {"system": turn["system"], "kind": kind, "seconds": seconds, "a": turn["a"], "b": b}


def slowed_work_ns(side: dict, system: str) -> float | None:
    """Median work of the hop that the injections are in."""
    hops = {f"{hop['from']} → {hop['to']}": hop for hop in side.get("trial", {"hops": []})["hops"]}
    return hops[SLOWED[system]]["times"]["work"]["p50"] if SLOWED[system] in hops else None


def run(command: list) -> str:
    """Why it failed, or nothing. Whatever ends this ends the command."""
    words = [*map(str, command)]
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, process_group=0
    ) as child:
        try:
            _, talk = child.communicate(timeout=TRIAL_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            end(child)
            return f"took over {TRIAL_TIMEOUT_S:.0f} s"
        except BaseException:
            end(child)
            raise
    return "" if child.returncode == 0 else f"exit {child.returncode}: {talk.strip()[-300:]}"


def change(runs: list[dict]) -> float:
    """By which share slowed messages take longer, in the median run."""
    return statistics.median(run["slowed_ns"] / run["plain_ns"] - 1.0 for run in runs)


def measurement(command: list) -> dict:
    words = [*map(str, command)]
    result = subprocess.run(words, env=environment(), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """One in which Python keeps what it compiled: to compile the modules anew took a tenth of a trial of the teleop."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def end(child: subprocess.Popen) -> None:
    """SIGTERM first: the recorder passes it on, and puts away what it has laid out."""
    child.terminate()
    try:
        child.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


@contextlib.contextmanager
def background(seed: int, log: Path) -> Iterator[None]:
    load = subprocess.Popen([sys.executable, HERE / "background.py", str(seed), log], cwd=log.parent, process_group=0)
    try:
        yield
    finally:
        load.terminate()
        load.wait()


def pinned_cpu() -> int:
    return max(os.sched_getaffinity(0))


@contextlib.contextmanager
def hog() -> Iterator[None]:
    spins = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=on_the_pinned_cpu)
    try:
        yield
    finally:
        spins.kill()
        spins.wait()


def on_the_pinned_cpu() -> None:
    dies_with_its_parent()
    os.sched_setaffinity(0, {pinned_cpu()})


def say(turn: Turn, line: dict, until: float) -> None:
    left = max(0.0, until - time.monotonic()) / 60
    sides = {"A": line["a"], **line["b"]}
    void = "; ".join(f"{name}: {side['void']}" for name, side in sides.items() if "void" in side)
    kinds = " and ".join(line["b"])
    text = f"turn {turn.number}: {turn.system}, {kinds}, {line['seconds']:.1f} s; {left:.1f} min left"
    if void:
        print(f"{text}; VOID {void}", file=sys.stderr)
    elif sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif turn.number % 20 == 0:
        print(text, file=sys.stderr)
