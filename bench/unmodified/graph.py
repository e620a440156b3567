"""Each cycle of a PipeWire graph by the log of pw-profiler, beside the passage of the wake chain that taut found."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import runs
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

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


# The moment that it is signalled is noted after the driver's start and before its wake. That it is awake is noted after its first call,
# the read of its eventfd. Clocks are read in µs.
WITHIN_US = 5
# A system call ends: docs/reference/recording.md.
CALL_ENDS = 9


@dataclass
class Graph:
    """How late the client is awake, µs: as it is printed, from its wake on, and from the driver's start on."""

    logged: int
    printed: list[int]
    from_wake: list[float]
    from_start: list[float]
    # How long after its start its first call had ended, µs: as a rule a few, more if interrupts come between.
    read: list[float]

    @property
    def within(self) -> int:
        """Cycles of which the printed figure lies between the two."""
        cycles = zip(self.from_wake, self.printed, self.from_start, self.read, strict=True)
        return sum(least - WITHIN_US <= printed <= most + read + WITHIN_US for least, printed, most, read in cycles)

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
    thread = ""
    for hop in runs.hops(taut, recording):
        awake_ns, took_us = hop["start_ns"] + hop["duration_ns"], hop["duration_ns"] / 1000
        if hop["chain"].startswith("jack_metro ") and hop["hop"] == 1:
            from_wake[awake_ns] = took_us
            thread = hop["to_thread"]
        if " timer " in hop["chain"] and "→ jack_metro" in hop["chain"] and hop["hop"] == 2:
            from_start[awake_ns] = took_us
    ends = call_ends(recording, int(thread.rsplit("/", 1)[-1] or 0))
    found = []
    for awake_ns, took_us in sorted(from_start.items()):
        first_call = bisect_right(ends, awake_ns)
        if awake_ns in from_wake and first_call < len(ends):
            read_us = (ends[first_call] - awake_ns) / 1000
            found.append((awake_ns / 1000 - took_us, from_wake[awake_ns], took_us, read_us))
    # The log has no moments: its first line is each of the cycles by turns, and the one with which most of the others are cycles, and near.
    matches = (pairs(logged, found, begin_us) for begin_us, *_ in found)
    best = max(matches, key=lambda of: (len(of), -sum(abs(most - printed) for printed, _, most, _ in of)), default=[])
    return Graph(len(logged), *(map(list, zip(*best, strict=True)) if best else ([], [], [], [])))


def call_ends(recording: Path, thread: int) -> list[int]:
    """When each system call of that thread ended."""
    ends = []
    with recording.open("rb") as file:
        for *_, batch in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages(
            "/taut/raw/kernel"
        ):
            times = accumulate(batch.delta_ns, initial=batch.first_ns)
            next(times)
            rows = zip(times, batch.tid, batch.event, strict=True)
            ends += [time_ns for time_ns, tid, event in rows if tid == thread and event == CALL_ENDS]
    return sorted(ends)


def pairs(
    logged: list[tuple[int, int]], found: list[tuple[float, float, float, float]], begin_us: float
) -> list[tuple[int, float, float, float]]:
    """Of each cycle of the log that is found: what is printed, from the wake on, from the driver's start on, and the first call."""
    result, at = [], 0
    for now_us, printed in logged:
        due_us = begin_us + now_us - logged[0][0]
        while at < len(found) and found[at][0] < due_us - SAME_CYCLE_US:
            at += 1
        if at < len(found) and found[at][0] < due_us + SAME_CYCLE_US:
            result.append((printed, *found[at][1:]))
    return result
