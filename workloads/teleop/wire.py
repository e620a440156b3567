"""How a controller's frames go onto the wire: whole and in time, joined and cut, or late and in bunches."""

from __future__ import annotations

import contextlib
import queue
import random
import socket
import threading
import time
from typing import Protocol

WIRES = ["plain", "rough", "heavy"]
SEED = 1


class Wire(Protocol):
    def send(self, data: bytes) -> None: ...


def wire(kind: str, client: socket.socket) -> Wire:
    return {"plain": PlainWire, "rough": RoughWire, "heavy": HeavyWire}[kind](client)


class PlainWire:
    """One send a frame."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client

    def send(self, data: bytes) -> None:
        self._client.sendall(data)


class RoughWire(PlainWire):
    """Now and then joins a frame with the next, or cuts it."""

    JOIN, CUT = 0.10, 0.05

    def __init__(self, client: socket.socket) -> None:
        super().__init__(client)
        self._held = b""
        self._dice = random.Random(SEED)

    def send(self, data: bytes) -> None:
        data, self._held = self._held + data, b""
        roll = self._dice.random()
        if roll < self.JOIN:
            self._held = data
        elif roll < self.JOIN + self.CUT:
            self._client.sendall(data[: len(data) // 2])
            self._held = data[len(data) // 2 :]
        else:
            self._client.sendall(data)


class HeavyWire(RoughWire):
    """Heavy jitter: every frame is late by an exponential delay, and now and then the wire stands still. Frames keep
    their order, as TCP's do, so what waited behind a late one comes in a bunch. Joins and cuts as well.

    The guard specification's own figures: a mean of 10 ms, and 0.5 stalls of 30 to 200 ms a second.
    """

    MEAN_S = 0.010
    STALLS_HZ, STALL_S = 0.5, (0.030, 0.200)

    def __init__(self, client: socket.socket) -> None:
        super().__init__(client)
        self._clear_at = self._next_stall = time.monotonic()
        self._waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="wire", daemon=True).start()

    def send(self, data: bytes) -> None:
        now = time.monotonic()
        if now >= self._next_stall:
            self._clear_at = max(self._clear_at, now + self._dice.uniform(*self.STALL_S))
            self._next_stall = now + self._dice.expovariate(self.STALLS_HZ)
        self._clear_at = max(self._clear_at, now + self._dice.expovariate(1 / self.MEAN_S))
        self._waiting.put((self._clear_at, data))

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the client went away
            while True:
                at, data = self._waiting.get()
                time.sleep(max(0.0, at - time.monotonic()))
                super().send(data)
