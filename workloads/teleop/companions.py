"""What else such a system runs beside its loop, in the same language and, in the source arrangement, in the same
interpreter.

The source's report names the trace writer (ROBOT_TRACE=1) and the annotation pass at 50 Hz. What else shared its
interpreter it does not say; that hops of no work at all took up to Python's switch interval of 5 ms says that
something computed there. The recorder and the broadcast stand for it. Their sizes were chosen once, so that the
source arrangement shows about the source's own figures (p50 2.4 ms, p99 11 ms) on an idle 2-CPU machine.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .arms import FR3, FR20, HOME_DEG

COMPANIONS = ["none", "all"]
HISTORY = 400
STAMPS = 12


class Companions:
    """Threads that work periodically until stopped. What they write goes to `/dev/null`: the work is in the writing."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._sink = Path(os.devnull).open("w")  # noqa: SIM115 (closed by stop)
        self._history: deque[list[float]] = deque(maxlen=HISTORY)
        self._counts: dict[str, int] = {}
        works: list[tuple[str, float, Callable[[], None]]] = [
            ("annotate", 0.020, self._annotate),
            ("trace", 0.020, self._trace),
            ("record", 0.100, self._record),
            ("broadcast", 0.050, self._broadcast),
        ]
        self._threads = [threading.Thread(target=self._run, args=work, name=work[0], daemon=True) for work in works]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> dict[str, int]:
        """Ends them; gives how often each had its turn."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._sink.close()
        return self._counts

    def _run(self, name: str, period_s: float, work: Callable[[], None]) -> None:
        at = time.monotonic()
        self._counts[name] = 0
        while not self._stopping.wait(max(0.0, at - time.monotonic())):
            work()
            self._counts[name] += 1
            # One that cannot keep up takes its next turn, not all that it missed.
            at = max(at + period_s, time.monotonic() - period_s)

    def _annotate(self) -> None:
        """Poses, speeds and manipulability of both arms, for display."""
        for arm in (FR3, FR20):
            jacobian = arm.jacobian(HOME_DEG)
            pose = arm.tool_pose_mm_deg(HOME_DEG)
            self._history.append([*pose, float(np.linalg.det(jacobian @ jacobian.T))])

    def _trace(self) -> None:
        """One command's stamps as lines of JSON."""
        now = time.perf_counter()
        for at in range(STAMPS):
            self._sink.write(json.dumps({"hop": f"hop.{at}", "t": now, "state": [0.1] * 6}) + "\n")
        self._sink.flush()

    def _record(self) -> None:
        """A tenth of a second of an episode, row by row."""
        rows = [[float(joint) * 1.0001 for joint in HOME_DEG] for _ in range(HISTORY)]
        self._sink.write("\n".join(",".join(f"{value:.6f}" for value in row) for row in rows))

    def _broadcast(self) -> None:
        """The whole system's state with its history, for whoever watches."""
        self._sink.write(json.dumps({"history": list(self._history), "at": time.time()}, indent=1))
