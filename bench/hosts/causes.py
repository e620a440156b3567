"""Delays with a known cause at four places: on the way, on the desk before it sends, and on the robot."""

import csv
import statistics
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from net import Relay

# Quarter of `every` at which pair.c holds a message → what was done, the hop's last point, the cause.
KINDS = [
    ("the relay holds it", "robot:setpoint.received", "network"),
    ("the desk computes before it sends", "robot:setpoint.received", "cpu"),
    ("the robot computes", "robot:setpoint.applied", "cpu"),
    ("the robot sleeps", "robot:setpoint.applied", "sleep"),
]


@dataclass(frozen=True)
class Named:
    what: str
    cause: str
    injected: int
    right: int


def named(taut: str, folder: Path, relay: Relay) -> list[Named]:
    """Of each kind, the messages whose largest time above the median, over all hops and causes, is the right one."""
    subprocess.run(
        [taut, "merge", "desk.mcap", "robot.mcap", "--clocks", "messages", "-o", "run.mcap"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    subprocess.run([taut, "export", "csv", "run.mcap", "-o", "run.csv"], cwd=folder, check=True, capture_output=True)
    spent: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    with (folder / "run.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            for name, value in row.items():
                if name.endswith("_ns") and name not in ("start_ns", "duration_ns"):
                    spent[int(row["message"])][row["to"], name.removesuffix("_ns")] = int(value)
    setpoints = {message: of for message, of in spent.items() if message < 1 << 32}
    quiet = [of for message, of in setpoints.items() if all(message % relay.every != at for at in places(relay.every))]
    keys = {key for of in setpoints.values() for key in of}
    typical = {key: statistics.median(of.get(key, 0) for of in quiet) for key in keys}

    def top(message: int) -> tuple[str, str]:
        of = setpoints[message]
        return max(keys, key=lambda key: of.get(key, 0) - typical[key])

    found = []
    for (what, to, cause), place in zip(KINDS, places(relay.every), strict=True):
        messages = [message for message in setpoints if message % relay.every == place]
        found.append(Named(what, cause, len(messages), sum(top(message) == (to, cause) for message in messages)))
    return found


def places(every: int) -> list[int]:
    return [every * quarter // 4 for quarter in range(4)]
