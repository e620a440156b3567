"""A message flood over ROS 2, DDS or zenoh, in processes of its own; `taut lab` starts it.

Usage: flood.py LOAD COUNT. LOAD is the load as JSON, COUNT the file that says every 20 ms how far the flood is: four
little-endian 64-bit numbers, CLOCK_MONOTONIC in ns, messages received, messages sent, readers that the writers match; then of
each topic, in the order of their names, messages sent and received.
Each publisher and each reader is a process, as the nodes of a robot are.
"""

import ctypes
import json
import mmap
import os
import signal
import struct
import sys
import time
import traceback
from functools import partial

COUNTED_S = 0.02
# The shortest sleep worth taking between messages: faster ones go in bursts.
BURST_S = 0.001
# What a writer that fell behind does not make up for: a stall must not turn into a burst without end.
FORGIVEN_S = 0.1
# How long writers may look for the readers before the flood begins without them; the count says so.
MATCH_S = 8.0
# How often a writer asks who listens.
ASKED_S = 0.1
PR_SET_PDEATHSIG = 1


class Counters:
    """Shared by all processes: messages of each writer and its readers (from -1), and of each reader messages by topic."""

    def __init__(self, names: list[str], readers: int) -> None:
        self.writers, self.topics = len(names), sorted(set(names))
        self.topic_of = [self.topics.index(name) for name in names]
        self.memory = mmap.mmap(-1, 8 * (2 * len(names) + readers * len(self.topics)))
        self.words = memoryview(self.memory).cast("q")
        for writer in range(self.writers):
            self.words[self.writers + writer] = -1

    def sent(self, writer: int, n: int) -> None:
        self.words[writer] = n

    def matches(self, writer: int, n: int) -> None:
        """The most at a time: the system's readers leave as soon as a trial is done, and were there all the same."""
        place = self.writers + writer
        self.words[place] = max(n, self.words[place])

    def received(self, reader: int, by_topic: list[int]) -> None:
        first = 2 * self.writers + reader * len(self.topics)
        for at, n in enumerate(by_topic):
            self.words[first + at] = n

    def totals(self) -> list[int] | None:
        """Received, sent, matched, then of each topic sent and received; None until every writer has looked for readers."""
        writers, topics = self.writers, len(self.topics)
        matched = self.words[writers : 2 * writers].tolist()
        if min(matched) < 0:
            return None
        sent, received = [0] * topics, self.words[2 * writers :].tolist()
        for writer, n in enumerate(self.words[:writers].tolist()):
            sent[self.topic_of[writer]] += n
        by_topic = [word for at in range(topics) for word in (sent[at], sum(received[at::topics]))]
        return [sum(received), sum(sent), sum(matched), *by_topic]


class Dds:
    """CycloneDDS with the names that ROS 2 gives to topics and types, and its encoding."""

    def __init__(self, load: dict) -> None:
        from dataclasses import dataclass

        from cyclonedds.core import Policy, Qos
        from cyclonedds.idl import IdlStruct
        from cyclonedds.util import duration

        @dataclass
        class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
            data: str

        reliable = load["reliability"] == "reliable"
        keep_all = load["history"] == "all"
        self.load, self.String = load, String
        self.qos = Qos(
            Policy.Reliability.Reliable(duration(milliseconds=100)) if reliable else Policy.Reliability.BestEffort,
            Policy.History.KeepAll if keep_all else Policy.History.KeepLast(load["depth"] or 10),
            Policy.Durability.Volatile,
            Policy.DataRepresentation(use_cdrv0_representation=True),
        )

    def participant(self):
        from cyclonedds.domain import DomainParticipant

        domain = self.load["domain"]
        return DomainParticipant(int(os.environ.get("ROS_DOMAIN_ID") or 0) if domain is None else domain)

    def topic(self, participant, name: str):
        from cyclonedds.topic import Topic

        return Topic(participant, "rt/" + name.lstrip("/"), self.String)

    def writer(self, name: str):
        from cyclonedds.core import DDSException
        from cyclonedds.pub import DataWriter

        participant = self.participant()
        writer = DataWriter(participant, self.topic(participant, name), qos=self.qos)
        message = self.String("X" * self.load["payload_bytes"])
        # Always the same message: it is encoded once, so that the flood and not Python's encoder is the load.
        encoded = message.serialize(use_version_2=False)
        message.serialize = lambda **_: encoded

        def write() -> bool:
            try:
                writer.write(message)
                return True
            except DDSException as error:
                if error.code == DDSException.DDS_RETCODE_TIMEOUT:
                    return False
                raise

        return write, lambda: len(writer.get_matched_subscriptions())

    def read(self, names: list[str], received) -> None:
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
        from cyclonedds.sub import DataReader
        from cyclonedds.util import duration

        class Uncounted:
            """Stands for a message that is not decoded: decoding would measure Python."""

        self.String.deserialize = classmethod(lambda *_, **__: Uncounted())
        participant = self.participant()
        readers = [DataReader(participant, self.topic(participant, name), qos=self.qos) for name in names]
        waiting = WaitSet(participant)
        some = ViewState.Any | InstanceState.Any | SampleState.NotRead
        conditions = [ReadCondition(reader, some) for reader in readers]
        for condition in conditions:
            waiting.attach(condition)
        counts = [0] * len(readers)
        while True:
            waiting.wait(duration(milliseconds=100))
            for at, reader in enumerate(readers):
                counts[at] += len(reader.take(N=1000))
            received(counts)


