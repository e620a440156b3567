"""A stamped robot, recorded once and analysed twice: with its stamps, and without them."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import runs
import without_stamps

ROOT = Path(__file__).resolve().parents[2]
# A stamped pass and the wake that it follows are the same if the stamp comes this soon after the wait's return, ns.
SOON_NS = 2_000_000


@dataclass
class Stamp:
    """A stamped point that follows a wake: how long after the wait's return messages pass it."""

    robot: str
    point: str
    thread: str
    passes: int
    after_wake: int
    p50_us: float
    p99_us: float


@dataclass
class Robot:
    name: str
    loops: list[str]
    chains: list[str]
    points: list[Stamp]
    stamped_top: str
    bare_top: str


def robot(taut: str, folder: Path, name: str, seconds: int) -> Robot:
    recording, bare = folder / f"{name}.mcap", folder / f"{name}-bare.mcap"
    command = [sys.executable, "-m", f"workloads.{name}", "--duration", str(seconds)]
    runs.record(taut, recording, command, cwd=ROOT)
    without_stamps.copy(recording, bare)
    stamped, of = runs.report(taut, recording), runs.report(taut, bare)
    starts: dict[str, list[int]] = {}
    for hop in runs.hops(taut, bare):
        # The end of the first hop of a loop is its start.
        if hop["hop"] == 1 and hop["to"].endswith(" start"):
            starts.setdefault(hop["to_thread"], []).append(hop["start_ns"] + hop["duration_ns"])
    points = []
    passes: dict[tuple[str, str], list[int]] = {}
    for hop in runs.hops(taut, recording):
        passes.setdefault((hop["to"], hop["to_thread"]), []).append(hop["start_ns"] + hop["duration_ns"])
    for (point, thread), times in passes.items():
        after = sorted(delays(sorted(starts.get(thread, [])), sorted(times)))
        if len(after) * 2 > len(times) > 50:
            p99 = after[int(0.99 * (len(after) - 1))] / 1000
            points.append(Stamp(name, point, thread, len(times), len(after), statistics.median(after) / 1000, p99))
    loops = [f"{loop['name']} ({loop['activations']})" for loop in of["loops"]]
    wakes = [chain for chain in of["chains"] if chain["source"] == "wakes" and not chain["is_loop"]]
    chains = [f"{chain['name']} ({chain['messages']})" for chain in wakes]
    return Robot(name, loops, chains, points, top(stamped["chains"][:1]), top(wakes[-1:]))


def delays(starts: list[int], times: list[int]) -> list[int]:
    """From the last start before each time until it, where that is soon."""
    found, at = [], 0
    for time in times:
        while at + 1 < len(starts) and starts[at + 1] <= time:
            at += 1
        if starts and 0 <= time - starts[at] < SOON_NS:
            found.append(time - starts[at])
    return found


def top(chains: list[dict]) -> str:
    """The first cause of the tail."""
    causes = [cause for chain in chains for cause in chain["by_cause"][:1]]
    return causes[0]["cause"] if causes else "–"
