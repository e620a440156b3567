#!/usr/bin/env python3
"""Programs of other people, as they come, and a cause that is put in from outside while they are recorded: a SCHED_FIFO hog, a CPU
quota, a competitor of a program that chrt made idle, a file lock that another process holds, a pipe that is not read. The top cause of
each program's late activations must be that cause, and where another process is behind it, it must be named.

Needs root and what `make setup` leaves in .venv; redis-server, mosquitto, mosquitto-clients, jackd2, rt-tests from Debian. Writes
docs/proof/foreign.md with --page, bench/causes/results-foreign.md with --figures."""

import argparse
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from causes_page import machine, percent
from stage import CPU, OTHER_CPU, PYTHON, ROOT, own_cgroup, run, set_apart

SECONDS = 6.0
# A loop of 500 Hz with the simulator's own step; LOCKED: it appends to a file that it locks; PRINTS: it prints its state.
MUJOCO = """
import fcntl, os, sys, time, mujoco
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><body pos="0 0 1"><joint type="hinge" axis="0 1 0"/>'
    '<geom size=".1"/></body></worldbody></mujoco>')
data = mujoco.MjData(model)
log = open(sys.argv[2], 'a') if sys.argv[1] == 'locks' else None
due = time.monotonic()
while True:
    due = max(due + model.opt.timestep, time.monotonic())
    for _ in range(20):
        mujoco.mj_step(model, data)
    if log:
        fcntl.flock(log, fcntl.LOCK_EX)
        fcntl.flock(log, fcntl.LOCK_UN)
    if sys.argv[1] == 'prints':
        os.write(1, f'{data.time:12.6f} {data.qpos[0]:12.6f} {data.qvel[0]:12.6f}\\n'.encode() * 8)
    time.sleep(max(0.0, due - time.monotonic()))
"""
# The official client, 100 times a second.
MOTEUS = """
import asyncio, math, sys, time, moteus
async def run():
    bus = moteus.Transport([moteus.FdcanusbDevice(sys.argv[1], command_timeout=60, response_timeout=60)])
    servo = moteus.Controller(id=1, transport=bus)
    due = time.monotonic()
    while True:
        due = max(due + 0.01, time.monotonic())
        await bus.cycle([servo.make_position(position=0.1, watchdog_timeout=math.nan, query=True)])
        await asyncio.sleep(max(0.0, due - time.monotonic()))
asyncio.run(run())
"""
# A command that redis computes for about 0.5 ms, and answers with 400 bytes.
ASK = "eval \"for i=1,30000 do end return string.rep('x',400)\" 0"
REDIS = f"taskset -c {CPU} redis-server --port 6391 --save '' > /dev/null & sleep .5; exec redis-cli -p 6391 -i 0.005 -r 100000 {ASK}"
MOSQUITTO = (
    f"taskset -c {CPU} mosquitto -p 18831 2> /dev/null & sleep .3; taskset -c {CPU} mosquitto_sub -p 18831 -t t & "
    "exec mosquitto_pub -p 18831 -t t --repeat 100000 --repeat-delay 0.004 -m $(head -c 400 /dev/zero | tr '\\0' x)"
)
CYCLICTEST = ["cyclictest", "-q", "-N", "-a", str(CPU), "-t", "1", "-i", "2000", "-D", "20"]
JACK = ["taskset", "-c", str(CPU), "jackd", "-r", "-d", "dummy", "-r", "48000", "-p", "256"]


@dataclass(frozen=True)
class Case:
    program: str
    # The thread whose late activations are explained.
    thread: str
    cause: str
    # What it is recorded with; {pipe}, {lock} and {tty} are paths.
    command: tuple[str, ...]


# The words that together must be the largest cause, and whom the cause must name.
CAUSES = {
    "hog": (("preempted", "wakeup"), "hog_outside"),
    "quota": (("throttled",), ""),
    # Any ordinary process comes before it.
    "chrt": (("preempted", "wakeup"), ""),
    "lock": (("lock",), "holder_outside"),
    "pipe": (("io",), ""),
}
SAYS = {
    "hog": "a SCHED_FIFO process computes for 5 ms every 60 to 140 ms on its CPU",
    "quota": "its process gets half of the CPU time that it used, and 1 % of a CPU at least",
    "chrt": "it is made SCHED_IDLE, and an ordinary process computes for 12 ms every 80 to 180 ms on its CPU",
    "lock": "another process holds the file's lock for 15 ms every 60 to 140 ms",
    "pipe": "the process that reads its output pauses for 100 ms after each 900 ms",
}


