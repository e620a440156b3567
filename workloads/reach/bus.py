"""The way messages travel. One interface over CycloneDDS, zenoh and iceoryx2; the bytes are CDR on each of them.

A bus is of one thread that takes (`spin_once`, which calls the handlers) and of any that send."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from .options import Options
from .throttle import Throttle
from .topics import Topic

Handler = Callable[[Any], None]
TAKEN_AT_ONCE = 64
"""Messages of one topic before the next topic's turn."""


class BusError(Exception):
    """The bus cannot be had; the text says what to do."""


class Bus(ABC):
    def __init__(self, options: Options) -> None:
        self.options = options
        self.throttle = Throttle() if options.throttle == "adaptive" else None

    @abstractmethod
    def publisher(self, topic: Topic) -> Callable[[Any], None]:
        """A function that sends one message."""

    @abstractmethod
    def subscribe(self, topic: Topic, handler: Handler) -> None: ...

    @abstractmethod
    def spin_once(self, timeout_s: float) -> None:
        """Waits until something came, or for so long, and hands over what is there."""

    @abstractmethod
    def alone(self) -> set[str]:
        """Topics of this bus without a peer, as far as can be known."""

    @abstractmethod
    def close(self) -> None: ...

    def depth(self, topic: Topic) -> int:
        """0: all are kept."""
        return topic.depth if topic.service or self.options.depth is None else self.options.depth

    def until_joined(self, seconds: float, *topics: Topic) -> None:
        """Waits until these have a peer. Raises BusError when none comes."""
        deadline = time.monotonic() + seconds
        while alone := {topic.name for topic in topics} & self.alone():
            if time.monotonic() > deadline:
                raise BusError(f"no peer is at the other end of {', '.join(sorted(alone))} after {seconds:g} s")
            self.spin_once(0.02)


def open_bus(options: Options) -> Bus:
    """Raises BusError."""
    try:
        if options.bus == "zenoh":
            from .bus_zenoh import ZenohBus

            return ZenohBus(options)
        if options.bus == "shm":
            from .bus_iceoryx import IceoryxBus

            return IceoryxBus(options)
        from .bus_dds import DdsBus

        return DdsBus(options)
    except ModuleNotFoundError as missing:
        raise BusError(f"module {missing.name!r} is not installed; run `make setup`") from missing
