"""The plain Python way: the `mcap` package's writer in the loop. Usage: plain_mcap.py SECONDS FILE; one line of JSON."""

import json
import math
import sys
import time

import numpy as np
from mcap.writer import Writer

VALUES = 2000
RATE_HZ = 400.0


def main() -> None:
    seconds, path = float(sys.argv[1]), sys.argv[2]
    noise = np.random.default_rng(1)
    values = np.arange(VALUES, dtype="f8")
    at = np.arange(VALUES)
    calls: list[int] = []
    began, before = time.perf_counter_ns(), time.process_time_ns()
    between_ns = 0
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("bench/msg/All", "ros2msg", b"float64[2000] value\n")
        channel = writer.register_channel("/all", "cdr", schema)
        start, left = time.perf_counter(), time.thread_time_ns()
        for cycle in range(int(seconds * RATE_HZ)):
            time.sleep(max(0.0, start + cycle / RATE_HZ - time.perf_counter()))
            sine, cosine = math.sin(6 * cycle / RATE_HZ), math.cos(6 * cycle / RATE_HZ)
            values[1::3] = (np.round(sine * 1500 + noise.random(len(at[1::3])) * 6) + at[1::3]) / 2048
            values[2::3] = sine * at[2::3] + cosine
            between_ns += time.thread_time_ns() - left
            called = time.perf_counter_ns()
            now = time.time_ns()
            writer.add_message(channel, now, b"\x00\x01\x00\x00" + values.tobytes(), now)
            calls.append(time.perf_counter_ns() - called)
            left = time.thread_time_ns()
        writer.finish()
    cpu_ns = time.process_time_ns() - before - between_ns
    wall_ns = time.perf_counter_ns() - began
    calls.sort()
    quantile = {
        q: calls[min(int(len(calls) * f), len(calls) - 1)] for q, f in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))
    }
    print(json.dumps({"cpu_ns": cpu_ns, "wall_ns": wall_ns, "n": len(calls), "max": calls[-1], **quantile}))


main()
