"""Joins a hog's own log of bursts with the wakes that `taut explain` took apart. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Later than this by a burst is a hit.
LATE_NS = 100_000


@dataclass(frozen=True)
class Wake:
    due_ns: int
    late_ns: int
    # ns by "cause: detail".
    parts: Mapping[str, int]

    @property
    def culprit(self) -> str:
        """What had the largest part."""
        return max(self.parts, key=lambda part: self.parts[part], default="nothing")

    def overlap_ns(self, burst: tuple[int, int]) -> int:
        """How much of its lateness fell into a burst."""
        return min(self.due_ns + self.late_ns, burst[1]) - max(self.due_ns, burst[0])


@dataclass
class Verdict:
    # Bursts that overlap a due time of the probe.
    hits: int = 0
    # Of them, those with a late wake whose largest part is the hog's.
    named: int = 0
    # Late wakes in all, and those beyond every burst.
    late: int = 0
    others: int = 0
    # Of those, the ones blamed on the hog all the same.
    slandered: int = 0
    # What was wrong, burst by burst.
    wrong: list[str] = field(default_factory=list)
    # Hog's part in a hit less the overlap, ns.
    errors_ns: list[int] = field(default_factory=list)


def read_wakes(explanation: Mapping[str, Any], due_ns: Mapping[int, int]) -> list[Wake]:
    """The wakes of `taut explain --all --format json`, in order of time; their due times by message id from the recording."""
    (chain,) = explanation["chains"]
    wakes = [
        Wake(
            due_ns[message["id"]],
            message["total_ns"],
            {f"{piece['cause']}: {piece['detail']}": piece["time_ns"] for piece in message["causes"]},
        )
        for message in chain["all"]
    ]
    return sorted(wakes, key=lambda wake: wake.due_ns)


def judge(bursts: Sequence[tuple[int, int]], wakes: Sequence[Wake], hog: str, interval_ns: int) -> Verdict:
    """`bursts` and `wakes` by CLOCK_MONOTONIC, each in order. A burst hits when a due time lies in it so long before its end that
    the wake came more than 100 µs late."""
    verdict, by_hog = Verdict(), f"by {hog}"
    late = [wake for wake in wakes if wake.late_ns > LATE_NS]
    verdict.late = len(late)
    if not wakes:
        return verdict
    phase_ns, first_ns, last_ns = wakes[0].due_ns % interval_ns, wakes[0].due_ns, wakes[-1].due_ns
    held_up = set()
    for burst in bursts:
        start, end = burst
        due_ns = start + (phase_ns - start) % interval_ns
        if not (first_ns <= due_ns <= last_ns) or end - due_ns <= LATE_NS:
            continue
        verdict.hits += 1
        met = [at for at, wake in enumerate(late) if wake.overlap_ns(burst) > LATE_NS]
        held_up.update(met)
        blamed = [at for at in met if late[at].culprit.endswith(by_hog)]
        verdict.named += bool(blamed)
        if blamed:
            wake = max((late[at] for at in blamed), key=lambda wake: wake.overlap_ns(burst))
            verdict.errors_ns.append(
                sum(ns for part, ns in wake.parts.items() if part.endswith(by_hog)) - wake.overlap_ns(burst)
            )
        else:
            seen = "; ".join(f"{late[at].late_ns} ns: {dict(late[at].parts)}" for at in met)
            verdict.wrong.append(
                f"burst of {end - start} ns, due {due_ns - start} ns after its start: {seen or 'no late wake'}"
            )
    beyond = [
        wake for at, wake in enumerate(late) if at not in held_up and all(wake.overlap_ns(b) <= 0 for b in bursts)
    ]
    verdict.others = len(beyond)
    verdict.slandered = sum(wake.culprit.endswith(by_hog) for wake in beyond)
    return verdict
