"""The teleoperation loop on two hosts: what is done to the way between them, or to one of them, beside what the report names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads.tests import two_hosts


def names_network(report: Any) -> bool:
    return two_hosts.between(report)["causes"][0]["cause"] == "network"


def names_hog(report: Any) -> bool:
    return two_hosts.most_responsible(report).startswith("follower:hog/")


KINDS = [
    (
        "the relay holds messages for 5 ms on average",
        "`network`, from the leader's host to the follower's",
        two_hosts.JITTER,
        names_network,
    ),
    ("a hog has the follower's CPU for 25 of 200 ms", "the hog, and its host", two_hosts.HOG, names_hog),
]


@dataclass(frozen=True)
class Loop:
    what: str
    names: str
    runs: int
    right: int

    @property
    def holds(self) -> bool:
        return self.right == self.runs


def looped(folder: Path, runs: int) -> list[Loop]:
    """Of so many runs of each kind, those of which the report names the right one."""
    found = []
    for number, (what, names, options, is_right) in enumerate(KINDS):
        right = 0
        for run in range(runs):
            of_run = folder / f"{number}-{run}"
            of_run.mkdir(parents=True)
            right += is_right(two_hosts.run(of_run, *options))
        found.append(Loop(what, names, runs, right))
    return found
