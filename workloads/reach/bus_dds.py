"""CycloneDDS."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .bus import TAKEN_AT_ONCE, Bus, Handler
from .options import Options
from .topics import Topic

# Keeps to this machine, unless somebody has configured it. It is read when the library is loaded.
os.environ.setdefault("CYCLONEDDS_URI", Path(__file__).with_name("cyclonedds.xml").as_uri())

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import DomainParticipant
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic as DdsTopic

UNREAD = SampleState.Any | ViewState.Any | InstanceState.Alive
BLOCKING_NS = 100_000_000
"""A reliable writer waits so long for readers that are behind, as in ROS 2's default."""


class DdsBus(Bus):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._participant = DomainParticipant(options.domain)
        self._waitset = WaitSet(self._participant)
        self._writers: list[tuple[Topic, Any]] = []
        self._readers: list[tuple[Topic, Any, Handler]] = []
        self._kept: list[Any] = []

    def publisher(self, topic: Topic) -> Callable[[Any], None]:
        writer = DataWriter(self._participant, self._topic(topic), qos=self._qos(topic))
        self._writers.append((topic, writer))
        return writer.write

    def subscribe(self, topic: Topic, handler: Handler) -> None:
        reader = DataReader(self._participant, self._topic(topic), qos=self._qos(topic))
        self._readers.append((topic, reader, handler))
        if not (topic.flood and self.throttle):
            condition = ReadCondition(reader, UNREAD)
            self._waitset.attach(condition)
            self._kept.append(condition)

    def spin_once(self, timeout_s: float) -> None:
        if self.throttle:
            timeout_s = min(timeout_s, max(0.0, self.throttle.next_look_s - time.monotonic()))
        self._waitset.wait(max(1, int(timeout_s * 1e9)))
        look = not self.throttle or self.throttle.may_look()
        for topic, reader, handler in self._readers:
            if topic.flood and not look:
                continue
            for sample in reader.take(TAKEN_AT_ONCE, condition=None):
                if not sample.sample_info.valid_data:
                    continue
                if self.throttle and not topic.flood:
                    self.throttle.control_waited((time.time_ns() - sample.sample_info.source_timestamp) / 1e9)
                handler(sample)

    def alone(self) -> set[str]:
        names = {topic.name for topic, writer in self._writers if not writer.get_matched_subscriptions()}
        return names | {topic.name for topic, reader, _ in self._readers if not reader.get_matched_publications()}

    def close(self) -> None:
        """The participant says goodbye when the process ends."""

    def _topic(self, topic: Topic) -> Any:
        return DdsTopic(self._participant, topic.name, topic.type)

    def _qos(self, topic: Topic) -> Any:
        depth = self.depth(topic)
        reliable = topic.service or (self.options.reliability == "reliable" and not topic.flood)
        return Qos(
            Policy.Reliability.Reliable(BLOCKING_NS) if reliable else Policy.Reliability.BestEffort,
            Policy.Durability.Volatile,
            Policy.DataRepresentation(use_cdrv0_representation=True),  # as ROS 2 encodes
            Policy.History.KeepLast(depth) if depth else Policy.History.KeepAll,
        )
