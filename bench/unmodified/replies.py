"""The hop that rt-tests measure, by what they print, beside the same hop by taut's thread states.

Their sender is woken by the receiver, notes the time and wakes the receiver, which notes it again. So this hop ends a wait in the
middle of the receiver's activation: it is in no chain, and the table of thread states has it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet
import runs

MEANS = {
    "ptsematest": "a mutex",
    "pmqtest": "a message queue",
    "svsematest": "a semaphore",
    "sigwaittest": "a signal",
}
PRINTED = re.compile(r"#1 -> #0, Min +(\d+), Cur +\d+, Avg +(\d+), Max +(\d+)")
CYCLES = 1000
# Between a thread's switch to a CPU and its reading of the clock it returns from its call, which an interrupt may hold up.
WITHIN_US = 10
MOST_WITHIN_US = 20
MOST_WITHIN_SHARE = 0.05


@dataclass
class Replies:
    """Least, mean and largest, µs."""

    name: str
    printed: tuple[float, float, float]
    found: tuple[float, float, float]
    replies: int

    @property
    def holds(self) -> bool:
        *usual, most = (ours - theirs for theirs, ours in zip(self.printed, self.found, strict=True))
        # The largest that is printed may be the first one, whose sender was not woken: that one is not found.
        is_near = max(map(abs, usual)) <= WITHIN_US and most <= max(MOST_WITHIN_US, MOST_WITHIN_SHARE * self.printed[2])
        # The first one comes before the chain's first passage, the last one ends the program.
        return is_near and self.replies >= CYCLES - 5


def replies(taut: str, folder: Path) -> list[Replies]:
    """Each program for two seconds."""
    return [of_program(taut, folder, name) for name in MEANS]


def of_program(taut: str, folder: Path, name: str) -> Replies:
    recording = folder / f"{name}.mcap"
    output = runs.record(taut, recording, [name, "-q", "-i", "2000", "-l", str(CYCLES), "-p", "80"])
    match = PRINTED.search(output)
    assert match, output
    hops = [hop for hop in runs.hops(taut, recording) if " → " in hop["chain"] and hop["hop"] == 2]
    hops = [hop for hop in hops if hop["chain"].startswith(f"{name} sleep 2 ms →")]
    receiver, sender = hops[0]["from_thread"], hops[0]["to_thread"]
    begins = sorted(hop["start_ns"] + hop["duration_ns"] for hop in hops)
    states = pyarrow.parquet.read_table(recording.with_suffix(".tables") / "thread_states.parquet").to_pylist()
    states = sorted((one for one in states if one["thread"] == receiver), key=lambda one: one["start_ns"])
    took, at = [], 0
    for woken, runs_on in itertools.pairwise(states):
        is_reply = woken["state"] == "woken" and woken["by"] == sender and runs_on["state"] == "running"
        if not is_reply or woken["start_ns"] < begins[0]:
            continue
        while at + 1 < len(begins) and begins[at + 1] <= woken["start_ns"]:
            at += 1
        took.append((runs_on["start_ns"] - begins[at]) / 1000)
    least, mean, most = (float(value) for value in match.groups())
    return Replies(name, (least, mean, most), (min(took), sum(took) / len(took), max(took)), len(took))
