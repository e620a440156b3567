"""Where every setpoint of the source arrangement ended: exactly one outcome each, and for each that did not arrive
one of the setpoint ledger's reasons. (The source had no such account; this one is here to see what it did.)

Invariant: produced = applied + sum(dropped) + in flight. A second outcome, or one for a setpoint that
was never produced, is counted as unexplained; there must be none.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import taut


class Ledger:
    """`on_applied` and `on_drop` get every outcome once; by default they stamp it."""

    def __init__(
        self,
        on_applied: Callable[[int], object] = taut.applied,
        on_drop: Callable[[int, str], object] = taut.drop,
    ) -> None:
        self._on_applied, self._on_drop = on_applied, on_drop
        self._lock = threading.Lock()
        self._in_flight: set[int] = set()
        self._dropped: Counter[str] = Counter()
        self._modified: Counter[str] = Counter()
        self._produced = 0
        self._applied = 0
        self._unexplained = 0

    def produce(self) -> int:
        """The id of a new setpoint: 1, 2, 3, …"""
        with self._lock:
            self._produced += 1
            self._in_flight.add(self._produced)
            return self._produced

    def applied(self, message_id: int) -> None:
        if self._close(message_id):
            with self._lock:
                self._applied += 1
            self._on_applied(message_id)

    def drop(self, message_id: int, reason: str) -> None:
        if self._close(message_id):
            with self._lock:
                self._dropped[reason] += 1
            self._on_drop(message_id, reason)

    def modified(self, reason: str) -> None:
        """The setpoint goes on, changed to obey a limit."""
        with self._lock:
            self._modified[reason] += 1

    def balance(self) -> dict[str, object]:
        with self._lock:
            dropped = dict(sorted(self._dropped.items(), key=lambda item: -item[1]))
            missing = self._produced - self._applied - sum(dropped.values()) - len(self._in_flight)
            return {
                "produced": self._produced,
                "applied": self._applied,
                "dropped": dropped,
                "modified": dict(self._modified),
                "in_flight": len(self._in_flight),
                "unexplained": abs(missing) + self._unexplained,
            }

    def _close(self, message_id: int) -> bool:
        with self._lock:
            if message_id in self._in_flight:
                self._in_flight.remove(message_id)
                return True
            self._unexplained += 1
            return False
