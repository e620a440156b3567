"""Where every setpoint of the split arrangement ended: `taut.guard.Ledger`, and the stamps that say so.

The leader numbers its setpoints 1, 2, 3, …; the follower enters each number here exactly once, those that it never
saw included, so that at the end the leader's count and the ledger's sums must agree.
"""

from __future__ import annotations

import time
from collections import Counter

import taut
from taut import guard

BALANCE_PERIOD_NS = 1_000_000_000


class Account:
    def __init__(self) -> None:
        self._ledger = guard.Ledger()
        self._entered = 0
        self._passed = 0
        self._modified: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._balanced_ns = 0
        self._balances = 0
        self._alarms = 0
        self.failure: str | None = None

    def enter(self, setpoint: int, produced_ns: int) -> None:
        """A setpoint came; the numbers before it that did not were lost on the link."""
        while self._entered < setpoint:
            self._entered += 1
            self._ledger.produce(self._entered, produced_ns)
            if self._entered < setpoint:
                self.drop(self._entered, "lost", "queue_overflow")

    def deliver(self, setpoint: int, modified: guard.Reason | None) -> None:
        """The servo was seen to have it, as it was or changed for a limit."""
        now_ns = time.monotonic_ns()
        if modified is None:
            self._ledger.end(setpoint, now_ns)
            self._passed += 1
        else:
            self._ledger.end(setpoint, now_ns, "modified", modified)
            self._modified[modified] += 1
        taut.applied(setpoint)

    def drop(self, setpoint: int, fate: guard.Fate, reason: guard.Reason) -> None:
        self._ledger.end(setpoint, time.monotonic_ns(), fate, reason)
        self._dropped[reason] += 1
        taut.drop(setpoint, reason)

    def check(self, now_ns: int) -> None:
        """The law of conservation, once a second."""
        if now_ns - self._balanced_ns < BALANCE_PERIOD_NS:
            return
        self._balanced_ns = now_ns
        try:
            balance = self._ledger.balance(now_ns)
        except guard.GuardError as unbalanced:
            self.failure = self.failure or str(unbalanced)
            return
        self._balances += 1
        self._alarms += balance.is_alarmed

    def close(self, produced: int) -> None:
        """`produced` is the leader's own count: what it made and never came was lost on the link."""
        if produced > self._entered:
            self.enter(produced, time.monotonic_ns())
            self.drop(produced, "lost", "queue_overflow")
        elif produced < self._entered:
            self.failure = self.failure or f"the leader made {produced} setpoints, {self._entered} came"
        self._balanced_ns = 0
        self.check(time.monotonic_ns())

    def summary(self) -> dict[str, object]:
        """The sums, in the words of the source arrangement's ledger."""
        balance = self._ledger.balance(time.monotonic_ns())
        delivered = self._passed + self._modified.total()
        accounted = delivered + self._dropped.total() + balance.in_flight
        return {
            "produced": balance.produced,
            "applied": delivered,
            "dropped": dict(self._dropped.most_common()),
            "modified": dict(self._modified.most_common()),
            "in_flight": balance.in_flight,
            "unexplained": abs(balance.produced - accounted),
            "silent": balance.silent,
            "balances": self._balances,
            "alarmed_seconds": self._alarms,
        }
