"""Under what the loop runs: what the source ran beside it, and hogs that want every CPU."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOG = "while True: pass"


@dataclass(frozen=True)
class Condition:
    name: str
    says: str
    hogs: int
    wire: str = "plain"


SOURCE = Condition(
    "source",
    "the source's own: 50 Hz, 10 ms stream, a lap every half second, and what else its system runs beside the loop",
    hogs=0,
)
BUSY = Condition("busy", "the same, and one process that takes all the CPU it gets", hogs=1)
HOGS = Condition("hogs", "the same, and 30 processes that take all the CPU they get", hogs=30)
CONDITIONS = [SOURCE, BUSY, HOGS]


@contextlib.contextmanager
def load(condition: Condition) -> Iterator[None]:
    """The condition's hogs, from before the run to after it. Raises RuntimeError if they were not what took the CPU."""
    hogs = [subprocess.Popen([sys.executable, "-S", "-c", HOG]) for _ in range(condition.hogs)]
    try:
        if hogs:
            time.sleep(1.0)
        before = [_cpu_s(hog.pid) for hog in hogs]
        yield
        taken = sum(_cpu_s(hog.pid) - at for hog, at in zip(hogs, before, strict=True))
        if hogs and taken == 0:
            raise RuntimeError(f"{len(hogs)} hogs took no CPU time: there was no load")
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100.0
