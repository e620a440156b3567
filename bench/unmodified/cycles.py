"""Each cycle of cyclictest by its own log, beside the activation that taut found."""

from __future__ import annotations

import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet

LINE = re.compile(r"^\s*(\d+):\s*(\d+):\s*(-?\d+)\s*$")
# Its log has room for so many cycles between two looks of its main thread, which a loaded machine keeps waiting: the rest is not printed.
# Limits of a difference, µs.
MEDIAN_US, P99_US = 5, 20
NS_PER_US = 1000


@dataclass
class Cycles:
    """What one run came to; differences are taut's latency less the printed one, ns."""

    name: str
    printed: int
    matched: int
    found: int
    most: int
    differences: list[int]

    def quantile(self, q: float) -> float:
        """Of the differences without sign, in µs."""
        ordered = sorted(abs(d) for d in self.differences)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] / NS_PER_US if ordered else float("nan")

    def median(self) -> float:
        """Of the differences, in µs."""
        return statistics.median(self.differences) / NS_PER_US if self.differences else float("nan")

    @property
    def holds(self) -> bool:
        return (
            self.matched == self.printed > 0
            # An activation too many, or one that is missing, would put all later ones beside the wrong cycle.
            and self.printed <= self.found <= self.most
            and abs(self.median()) <= MEDIAN_US
            and self.quantile(0.99) <= P99_US
        )


def cyclictest(taut: str, folder: Path, threads: int, interval_us: int, policy: str, loops: int) -> Cycles:
    """Records a run and compares it."""
    name = f"{threads} thread{'s' * (threads > 1)}, {interval_us} µs, {policy}"
    recording = folder / f"cyclictest-{threads}-{interval_us}-{policy}.mcap"
    priority = ["-p", "80"] if policy == "FIFO" else []
    command = ["cyclictest", "-q", "-v", "-N", "-i", str(interval_us), "-d", "0", "-l", str(loops), "-t", str(threads)]
    command += ["--default-system", *priority]
    record = [taut, "record", "-q", "--ignore-loss", "-o", str(recording), "--", *command]
    output = subprocess.run(record, check=True, capture_output=True, text=True).stdout
    log: dict[int, dict[int, int]] = {thread: {} for thread in range(threads)}
    for line in output.splitlines():
        if match := LINE.match(line):
            thread, cycle, latency = map(int, match.groups())
            log[thread][cycle] = latency
    tables = folder / f"{recording.stem}-tables"
    subprocess.run([taut, "export", "parquet", str(recording), "-o", str(tables)], check=True, capture_output=True)
    activations = of_threads(tables)
    # Of two equal threads nothing says which has which number: the pairing with fewer misses is taken.
    pairings = [list(log), list(reversed(log))] if threads > 1 else [list(log)]
    best = None
    for pairing in pairings:
        of = compare(name, loops * threads, [log[thread] for thread in pairing], activations)
        if best is None or of.quantile(0.5) < best.quantile(0.5):
            best = of
    assert best is not None
    return best


def of_threads(tables: Path) -> list[list[int]]:
    """Release latencies in order of time, by thread: those of timers."""
    hops = pyarrow.parquet.read_table(tables / "hops.parquet").to_pylist()
    threads: dict[str, list[tuple[int, int]]] = {}
    for hop in hops:
        if hop["hop"] == 1 and " timer " in hop["chain"]:
            threads.setdefault(hop["to_thread"], []).append((hop["nth"], hop["duration_ns"]))
    return [[ns for _, ns in sorted(of)] for _, of in sorted(threads.items())]


def compare(name: str, most: int, logs: list[dict[int, int]], activations: list[list[int]]) -> Cycles:
    """The nth cycle is the nth activation."""
    differences, matched = [], 0
    for log, found in zip(logs, activations, strict=False):
        for cycle, latency in log.items():
            if cycle < len(found):
                matched += 1
                differences.append(found[cycle] - latency)
    printed = sum(map(len, logs))
    return Cycles(name, printed, matched, sum(map(len, activations)), most, differences)
