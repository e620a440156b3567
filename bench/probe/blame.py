"""Joins the hog's own log of bursts with the late wakes that `taut probe --explain` took apart."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Later than this by a burst is a hit.
LATE_NS = 100_000


@dataclass(frozen=True)
class Wake:
    due_ns: int
    late_ns: int
    # (what, who, ns), in order of time.
    parts: list[tuple[str, str, int]]

    @property
    def culprit(self) -> str:
        """Who had the largest part."""
        totals: dict[str, int] = {}
        for what, who, ns in self.parts:
            key = who or what
            totals[key] = totals.get(key, 0) + ns
        return max(totals, key=lambda key: totals[key], default="nobody")


@dataclass
class Verdict:
    bursts: int = 0
    # Wakes that a burst held up.
    hits: int = 0
    # Of them, those whose largest part is the hog's.
    named: int = 0
    # Bursts that held a wake up by their own log, of which taut lists none.
    unseen: int = 0
    # Late wakes beside the hog's.
    others: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)
    # Hog's part in a hit less the truth, ns.
    errors_ns: list[int] = field(default_factory=list)


def judge(bursts: Sequence[tuple[int, int]], wakes: Sequence[Wake], name: str, interval_ns: int) -> Verdict:
    """`bursts` and `wakes` by CLOCK_MONOTONIC. A wake due within a burst and late by more than 100 µs is a hit."""
    wakes = sorted(wakes, key=lambda wake: wake.due_ns)
    verdict = Verdict()
    if not wakes:
        verdict.bursts = verdict.unseen = len(bursts)
        return verdict
    bursts = sorted(bursts)
    starts = [start for start, _ in bursts]
    hit_bursts = set()
    for wake in wakes:
        at = bisect.bisect_right(starts, wake.due_ns) - 1
        if at < 0 or wake.due_ns >= bursts[at][1] or wake.late_ns <= LATE_NS:
            verdict.others += 1
            continue
        hit_bursts.add(at)
        verdict.hits += 1
        if name in wake.culprit:
            verdict.named += 1
            took = sum(ns for _, who, ns in wake.parts if name in who)
            verdict.errors_ns.append(took - (bursts[at][1] - wake.due_ns))
        else:
            verdict.wrong.append({"due_ns": wake.due_ns, "late_ns": wake.late_ns, "parts": wake.parts})
    # A burst of two intervals holds up a wake whatever its phase; those at the ends were before or after the probe.
    from_ns, to_ns = wakes[0].due_ns, wakes[-1].due_ns
    for at, (start, end) in enumerate(bursts):
        if from_ns <= start and end <= to_ns:
            verdict.bursts += 1
            verdict.unseen += at not in hit_bursts and end - start >= 1.5 * interval_ns
    return verdict
