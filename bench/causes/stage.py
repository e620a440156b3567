"""What the injections need around them, brought down again at the end: a peer outside, a cgroup, packet steering."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CPU, OTHER_CPU = 1, 0
PYTHON = str(ROOT / ".venv/bin/python")
REALTIME_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
STEERING = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")


@dataclass
class Stage:
    folder: Path
    cgroup: Path | None
    port: int
    taut: str
    explain: list[str]
    injectors: dict[str, list[str]]
    gap_ms: str
    # Where recordings stay, if they shall.
    keep: Path | None
    # Why a kind cannot be done on this machine.
    impossible: dict[str, str]

    def record(
        self, language: str, kinds: list[str], messages: int, seed: int, tier: str, *flags: str
    ) -> tuple[list[dict], dict]:
        """Records one run; its truth and its explanation. A recording that was kept is explained again."""
        folder = self.keep or self.folder
        stem = "-".join([language, kinds[0] if len(kinds) == 1 else "pairs", tier, str(seed), *flags])
        truth, recording = folder / f"{stem}.jsonl", folder / f"{stem}.mcap"
        if not (self.keep and truth.exists()):
            unfinished = self.folder / "truth.jsonl"
            command = [self.taut, "record", "-q", "--depth", "irq", "--tier", tier, "-o", str(recording), "--"]
            command += [*self.injectors[language], "--kinds", ",".join(kinds), "--messages", str(messages)]
            command += ["--seed", str(seed), "--truth", str(unfinished), "--work", str(self.folder)]
            command += ["--gap-ms", self.gap_ms, "--cpu", str(CPU), "--other-cpu", str(OTHER_CPU)]
            command += ["--cgroup", str(self.cgroup or ""), "--outside", f"127.0.0.1:{self.port}"]
            command += ["--fifo", str(self.folder / "fifo"), *flags]
            run(command, preexec_fn=set_apart)
            shutil.move(unfinished, truth)
        explained = run([*self.explain, str(recording), "--all", "--format", "json"])
        told = [json.loads(line) for line in truth.read_text().splitlines()], json.loads(explained)
        if not self.keep:
            truth.unlink()
            recording.unlink()
        return told


def set_apart() -> None:
    """What else runs on this machine is no known cause: a session of its own, which comes before others. Recorder and
    helpers keep off the messages' CPU, unless a kind wants otherwise."""
    os.setsid()
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    # Sessions share the CPU as groups, where the kernel groups them: man 7 sched, "The autogroup feature".
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("-20")
    os.sched_setaffinity(0, {OTHER_CPU})


def run(command: list[str], **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    # 5: finished, but data was lost; the losses show in the figures.
    if done.returncode not in (0, 5):
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


@contextlib.contextmanager
def set_up(taut: str, explain: list[str], gap_ms: str, keep: Path | None, python: str = PYTHON) -> Iterator[Stage]:
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "taut-stamp", "--example", "causes_injector"],
        cwd=ROOT,
        check=True,
    )
    injectors = {
        "native": [str(target / "debug/examples/causes_injector")],
        "python": [python, str(HERE / "injector.py")],
    }
    with contextlib.ExitStack() as stack:
        # On a disk, not in memory: some kinds need one.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=target, prefix="causes-")))
        impossible: dict[str, str] = {}
        cgroup = stack.enter_context(own_cgroup())
        if cgroup is None:
            impossible["throttled"] = "no cgroup with a CPU quota may be made"
        if not stack.enter_context(steered()):
            impossible["irq"] = f"{STEERING} cannot be set"
        port = stack.enter_context(outside(folder / "fifo"))
        yield Stage(folder, cgroup, port, taut, explain, injectors, gap_ms, keep, impossible)


@contextlib.contextmanager
def outside(prefix: Path) -> Iterator[int]:
    """The peer that is not recorded: started here, not below `taut record`. On the messages' CPU, which is free while they
    wait for it: on the other one it would be late by what else the machine does."""
    command = [sys.executable, str(HERE / "outside.py"), str(prefix)]
    pinned = {"preexec_fn": lambda: os.sched_setaffinity(0, {CPU})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **pinned) as server:
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


@contextlib.contextmanager
def own_cgroup() -> Iterator[Path | None]:
    """A fresh cgroup that has a CPU quota: v1's cpu hierarchy, else v2."""
    found = None
    for parent, quota in [("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"), ("/sys/fs/cgroup", "cpu.max")]:
        path = Path(parent) / f"taut-causes-{os.getpid()}"
        if not Path(parent, "cgroup.procs").exists():
            continue
        try:
            path.mkdir()
        except OSError:
            continue
        if (path / quota).exists():
            found = path
            # As much before others as the rest of what is recorded.
            shares = ("cpu.shares", "262144") if quota.startswith("cpu.cfs") else ("cpu.weight", "10000")
            (path / shares[0]).write_text(shares[1])
            break
        path.rmdir()
    try:
        yield found
    finally:
        # The injector's end empties it, a moment later.
        until = time.monotonic() + 5
        while found and found.exists() and time.monotonic() < until:
            with contextlib.suppress(OSError):
                found.rmdir()
            time.sleep(0.01)


@contextlib.contextmanager
def without_realtime_limit() -> Iterator[bool]:
    """Threads of a real-time priority may use all of a CPU. By default they get 95 % of it, which a loop of that load needs
    (man 7 sched, sched_rt_runtime_us)."""
    try:
        before = REALTIME_LIMIT.read_text()
        REALTIME_LIMIT.write_text("-1")
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        REALTIME_LIMIT.write_text(before)


@contextlib.contextmanager
def steered() -> Iterator[bool]:
    """Has the messages' CPU process what the loopback receives."""
    try:
        before = STEERING.read_text()
        STEERING.write_text(f"{1 << CPU:x}")
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        STEERING.write_text(before)