def cases() -> list[Case]:
    """Program by program."""
    quiet = f"{REDIS} > /dev/null"
    pinned = ("taskset", "-c", str(CPU), PYTHON, "-c")
    found = [Case("redis", "redis-server", cause, ("bash", "-c", quiet)) for cause in ("hog", "quota", "chrt")]
    found += [Case("redis", "redis-cli", "pipe", ("bash", "-c", f"{REDIS} > {{pipe}}"))]
    found += [
        Case("mosquitto", "mosquitto", cause, ("bash", "-c", f"{{ {MOSQUITTO}; }} > /dev/null"))
        for cause in ("hog", "quota", "chrt")
    ]
    found += [Case("mosquitto", "mosquitto_sub", "pipe", ("bash", "-c", f"{{ {MOSQUITTO}; }} > {{pipe}}"))]
    found += [Case("MuJoCo", "python", cause, (*pinned, MUJOCO, "runs")) for cause in ("hog", "quota", "chrt")]
    found += [Case("MuJoCo", "python", "lock", (*pinned, MUJOCO, "locks", "{lock}"))]
    found += [Case("MuJoCo", "python", "pipe", ("bash", "-c", 'exec "$@" > {pipe}', "-", *pinned, MUJOCO, "prints"))]
    found += [Case("moteus", "python", cause, (*pinned, MOTEUS, "{tty}")) for cause in ("hog", "quota", "chrt")]
    found += [Case("cyclictest", "cyclictest", cause, tuple(CYCLICTEST)) for cause in ("hog", "quota", "chrt")]
    found += [Case("JACK", "jackd", cause, tuple(JACK)) for cause in ("hog", "chrt")]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that hold this word")
    parser.add_argument("--results", type=Path, help="append the results here, a JSON line a case")
    parser.add_argument("--page", type=Path, help="write what --results holds as a page here, and record nothing")
    parser.add_argument("--figures", type=Path, help="with --page: write all figures of --results here")
    parser.add_argument("--beside", default="nothing else", help="with --page: what the machine did meanwhile")
    parser.add_argument("--keep", type=Path, help="keep the recordings here; those that are here are explained again")
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    parser.add_argument("--explain", default="", help="a command instead of `taut explain`")
    parser.add_argument("--disturb", choices=DISTURBERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.disturb:
        DISTURBERS[options.disturb]()
        return
    if options.page:
        results = [json.loads(line) for line in options.results.read_text().splitlines()]
        options.page.write_text(page(results, options.beside))
        if options.figures:
            options.figures.write_text(figures(results))
        return
    if os.geteuid() != 0:
        parser.error("needs root: real-time priority, cgroups and the full tier")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    # What else runs on this machine is no known cause: a session of its own, in which programs and disturbers are alike.
    if pid := os.fork():
        # It is in another session, which the terminal's signals do not reach.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: os.kill(pid, signal.SIGTERM))
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    # What was set up is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    set_apart()
    for case in cases():
        if options.only not in f"{case.program} {case.thread} {case.cause}":
            continue
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            result = measure(case, folder, options, stack)
        print(line(result), flush=True)
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(result) + "\n")


def measure(case: Case, folder: Path, options: argparse.Namespace, stack: contextlib.ExitStack) -> dict:
    recording = (options.keep or folder) / f"{case.program}-{case.thread}-{case.cause}.mcap"
    if not recording.exists():
        record(case, recording, folder, options, stack)
    explain = options.explain.split() or [options.taut, "explain"]
    chains = json.loads(run([*explain, str(recording), "--format", "json"]))["chains"]
    own = [chain for chain in chains if chain["name"].split(" ")[0] == case.thread and "→" not in chain["name"]]
    words, party = CAUSES[case.cause]
    if not own:
        return {"program": case.program, "thread": case.thread, "cause": case.cause, "loop": "", "is_right": False}
    loop = max(own, key=lambda chain: chain["messages"])
    shares = {share["cause"]: share["tail_share"] for share in loop["by_cause"]}
    share = sum(shares.get(word, 0.0) for word in words)
    top = max(shares, key=lambda cause: shares[cause], default="-")
    is_named = top in words or share > max((of for cause, of in shares.items() if cause not in words), default=0.0)
    # Whatever else the machine runs may have caused more of it.
    by = [of for of in loop["responsible"] if of["kind"] == "thread" and set(of["causes"]) & set(words)]
    by = next((of for of in by if party and of["name"].startswith(party)), by[0] if by and not party else None)
    return {
        "program": case.program,
        "thread": case.thread,
        "cause": case.cause,
        "loop": loop["name"],
        "activations": loop["messages"],
        "top": " or ".join(words) if is_named else top,
        "share": share,
        "is_right": is_named and (not party or by is not None),
        "by": by["name"] if by else "",
        "by_cause": shares,
        "p99_ms": (loop["end_to_end"]["p99_ns"] or 0) / 1e6 if "end_to_end" in loop else None,
    }


