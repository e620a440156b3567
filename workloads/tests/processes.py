"""A workload as processes: started, waited for, and seen to be gone."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]


def start(module: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """`python -m workloads.MODULE`, with more in its environment; its output is read by the test."""
    command = [sys.executable, "-m", f"workloads.{module}", *arguments]
    all_of_it = {**os.environ, **environment}
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=all_of_it)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    """So long at most, on however busy a machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come about"
        time.sleep(0.01)


def in_time(run: Callable[[], T], is_held_up: Callable[[T], bool], may_be: Callable[[T], bool] = lambda _: False) -> T:
    """What a run gives that the machine did not hold up: a part that has no CPU for a while stops the motion, and is to. `may_be`: of what
    comes of a part without a CPU, and of a defect as well, two runs are not counted."""
    doubts = 2
    for _ in range(20):
        result = run()
        if not is_held_up(result):
            if not doubts or not may_be(result):
                break
            doubts -= 1
    return result
