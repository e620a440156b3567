"""Python loops with a known cause of their tail. Each message goes from loop.due to loop.done.

python situations.py KIND PERIOD_MS SECONDS   KIND: gil, garbage
"""

import sys
import threading
import time

import taut


def compute() -> None:
    while True:
        sum(range(1000))


def main(kind: str, period_s: float, seconds: float) -> None:
    # Objects that every full collection of the garbage collector looks at.
    heap = [[number] for number in range(400_000)] if kind == "garbage" else []
    if kind == "gil":
        threading.Thread(target=compute, daemon=True).start()
    due = time.monotonic()
    end = due + seconds
    number = 0
    while due < end:
        due += period_s
        number += 1
        time.sleep(max(0.0, due - time.monotonic()))
        taut.stamp_at("loop.due", number, round(due * 1e9))
        if kind == "garbage":
            for _ in range(300):
                cycle: list = []
                cycle.append(cycle)
            if number % 20 == 0:
                heap.append([[] for _ in range(6000)])
        taut.stamp("loop.done", number)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) / 1e3, float(sys.argv[3]))
