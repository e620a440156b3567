"""Python's ways to note a time, in interleaved batches. Prints: name median_ns n_batches."""

import json
import logging
import statistics
import sys
import tempfile
import time

import structlog
import taut

CALLS, BATCHES = 5_000, 40
clock = time.perf_counter
out = tempfile.TemporaryFile("w")  # noqa: SIM115 (lives as long as the process)
logger = logging.getLogger("bench")
logger.addHandler(logging.StreamHandler(out))
logger.setLevel(logging.INFO)
log = structlog.wrap_logger(structlog.PrintLogger(out), processors=[structlog.processors.JSONRenderer()])
noted: list[tuple[str, float]] = []


def perf_counter() -> None:
    for _ in range(CALLS):
        clock()


def stamp() -> None:
    s = taut.stamp
    for i in range(CALLS):
        s("bench.python", i)


def append() -> None:
    a = noted.append
    for _ in range(CALLS):
        a(("bench.python", clock()))


def logging_json() -> None:
    for i in range(CALLS // 50):
        logger.info(json.dumps({"point": "bench.python", "id": i, "t": clock()}))


def structlog_json() -> None:
    for i in range(CALLS // 50):
        log.info("bench.python", id=i, t=clock())


def empty() -> None:
    for _ in range(CALLS):
        pass


ways = {empty: CALLS, perf_counter: CALLS, stamp: CALLS, append: CALLS, logging_json: CALLS // 50, structlog_json: CALLS // 50}
taut.prepare_thread()
times: dict[str, list[float]] = {way.__name__: [] for way in ways}
for _ in range(BATCHES):
    for way, calls in ways.items():
        start = time.thread_time_ns()
        way()
        times[way.__name__].append((time.thread_time_ns() - start) / calls)
    noted.clear()
    time.sleep(0.02)
for name, values in times.items():
    print(name, f"{statistics.median(values):.1f}", BATCHES)
print("lost", taut.status()["lost"], file=sys.stdout)