class Ros2:
    """Nodes of rclpy, each with one publisher, and nodes that subscribe to all topics under a single-threaded executor."""

    def __init__(self, load: dict) -> None:
        self.load = load

    def node(self, name: str):
        """Imported in the process that uses it: libraries of ROS 2 have threads of their own, which a fork loses."""
        import rclpy
        from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

        load = self.load
        self.qos = QoSProfile(
            reliability=ReliabilityPolicy[load["reliability"].upper()],
            history=HistoryPolicy.KEEP_ALL if load["history"] == "all" else HistoryPolicy.KEEP_LAST,
            depth=load["depth"] or 10,
        )
        rclpy.init(domain_id=load["domain"])
        return rclpy.create_node(name, enable_rosout=False, start_parameter_services=False)

    def writer(self, name: str):
        node = self.node("flood_" + "".join(c if c.isalnum() else "_" for c in name))
        from rclpy.impl.implementation_singleton import rclpy_implementation
        from rclpy.serialization import serialize_message
        from std_msgs.msg import String

        publisher = node.create_publisher(String, name, self.qos)
        # Always the same message: it is encoded once, so that the flood and not Python's encoder is the load.
        message = serialize_message(String(data="X" * self.load["payload_bytes"]))

        def write() -> bool:
            try:
                publisher.publish(message)
                return True
            except rclpy_implementation.RCLError:  # A reliable writer that keeps all, and whose reader is behind.
                return False

        return write, publisher.get_subscription_count

    def read(self, names: list[str], received) -> None:
        node = self.node("flood_reader")
        from rclpy.executors import SingleThreadedExecutor
        from std_msgs.msg import String

        counts = [0] * len(names)

        def count(at: int):
            def one(_) -> None:
                counts[at] += 1

            return one

        for at, name in enumerate(names):
            # Raw: decoding would measure Python.
            node.create_subscription(String, name, count(at), self.qos, raw=True)
        node.create_timer(COUNTED_S / 2, lambda: received(counts))
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        executor.spin()


class Zenoh:
    """Peers that find each other, configured by ZENOH_CONFIG as everywhere."""

    def __init__(self, load: dict) -> None:
        import zenoh

        self.load, self.zenoh = load, zenoh

    def session(self):
        configured = os.environ.get("ZENOH_CONFIG")
        # Kept: one that nobody holds is closed.
        self.kept = self.zenoh.open(self.zenoh.Config.from_env() if configured else self.zenoh.Config())
        return self.kept

    def writer(self, name: str):
        zenoh, reliable = self.zenoh, self.load["reliability"] == "reliable"
        publisher = self.session().declare_publisher(
            name,
            congestion_control=zenoh.CongestionControl.BLOCK if reliable else zenoh.CongestionControl.DROP,
            reliability=zenoh.Reliability.RELIABLE if reliable else zenoh.Reliability.BEST_EFFORT,
        )
        message = b"X" * self.load["payload_bytes"]

        def write() -> bool:
            publisher.put(message)
            return True

        # zenoh says whether somebody listens, not how many.
        return write, lambda: self.load["readers"] if publisher.matching_status.matching else 0

    def read(self, names: list[str], received) -> None:
        session, counts = self.session(), [0] * len(names)

        def count(at: int):
            def one(_) -> None:
                counts[at] += 1

            return one

        subscribers = [session.declare_subscriber(name, count(at)) for at, name in enumerate(names)]
        while subscribers:
            time.sleep(COUNTED_S / 2)
            received(counts)


def publish(make, rate_hz: float | None, wanted: int, sent, matches) -> None:
    write, listeners = make()
    began = time.monotonic()
    while listeners() < wanted and time.monotonic() - began < MATCH_S:
        time.sleep(0.01)
    matches(listeners())
    n, step = 0, 0.0 if rate_hz is None else 1.0 / rate_hz
    upcoming = asked = time.monotonic()
    while True:
        now = time.monotonic()
        if now - asked > ASKED_S:
            asked = now
            matches(listeners())
        if upcoming > now:
            time.sleep(max(upcoming - now, BURST_S))
            continue
        if now - upcoming > FORGIVEN_S:
            upcoming = now
        if write():
            n += 1
            sent(n)
        upcoming += step


def child(work) -> int:
    """Runs this in a process of its own, which ends with its parent at the latest."""
    pid = os.fork()
    if pid:
        return pid
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        work()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def main() -> None:
    load = json.loads(sys.argv[1])
    kinds = {"ros2": (Ros2, "/flood_topic_*"), "dds": (Dds, "/flood_topic_*"), "zenoh": (Zenoh, "flood/topic_*")}
    kind, topic = kinds[load["kind"]]
    numbers = range(1, load["publishers"] + 1)
    names = [(load["topic"] or topic).replace("*", str(number)) for number in numbers]
    middleware = kind(load)
    counters = Counters(names, load["readers"])
    pids = [
        child(partial(middleware.read, counters.topics, partial(counters.received, at)))
        for at in range(load["readers"])
    ]
    for at, name in enumerate(names):
        make, sent, matches = (
            partial(middleware.writer, name),
            partial(counters.sent, at),
            partial(counters.matches, at),
        )
        pids.append(child(partial(publish, make, load["rate_hz"], load["readers"], sent, matches)))
    file = os.open(sys.argv[2] + ".new", os.O_WRONLY | os.O_CREAT, 0o600)
    named = False
    while True:
        time.sleep(COUNTED_S)
        ended, _ = os.waitpid(-1, os.WNOHANG)
        if ended in pids:
            sys.exit(f"{'reader' if pids.index(ended) < load['readers'] else 'publisher'} process {ended} ended")
        totals = counters.totals()
        if totals is None:
            continue
        os.pwrite(file, struct.pack(f"<{1 + len(totals)}Q", time.monotonic_ns(), *totals), 0)
        if not named:
            # The file is there once there is something in it.
            os.rename(sys.argv[2] + ".new", sys.argv[2])
            named = True


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    main()
