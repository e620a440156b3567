"""A known disturbance: takes its CPU for 2 ms at random moments, and writes down when.

hog.py CPU PRIORITY SEED FILE: SCHED_FIFO until SIGTERM; then writes start and end of each burst, ns of CLOCK_MONOTONIC."""

import gc
import os
import random
import signal
import sys
import time
from pathlib import Path

NAME = "taut-hog"
BURST_NS = 2_000_000
# Between bursts: at least the first, on average their sum. 9 % of the CPU in all.
GAP_S, MORE_GAP_S = 0.005, 0.015


class Ended(BaseException):
    pass


def main() -> None:
    cpu, priority, seed = (int(word) for word in sys.argv[1:4])
    signal.signal(signal.SIGTERM, end)
    Path("/proc/self/comm").write_text(NAME)
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    chance = random.Random(seed)
    gc.disable()
    bursts = []
    try:
        while True:
            time.sleep(GAP_S + chance.expovariate(1 / MORE_GAP_S))
            start = now = time.monotonic_ns()
            while now < start + BURST_NS:
                now = time.monotonic_ns()
            bursts.append((start, now))
    except Ended:
        Path(sys.argv[4]).write_text("\n".join(f"{start} {end}" for start, end in bursts))


def end(*_: object) -> None:
    raise Ended


if __name__ == "__main__":
    main()