def record(case: Case, recording: Path, folder: Path, options: argparse.Namespace, stack: contextlib.ExitStack) -> None:
    """The program runs for a second or two by itself first."""
    paths = {"pipe": folder / "pipe", "lock": folder / "log"}
    paths["lock"].touch()
    os.mkfifo(paths["pipe"])
    if case.program == "moteus":
        server = stack.enter_context(served())
        paths["tty"] = server
    words = [with_paths(word, paths) for word in case.command]
    if case.cause == "pipe":
        # Before the program: who opens the pipe for writing waits for a reader.
        stack.enter_context(disturbed("pipe", paths["pipe"]))
    elif case.cause != "quota":
        # It begins when the program has run for a while.
        stack.enter_context(disturbed(case.cause, paths["lock"]))
    command = [
        options.taut,
        "record",
        "-q",
        "--ignore-loss",
        "--duration",
        str(SECONDS),
        "-o",
        str(recording),
        "--",
        *words,
    ]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    mine: list[int] = []
    until = time.monotonic() + 10
    while not mine and time.monotonic() < until:
        time.sleep(0.2)
        mine = [pid for pid in below(recorder.pid) if comm(pid) == case.thread]
    if not mine:
        recorder.terminate()
        raise SystemExit(f"{case.program}: no process {case.thread}")
    time.sleep(1)
    match case.cause:
        case "chrt":
            for pid in mine:
                subprocess.run(["chrt", "--all-tasks", "--idle", "--pid", "0", str(pid)], check=True)
        case "quota":
            cgroup = stack.enter_context(own_cgroup())
            if cgroup is None:
                raise SystemExit("no cgroup with a CPU quota may be made")
            used = sum(cpu_s(pid) for pid in mine)
            time.sleep(1)
            # Of 100 ms: half of what it needs.
            quota_us = max((sum(cpu_s(pid) for pid in mine) - used) * 1e5 / 2, 1000)
            (cgroup / "cpu.cfs_quota_us").write_text(str(round(quota_us)))
            for pid in mine:
                (cgroup / "cgroup.procs").write_text(str(pid))
    said = recorder.communicate()[1]
    # What --duration ends ends by a signal.
    if not recording.exists():
        raise SystemExit(f"{' '.join(command)}: {said}")


def with_paths(word: str, paths: dict[str, object]) -> str:
    for name, path in paths.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


