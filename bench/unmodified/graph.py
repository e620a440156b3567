"""Each cycle of a PipeWire graph by the log of pw-profiler, beside the passage of the wake chain that taut found."""

from __future__ import annotations

import shutil
import statistics
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


@dataclass
class Graph:
    """How late the client is awake, µs: as it is printed, and the hop from the driver's start to the client's."""

    printed: list[int]
    found: list[float]
    matched: int
    differences: list[float]

    @property
    def holds(self) -> bool:
        is_near = abs(statistics.median(self.differences)) <= 5 and self.quantile(0.95) <= 20
        return self.matched == len(self.printed) > 0 and is_near

    def quantile(self, q: float) -> float:
        """Of the differences without sign."""
        ordered = sorted(map(abs, self.differences))
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def graph(taut: str, folder: Path) -> Graph | None:
    if shutil.which("pw-profiler") is None or shutil.which("pw-jack") is None:
        return None
    own = folder / "pipewire"
    own.mkdir(exist_ok=True)
    recording = folder / "pipewire.mcap"
    runs.record(taut, recording, ["bash", "-c", f"({GRAPH.format(folder=own)}) > /dev/null 2>&1"])
    lines = [line.split("\t") for line in (own / "profile.log").read_text().splitlines()]
    printed = [int(line[LATENCY]) for line in lines if line[LATENCY].strip()]
    hops = runs.hops(taut, recording)
    of_chain = [hop for hop in hops if "→ jack_metro" in hop["chain"] and " timer " in hop["chain"] and hop["hop"] == 2]
    found = [hop["duration_ns"] / 1000 for hop in sorted(of_chain, key=lambda hop: hop["start_ns"])]
    # The profiler begins and ends by itself: its cycles are held against as many that follow each other, and nearest to them.
    matched = min(len(printed), len(found))

    def differences(after: int) -> list[float]:
        return [ours - theirs for ours, theirs in zip(found[after : after + matched], printed, strict=False)]

    nearest = min(map(differences, range(len(found) - matched + 1)), key=lambda of: sum(map(abs, of)))
    return Graph(printed, found, matched, nearest)
