"""Each cycle of a PipeWire graph by the log of pw-profiler, beside the passage of the wake chain that taut found."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import runs

# A graph of a timer and one client, apart from any other on this machine.
GRAPH = """
export XDG_RUNTIME_DIR={folder}
# The profiler leaves files where it is.
cd {folder}
pipewire & graph=$!
sleep 1
pw-profiler -o {folder}/profile.log & profiler=$!
sleep .3
pw-jack jack_metro -b 120 & client=$!
sleep 4
kill $profiler $client
sleep .3
kill $graph
wait
"""
# Columns of its log, which has one line for each cycle, in µs: since the last cycle; the client's signal until it is awake, which is empty
# before it has joined.
SINCE_LAST = 0
LATENCY = 8
# Cycles are 21 ms apart.
SAME_CYCLE_US = 5_000


# The moment that it is signalled is noted after the driver's start and before its wake; clocks are read in µs.
WITHIN_US = 5


@dataclass
class Graph:
    """How late the client is awake, µs: as it is printed, from its wake on, and from the driver's start on."""

    logged: int
    printed: list[int]
    from_wake: list[float]
    from_start: list[float]

    @property
    def within(self) -> int:
        """Cycles of which the printed figure lies between the two."""
        cycles = zip(self.from_wake, self.printed, self.from_start, strict=False)
        return sum(least - WITHIN_US <= printed <= most + WITHIN_US for least, printed, most in cycles)

    @property
    def holds(self) -> bool:
        return self.within >= 0.95 * self.logged > 0


def graph(taut: str, folder: Path) -> Graph | None:
    if shutil.which("pw-profiler") is None or shutil.which("pw-jack") is None:
        return None
    own = (folder / "pipewire").resolve()
    own.mkdir(exist_ok=True)
    recording = folder / "pipewire.mcap"
    runs.record(taut, recording, ["bash", "-c", f"({GRAPH.format(folder=own)}) > /dev/null 2>&1"])
    lines = [line.split("\t") for line in (own / "profile.log").read_text().splitlines()]
    logged, now_us = [], 0
    for line in lines:
        now_us += int(line[SINCE_LAST])
        if line[LATENCY].strip():
            logged.append((now_us, int(line[LATENCY])))
    from_wake, from_start = {}, {}
    for hop in runs.hops(taut, recording):
        awake_ns, took_us = hop["start_ns"] + hop["duration_ns"], hop["duration_ns"] / 1000
        if hop["chain"].startswith("jack_metro ") and hop["hop"] == 1:
            from_wake[awake_ns] = took_us
        if " timer " in hop["chain"] and "→ jack_metro" in hop["chain"] and hop["hop"] == 2:
            from_start[awake_ns] = took_us
    found = [
        (awake_ns / 1000 - took_us, from_wake[awake_ns], took_us)
        for awake_ns, took_us in sorted(from_start.items())
        if awake_ns in from_wake
    ]
    # The log has no moments: its first line is each of the cycles by turns, and the one with which most of the others are cycles, and near.
    matches = (pairs(logged, found, begin_us) for begin_us, *_ in found)
    best = max(matches, key=lambda of: (len(of), -sum(abs(most - printed) for printed, _, most in of)))
    return Graph(
        len(logged), [printed for printed, *_ in best], [least for _, least, _ in best], [most for *_, most in best]
    )


def pairs(
    logged: list[tuple[int, int]], found: list[tuple[float, float, float]], begin_us: float
) -> list[tuple[int, float, float]]:
    """Of each cycle of the log that is found: what is printed, from the wake on, and from the driver's start on."""
    result, at = [], 0
    for now_us, printed in logged:
        due_us = begin_us + now_us - logged[0][0]
        while at < len(found) and found[at][0] < due_us - SAME_CYCLE_US:
            at += 1
        if at < len(found) and found[at][0] < due_us + SAME_CYCLE_US:
            result.append((printed, *found[at][1:]))
    return result
