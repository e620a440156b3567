"""What runs beside two hosts, started by `hosts` only.

    python -m workloads.teleop.beside relay FD ADDRESS PORT DELAY_US JITTER_US
    python -m workloads.teleop.beside hog CPU MS

The relay passes each packet on after the delay and an exponential jitter of this mean; none overtakes another. The hog takes a CPU for
this time, five times a second, above the follower's priority and below the guard's.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import socket
import sys
import time
from collections import deque

from ..threads import call_thread

RELAY_PRIORITY, HOG_PRIORITY = 50, 25
PERIOD_S = 0.2


def main() -> None:
    role, *words = sys.argv[1:]
    call_thread(role)
    if role == "relay":
        _ask_for(RELAY_PRIORITY)
        fd, address, port, delay_us, jitter_us = words
        relay(socket.socket(fileno=int(fd)), (address, int(port)), float(delay_us) / 1e6, float(jitter_us) / 1e6)
    else:
        os.sched_setaffinity(0, {int(words[0])})
        _ask_for(HOG_PRIORITY)
        hog(float(words[1]) / 1e3)


def _ask_for(priority: int) -> None:
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def relay(end: socket.socket, to: tuple[str, int], delay_s: float, jitter_s: float) -> None:
    waiting: deque[tuple[float, bytes]] = deque()
    chance = random.Random(1)
    while True:
        left_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([end], [], [], left_s)[0]:
            late_s = chance.expovariate(1 / jitter_s) if jitter_s else 0.0
            due = time.monotonic() + delay_s + late_s
            waiting.append((max(due, waiting[-1][0]) if waiting else due, end.recv(65536)))
        while waiting and waiting[0][0] <= time.monotonic():
            end.sendto(waiting.popleft()[1], to)


def hog(busy_s: float) -> None:
    while True:
        until = time.monotonic() + busy_s
        while time.monotonic() < until:
            pass
        time.sleep(PERIOD_S - busy_s)


if __name__ == "__main__":
    main()
