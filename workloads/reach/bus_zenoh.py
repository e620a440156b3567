"""zenoh, peer to peer over loopback: no message leaves this machine.

One peer of a domain, whoever comes first, listens at a port that all know; the others connect to it and learn of each other
by gossip. A topic's name is its key; services are topics, as on DDS."""

import json
import time
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Any

import zenoh

from .bus import TAKEN_AT_ONCE, Bus, Handler
from .options import Options
from .topics import Topic

FIRST_PORT = 7_450


class ZenohBus(Bus):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        config = zenoh.Config()
        meeting = f"tcp/127.0.0.1:{FIRST_PORT + options.domain}"
        settings: dict[str, Any] = {
            "mode": "peer",
            "scouting/multicast/enabled": False,
            "listen/endpoints": [meeting, "tcp/127.0.0.1:0"],
            "listen/exit_on_failure": False,
            "connect/endpoints": [meeting],
            "connect/exit_on_failure": False,
            "connect/timeout_ms": 0,
        }
        for key, value in settings.items():
            config.insert_json5(key, json.dumps(value))
        zenoh.init_log_from_env_or("off")
        self._session = zenoh.open(config)
        self._publishers: list[tuple[Topic, Any]] = []
        self._queues: list[tuple[Topic, deque[tuple[float, bytes]], Handler]] = []
        self._subscribers: list[Any] = []
        self._came = Condition()

    def publisher(self, topic: Topic) -> Callable[[Any], None]:
        reliable = topic.service or (self.options.reliability == "reliable" and not topic.flood)
        publisher = self._session.declare_publisher(
            topic.name,
            reliability=zenoh.Reliability.RELIABLE if reliable else zenoh.Reliability.BEST_EFFORT,
            congestion_control=zenoh.CongestionControl.BLOCK if reliable else zenoh.CongestionControl.DROP,
            express=True,
        )
        self._publishers.append((topic, publisher))
        return lambda message: publisher.put(message.serialize())

    def subscribe(self, topic: Topic, handler: Handler) -> None:
        queue: deque[tuple[float, bytes]] = deque(maxlen=self.depth(topic) or None)
        self._queues.append((topic, queue, handler))

        def came(sample: Any) -> None:
            with self._came:
                queue.append((time.monotonic(), sample.payload.to_bytes()))
                self._came.notify()

        self._subscribers.append(self._session.declare_subscriber(topic.name, came))

    def spin_once(self, timeout_s: float) -> None:
        awaited = [queue for topic, queue, _ in self._queues if not (topic.flood and self.throttle)]
        with self._came:
            if not any(awaited):
                if self.throttle:
                    timeout_s = min(timeout_s, max(0.0, self.throttle.next_look_s - time.monotonic()))
                self._came.wait(timeout_s)
        look = not self.throttle or self.throttle.may_look()
        for topic, queue, handler in self._queues:
            if topic.flood and not look:
                continue
            for _ in range(min(len(queue), TAKEN_AT_ONCE)):
                came_s, payload = queue.popleft()
                if self.throttle and not topic.flood:
                    self.throttle.control_waited(time.monotonic() - came_s)
                handler(topic.type.deserialize(payload))

    def alone(self) -> set[str]:
        """Of what this bus sends; zenoh does not tell a subscriber of its publishers."""
        return {topic.name for topic, publisher in self._publishers if not publisher.matching_status.matching}

    def close(self) -> None:
        """A session that is left open keeps the process from ending."""
        self._session.close()  # type: ignore[no-untyped-call]