def below(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    # Some end meanwhile.
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += below(int(child))
    return found


def comm(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def cpu_s(pid: int) -> float:
    """CPU time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def served() -> Iterator[str]:
    """A bus with one servo, of taut's simulator: the path that a client opens instead of an adapter."""
    words = [ROOT / ".venv/bin/taut", "bus", "sim:1", "--serve"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip().removeprefix("fdcanusb:")
        finally:
            server.send_signal(signal.SIGTERM)


@contextlib.contextmanager
def disturbed(what: str, *words: object) -> Iterator[None]:
    """Meanwhile another process does that; it is not below `taut record`."""
    command = [sys.executable, str(Path(__file__).resolve()), "--disturb", what]
    environment = os.environ | {"DISTURB": " ".join(map(str, words))}
    with subprocess.Popen(command, env=environment) as disturber:
        try:
            yield
        finally:
            disturber.kill()


def named(name: str, cpu: int) -> None:
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
    os.sched_setaffinity(0, {cpu})


def again_and_again(act: Callable[[], None], least_s: float, most_s: float) -> None:
    """With pauses between those, spread evenly by the golden ratio."""
    number = 0
    time.sleep(2)
    while True:
        number += 1
        time.sleep(least_s + (most_s - least_s) * (number * 0.618034 % 1))
        act()


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def hog() -> None:
    named("hog_outside", CPU)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    again_and_again(lambda: compute(0.005), 0.055, 0.135)


def competitor() -> None:
    named("rival_outside", CPU)
    again_and_again(lambda: compute(0.012), 0.068, 0.168)


def hold_lock() -> None:
    named("holder_outside", OTHER_CPU)
    with open(os.environ["DISTURB"], "a") as file:

        def hold() -> None:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.015)
            fcntl.flock(file, fcntl.LOCK_UN)

        again_and_again(hold, 0.045, 0.125)


def read_seldom() -> None:
    named("reader_outside", OTHER_CPU)
    pipe = os.open(os.environ["DISTURB"], os.O_RDONLY)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    while True:
        until = time.monotonic() + 0.9
        while time.monotonic() < until:
            os.read(pipe, 4096)
        time.sleep(0.1)


DISTURBERS: dict[str, Callable[[], None]] = {
    "hog": hog,
    "chrt": competitor,
    "lock": hold_lock,
    "pipe": read_seldom,
}


def line(result: dict) -> str:
    if not result["loop"]:
        return f"{result['program']} {result['thread']}, {result['cause']}: WRONG no loop"
    parts = ", ".join(f"{cause} {percent(share)}" for cause, share in result["by_cause"].items())
    right = "" if result["is_right"] else "WRONG "
    return f"{result['program']} {result['thread']}, {result['cause']}: {right}{result['loop']} ({result['activations']}): {parts}"


def page(results: list[dict], beside: str) -> str:
    """What was named and what was not."""
    programs = list(dict.fromkeys(result["program"] for result in results))
    out = "# External causes in unmodified programs\n\n"
    out += "Does `taut explain` name a cause outside the program, without stamps in it?\n"
    out += f"In {sum(result['is_right'] for result in results)} of {len(results)} cases. No limit was set.\n"
    out += "All figures: [results](../../bench/causes/results-foreign.md).\n\n"
    out += f"Made by `bench/causes/foreign.py` on {date.today()}: {machine()},\nbeside {beside}.\n\n"
    out += "| program | named | not named |\n|---|--:|---|\n"
    for program in programs:
        of_it = [result for result in results if result["program"] == program]
        missed = [
            result["cause"] + ("" if result["loop"] else ": no loop found")
            for result in of_it
            if not result["is_right"]
        ]
        out += f"| {program} | {len(of_it) - len(missed)} of {len(of_it)} | {'; '.join(missed)} |\n"
    out += f"\nEach program is recorded for {SECONDS:.0f} s, and a [cause](../../bench/causes/results-foreign.md) is put in after a second or two (*pipe* from the start).\n"
    out += "MuJoCo and moteus run loops of this benchmark. Named: a right word has the largest share of the excess of the late activations, and a process\n"
    out += "behind the cause is named, too.\n"
    return out


def figures(results: list[dict]) -> str:
    """All of it."""
    out = "# External causes in unmodified programs: results\n\n"
    out += f"Made by `bench/causes/foreign.py` on {date.today()}. Do not edit.\n"
    out += "[The page](../../docs/proof/foreign.md) has what is named. *Share*: of the excess of the late activations, the part of the cause's words.\n\n"
    out += "| cause | what is done | words that are right |\n|---|---|---|\n"
    for cause, (words, party) in CAUSES.items():
        by = f", by `{party}`" if party else ""
        out += f"| {cause} | {SAYS[cause]} | {' or '.join(f'`{word}`' for word in words)}{by} |\n"
    out += "\n| program | cause | loop | activations | p99, ms | top cause | share | right |\n|---|---|---|--:|--:|---|--:|---|\n"
    for of in results:
        if not of["loop"]:
            out += f"| {of['program']} | {of['cause']} | none found | | | | | **no** |\n"
            continue
        p99 = f"{of['p99_ms']:.1f}" if of["p99_ms"] else "–"
        right = "yes" if of["is_right"] else "**no**"
        out += f"| {of['program']} | {of['cause']} | {of['loop']} | {of['activations']} | {p99} | {of['top']} | {percent(of['share'])} | {right} |\n"
    return out


if __name__ == "__main__":
    main()
