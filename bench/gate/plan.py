"""Which pairs are run, in which order: drawn from a seed, so that a collection that was cut goes on where it was."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {
    "same": [],
    "slower by 10 %": ["--slow", "0.1"],
    "slower by 20 %": ["--slow", "0.2"],
    "slower by 50 %": ["--slow", "0.5"],
    "tail": ["--tail"],
    "hog": [],
}
"""What is asked of B's program; A is asked nothing. `hog`: the machine is what differs."""
SYSTEMS = ("native", "teleop")
BLOCK = {kind: 4 if kind == "same" else 1 for kind in KINDS}
"""Pairs of each kind in a block; within one, their order is random."""
BLOCKS = {"native": 1, "teleop": 1}
"""Blocks in a round: native trials are short, so that both systems have about as much time."""


@dataclass(frozen=True)
class Pair:
    number: int
    system: str
    kind: str
    seed: int
    """Of both programs: equal seeds, equal work."""
    b_first: bool


def pairs(seed: int) -> Iterator[Pair]:
    """The pairs of a collection, without end."""
    chance = random.Random(seed)
    number = 0
    while True:
        systems = [system for system in SYSTEMS for _ in range(BLOCKS[system])]
        chance.shuffle(systems)
        for system in systems:
            kinds = [kind for kind, times in BLOCK.items() for _ in range(times)]
            chance.shuffle(kinds)
            for kind in kinds:
                number += 1
                yield Pair(number, system, kind, chance.getrandbits(31), chance.random() < 0.5)
