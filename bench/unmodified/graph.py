"""Each cycle of a PipeWire graph by the log of pw-profiler, beside the passage of the wake chain that taut found."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import runs

# A graph of a timer and one client, apart from any other on this machine.
GRAPH = """
export XDG_RUNTIME_DIR={folder}
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
# Columns of its log, which has one line for each cycle: the client's signal until it is awake, µs. Empty before it has joined.
LATENCY = 8


# The moment that it is signalled is noted after the driver's start and before its wake; clocks are read in µs.
WITHIN_US = 5


@dataclass
class Graph:
    """How late the client is awake, µs: as it is printed, from its wake on, and from the driver's start on."""

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
        return len(self.from_start) == len(self.printed) > 0 and self.within >= 0.95 * len(self.printed)


def graph(taut: str, folder: Path) -> Graph | None:
    if shutil.which("pw-profiler") is None or shutil.which("pw-jack") is None:
        return None
    own = folder / "pipewire"
    own.mkdir(exist_ok=True)
    recording = folder / "pipewire.mcap"
    runs.record(taut, recording, ["bash", "-c", f"({GRAPH.format(folder=own)}) > /dev/null 2>&1"])
    lines = [line.split("\t") for line in (own / "profile.log").read_text().splitlines()]
    printed = [int(line[LATENCY]) for line in lines if line[LATENCY].strip()]
    from_wake, from_start = {}, {}
    for hop in runs.hops(taut, recording):
        awake_ns, took_us = hop["start_ns"] + hop["duration_ns"], hop["duration_ns"] / 1000
        if hop["chain"].startswith("jack_metro ") and hop["hop"] == 1:
            from_wake[awake_ns] = took_us
        if " timer " in hop["chain"] and "→ jack_metro" in hop["chain"] and hop["hop"] == 2:
            from_start[awake_ns] = took_us
    found = [
        (from_wake[awake_ns], took_us) for awake_ns, took_us in sorted(from_start.items()) if awake_ns in from_wake
    ]

    # The profiler begins and ends by itself: its cycles are held against as many that follow each other, and nearest to them.
    def part(after: int) -> list[tuple[float, float]]:
        return found[after : after + len(printed)]

    def distance(after: int) -> float:
        return sum(abs(most - theirs) for (_, most), theirs in zip(part(after), printed, strict=False))

    nearest = part(min(range(max(1, len(found) - len(printed) + 1)), key=distance))
    return Graph(printed, [least for least, _ in nearest], [most for _, most in nearest])
