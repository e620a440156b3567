"""The offset and the delays between two hosts that share one clock, as their messages have them."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from net import Relay

# The two recorders read the counter apart from each other.
RECORDERS_NS = 1000


@dataclass(frozen=True)
class Found:
    relay: str
    messages: int
    # The true offset is 0.
    error_ns: float
    bound_ns: float
    # Of the median delay of the hops between the hosts, by one clock and by the messages, there and back.
    truth_ns: tuple[float, float]
    level_ns: tuple[float, float]

    @property
    def holds(self) -> bool:
        most = self.bound_ns + RECORDERS_NS
        levels = zip(self.level_ns, self.truth_ns, strict=True)
        return abs(self.error_ns) <= most and all(abs(level - truth) <= most for level, truth in levels)


def held_against_truth(taut: str, folder: Path, relay: Relay) -> Found:
    truth, found = report(taut, folder), report(taut, folder, "--clocks", "messages")
    clock = found["recording"]["hosts"][1]["clock"]
    assert clock["from"] == "messages", found["notes"]
    hops = [hop for chain in found["chains"] for hop in chain["hops"]]
    messages = next(hop["n"] for hop in hops if hop["to"] == "robot:setpoint.received")
    return Found(relay.name, messages, clock["offset_ns"], clock["bound_max_ns"], medians(truth), medians(found))


def report(taut: str, folder: Path, *options: str) -> Any:
    command = [taut, "report", "desk.mcap", "robot.mcap", "--join", *options, "--format", "json"]
    return json.loads(subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout)


def medians(report: Any) -> tuple[float, float]:
    hops = {hop["to"]: hop for chain in report["chains"] for hop in chain["hops"]}
    return hops["robot:setpoint.received"]["p50_ns"], hops["desk:state.received"]["p50_ns"]
