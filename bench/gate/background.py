"""A random background load that comes and goes, as on a machine that others use: seeded, and written down.

background.py SEED LOG: until SIGTERM. Episodes of some seconds to a minute, one line of JSON each as it begins; a
third of the time is rest, now and then for minutes."""

import ctypes
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BLOCK = bytes(1 << 20)


def main() -> None:
    seed, log = int(sys.argv[1]), Path(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    dies_with_its_parent(signal.SIGTERM)
    chance = random.Random(seed)
    cpus = sorted(os.sched_getaffinity(0))
    while True:
        name, seconds, workers = episode(chance, cpus)
        with log.open("a") as file:
            line = {"background": name, "from": time.monotonic(), "seconds": seconds}
            file.write(json.dumps(line) + "\n")
        hold(seconds, workers)


Worker = tuple[int | None, Callable[[random.Random], None], int]
"""A CPU to stay on, what to do there until killed, a seed."""


def episode(chance: random.Random, cpus: list[int]) -> tuple[str, float, list[Worker]]:
    """Name, length in seconds, and workers of the next episode."""
    kinds = {"rest": 6, "long rest": 1, "hog": 3, "hogs": 2, "bursts": 4, "disk": 2, "memory": 2}
    name = chance.choices(list(kinds), list(kinds.values()))[0]
    seconds = round(chance.uniform(60, 150) if name == "long rest" else chance.uniform(8, 60), 1)
    one, seed = chance.choice(cpus), chance.getrandbits(32)
    workers: list[Worker] = {
        "hog": [(one, spin, seed)],
        "hogs": [(cpu, spin, seed) for cpu in cpus],
        "bursts": [(cpu, bursts, seed + cpu) for cpu in cpus],
        "disk": [(None, disk, seed)],
        "memory": [(one, memory, seed)],
    }.get(name, [])
    return name, seconds, workers


def hold(seconds: float, workers: list[Worker]) -> None:
    children = [start(*worker) for worker in workers]
    try:
        time.sleep(seconds)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def start(cpu: int | None, work: Callable[[random.Random], None], seed: int) -> int:
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    dies_with_its_parent()
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    work(random.Random(seed))
    os._exit(0)


def dies_with_its_parent(how: signal.Signals = signal.SIGKILL) -> None:
    """However that one ends: prctl PR_SET_PDEATHSIG."""
    ctypes.CDLL(None).prctl(1, how, 0, 0, 0)


def spin(_: random.Random) -> None:
    while True:
        pass


def bursts(chance: random.Random) -> None:
    while True:
        time.sleep(chance.expovariate(1 / 0.02))
        until = time.monotonic() + chance.expovariate(1 / 0.005)
        while time.monotonic() < until:
            pass


def disk(chance: random.Random) -> None:
    with tempfile.TemporaryFile(dir=Path.cwd()) as file:
        while True:
            file.seek(0)
            for _ in range(chance.randint(1, 16)):
                file.write(BLOCK)
            file.flush()
            os.fsync(file.fileno())
            time.sleep(chance.expovariate(1 / 0.02))


def memory(_: random.Random) -> None:
    """Streams through more than the caches hold."""
    a, b = bytearray(32 << 20), bytearray(32 << 20)
    while True:
        a[:] = b
        b[:] = a


if __name__ == "__main__":
    main()
