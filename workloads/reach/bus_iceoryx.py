"""iceoryx2: shared memory, no sockets. (The CycloneDDS package on PyPI is built without iceoryx, so DDS itself cannot do this.)

A topic is a publish-subscribe service of bytes and an event service of the same name, which wakes those who wait."""

import ctypes
import time
from collections.abc import Callable
from threading import Lock
from typing import Any

import iceoryx2 as iox2

from .bus import TAKEN_AT_ONCE, Bus, Handler
from .options import Options
from .topics import Topic

KEPT_OF_ALL = 1000
"""iceoryx2's queues are bounded: so many are kept where all were asked for."""
FIRST_BYTES = 1 << 14
MOST = 16
"""Processes at one end of a topic."""


class IceoryxBus(Bus):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        iox2.set_log_level(iox2.LogLevel.Fatal)
        self._node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        self._waitset = iox2.WaitSetBuilder.new().create(iox2.ServiceType.Ipc)
        self._publishers: list[tuple[Topic, Any]] = []
        self._subscribers: list[tuple[Topic, Any, Any, Any, Handler]] = []
        self._guards: list[Any] = []

    def publisher(self, topic: Topic) -> Callable[[Any], None]:
        messages, event = self._services(topic)
        publisher = (
            messages.publisher_builder()
            .initial_max_slice_len(FIRST_BYTES)
            .allocation_strategy(iox2.AllocationStrategy.PowerOfTwo)
            .create()
        )
        notifier = event.notifier_builder().create()
        self._publishers.append((topic, messages))
        lock = Lock()

        def send(message: Any) -> None:
            payload = message.serialize()
            with lock:
                sample = publisher.loan_slice_uninit(len(payload))
                ctypes.memmove(sample.payload().as_ptr(), payload, len(payload))
                sample.assume_init().send()
                notifier.notify()

        return send

    def subscribe(self, topic: Topic, handler: Handler) -> None:
        messages, event = self._services(topic)
        subscriber = messages.subscriber_builder().buffer_size(self._kept(topic)).create()
        listener = event.listener_builder().create()
        self._subscribers.append((topic, messages, subscriber, listener, handler))
        if not (topic.flood and self.throttle):
            self._guards.append(self._waitset.attach_notification(listener))

    def spin_once(self, timeout_s: float) -> None:
        if self.throttle:
            timeout_s = min(timeout_s, max(0.0, self.throttle.next_look_s - time.monotonic()))
        self._waitset.wait_and_process_with_timeout(iox2.Duration.from_micros(max(100, int(1e6 * timeout_s))))
        look = not self.throttle or self.throttle.may_look()
        for topic, _, subscriber, listener, handler in self._subscribers:
            listener.try_wait()
            if topic.flood and not look:
                continue
            for _ in range(TAKEN_AT_ONCE):
                sample = subscriber.receive()
                if sample is None:
                    break
                payload = sample.payload()
                copied = ctypes.string_at(payload.as_ptr(), payload.len())
                sample.delete()
                handler(topic.type.deserialize(copied))

    def alone(self) -> set[str]:
        alone = {topic.name for topic, s in self._publishers if s.dynamic_config.number_of_subscribers == 0}
        nobody = (topic.name for topic, s, *_ in self._subscribers if s.dynamic_config.number_of_publishers == 0)
        return alone.union(nobody)

    def close(self) -> None:
        """Its files in shared memory go with its objects."""

    def _kept(self, topic: Topic) -> int:
        return min(KEPT_OF_ALL, self.depth(topic) or KEPT_OF_ALL)

    def _services(self, topic: Topic) -> tuple[Any, Any]:
        name = iox2.ServiceName.new(f"reach/{self.options.domain}/{topic.name}")
        reliable = topic.service or self.options.reliability == "reliable"
        messages = (
            self._node.service_builder(name)
            .publish_subscribe(iox2.Slice[ctypes.c_uint8])
            .max_publishers(MOST)
            .max_subscribers(MOST)
            .subscriber_max_buffer_size(self._kept(topic))
            .enable_safe_overflow(not reliable)
            .open_or_create()
        )
        event = self._node.service_builder(name).event().max_notifiers(MOST).max_listeners(MOST).open_or_create()
        return messages, event
