"""A message flood over DDS or zenoh, in processes of its own; `taut lab` starts it.

Usage: flood.py LOAD COUNT. LOAD is the load as JSON, COUNT the file that says every 20 ms how far the flood is: four
little-endian 64-bit numbers, CLOCK_MONOTONIC in ns, messages received, messages sent, readers that the writers match.
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
ASKED_S = 0.5
PR_SET_PDEATHSIG = 1


class Counters:
    """Shared by all processes: for each its messages, and for each writer the readers it matches (from -1)."""

    def __init__(self, writers: int, readers: int) -> None:
        self.writers, self.readers = writers, readers
        self.memory = mmap.mmap(-1, 8 * (2 * writers + readers))
        self.words = memoryview(self.memory).cast("q")
        for writer in range(writers):
            self.matches(writer, -1)

    def sent(self, writer: int, n: int) -> None:
        self.words[writer] = n

    def matches(self, writer: int, n: int) -> None:
        self.words[self.writers + writer] = n

    def received(self, reader: int, n: int) -> None:
        self.words[2 * self.writers + reader] = n

    def totals(self) -> tuple[int, int, int] | None:
        """Received, sent, matched; None until every writer has looked for readers."""
        writers = self.writers
        matched = self.words[writers : 2 * writers].tolist()
        if min(matched) < 0:
            return None
        return sum(self.words[2 * writers :].tolist()), sum(self.words[:writers].tolist()), sum(matched)


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
        n = 0
        while True:
            waiting.wait(duration(milliseconds=100))
            for reader in readers:
                n += len(reader.take(N=1000))
            received(n)


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
            received(sum(counts))


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
    kinds = {"dds": (Dds, "/flood_topic_*"), "zenoh": (Zenoh, "flood/topic_*")}
    kind, topic = kinds[load["kind"]]
    numbers = range(1, load["publishers"] + 1)
    names = [(load["topic"] or topic).replace("*", str(number)) for number in numbers]
    middleware = kind(load)
    counters = Counters(len(names), load["readers"])
    pids = [
        child(partial(middleware.read, sorted(set(names)), partial(counters.received, at)))
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
        os.pwrite(file, struct.pack("<4Q", time.monotonic_ns(), *totals), 0)
        if not named:
            # The file is there once there is something in it.
            os.rename(sys.argv[2] + ".new", sys.argv[2])
            named = True


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    main()
