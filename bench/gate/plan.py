"""Which trials are run, in which order: drawn from a seed, so that a collection that was cut goes on where it was."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {"same": 0.0, "slower by 10 %": 0.1, "slower by 25 %": 0.25, "slower by 50 %": 0.5, "tail": 4.0, "hog": 0.0}
"""Share of its work that the slowed hop has more of in B: in each message, of `tail` in one of 200. `hog`: the machine is what differs."""
SYSTEMS = ("native", "teleop")
PINNED = {"hog"}
"""Kinds whose two programs stay on one core, so that a hog on it is sure to meet them."""
BLOCK = {"same": 4, "slower by 10 %": 3, "slower by 25 %": 2, "slower by 50 %": 1, "tail": 2, "hog": 2}
"""Pairs of each kind in a block. Most where few pairs would make a rate a matter of luck: the smallest change, and none."""


@dataclass(frozen=True)
class Turn:
    """Trials that follow each other at once: B A B, or one B before or after A.

    An A between two Bs of different kinds makes a pair with each, back to back with both; that saves a quarter of the trials.
    Kinds are judged apart from each other, so that no gate meets an A twice."""

    number: int
    system: str
    seed: int
    """Of all its programs: equal seeds, equal work."""
    before: str | None
    """Kind of the B that runs before A. A coin has put it there, so that a coin decides the order of each pair."""
    after: str | None

    @property
    def order(self) -> list[str | None]:
        """Kinds in the order of their trials; A is None."""
        return [*([self.before] if self.before else []), None, *([self.after] if self.after else [])]


def turns(seed: int) -> Iterator[Turn]:
    """The turns of a collection, without end: a block of each system, and again."""
    chance = random.Random(seed)
    number = 0
    while True:
        block = [(system, *kinds) for system in SYSTEMS for kinds in couples(chance)]
        chance.shuffle(block)
        for system, before, after in block:
            number += 1
            yield Turn(number, system, chance.getrandbits(31), before, after)


def couples(chance: random.Random) -> list[tuple[str | None, str | None]]:
    """The kinds of a block, two by two and never one with itself; those of one core are alone."""
    kinds = [kind for kind, times in BLOCK.items() for _ in range(times) if kind not in PINNED]
    halves = len(kinds) // 2
    while True:
        chance.shuffle(kinds)
        free = list(zip(kinds[:halves], kinds[halves:], strict=True))
        if all(one != other for one, other in free):
            break
    alone = [kind for kind in PINNED for _ in range(BLOCK[kind])]
    return [*free, *((kind, None) if chance.random() < 0.5 else (None, kind) for kind in alone)]
