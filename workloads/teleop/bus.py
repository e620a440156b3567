"""The in-process topic bus: every subscriber has a thread and a bounded queue; messages travel as bytes."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol

QUEUE_LENGTH = 16


@dataclass
class RobotState:
    """What nodes tell each other: a state of an arm, or the state it is asked to take.

    `message_id` is 0 for messages that are no setpoints. `source_ns` is the robot's own time of the state; nothing
    in the source arrangement uses it but the account.
    """

    message_id: int
    arm: str
    joints_deg: list[float]
    source_ns: int = 0

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(data: bytes) -> RobotState:
        return RobotState(**json.loads(data))


Handler = Callable[[bytes], None]


class Subscriptions(Protocol):
    """Where a node hears of others."""

    def subscribe(self, topic: str, name: str, handler: Handler) -> None: ...


class Topics(Subscriptions, Protocol):
    """What a node needs of a bus, be it in its process or between processes."""

    def publish(self, topic: str, data: bytes) -> None: ...


class Bus:
    """`on_lost` gets every message that a full queue pushed out, the oldest first."""

    def __init__(self, on_lost: Handler) -> None:
        self._on_lost = on_lost
        self._subscribers: dict[str, list[_Subscriber]] = {}

    def subscribe(self, topic: str, name: str, handler: Handler) -> None:
        self._subscribers.setdefault(topic, []).append(_Subscriber(name, handler))

    def start(self) -> None:
        for subscriber in self._all():
            subscriber.thread.start()

    def publish(self, topic: str, data: bytes) -> None:
        for subscriber in self._subscribers.get(topic, []):
            lost = subscriber.put(data)
            if lost is not None:
                self._on_lost(lost)

    def stop(self) -> None:
        """Let every queue run empty, then end its thread."""
        for subscriber in self._all():
            subscriber.close()
        for subscriber in self._all():
            subscriber.thread.join(timeout=5.0)

    def failures(self) -> list[BaseException]:
        return [subscriber.failure for subscriber in self._all() if subscriber.failure]

    def _all(self) -> list[_Subscriber]:
        return [subscriber for group in self._subscribers.values() for subscriber in group]


class _Subscriber:
    def __init__(self, name: str, handler: Handler) -> None:
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.failure: BaseException | None = None
        self._handler = handler
        self._queue: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def put(self, data: bytes) -> bytes | None:
        with self._changed:
            lost = self._queue.popleft() if len(self._queue) >= QUEUE_LENGTH else None
            self._queue.append(data)
            self._changed.notify()
            return lost

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closed:
                    self._changed.wait()
                if not self._queue:
                    return
                data = self._queue.popleft()
            try:
                self._handler(data)
            except Exception as failure:  # kept for the end of the run: the loop must go on
                self.failure = self.failure or failure
