"""The same nodes in three processes, each with an interpreter, and so a GIL, of its own.

The main process keeps the system-state manager, the orchestrator and the account; the leader node and the
follower node live beside their arms:

    leader node ──state──▶ manager → orchestrator ──command──▶ follower node
          └───────────────────── account ◀────────────────────────┘

Links are SOCK_SEQPACKET socket pairs: packets arrive whole and in order, nothing is copied twice, and the end
of a process is the end of its link. The follower takes the newest command; older ones that still waited are
`superseded`. Outcomes are stamped where they happen and counted here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import taut

from . import processes
from .arms import FR20, HOME_DEG
from .bus import RobotState
from .client import ArmClient, TransportError
from .cnde import RECEIVERS
from .ledger import Ledger
from .nodes import (
    FOLLOWER_COMMAND,
    FollowerNode,
    LeaderNode,
    Orchestrator,
    SystemStateManager,
)
from .safety import VALIDATORS, Limits

if TYPE_CHECKING:
    from .system import Options

ACCOUNT, CONTROL, RESULT = "account", "control", "result"
PACKET_BYTES_MAX = 65536


class Link:
    """One end of a socket pair, with the bus's `subscribe` and `publish`."""

    def __init__(self, end: socket.socket, on_lost: Callable[[bytes], None]) -> None:
        self._end, self.on_lost = end, on_lost
        self._handlers: dict[str, Callable[[bytes], None]] = {}
        self.failure: BaseException | None = None

    def subscribe(self, topic: str, name: str, handler: Callable[[bytes], None]) -> None:
        self._handlers[topic] = handler

    def publish(self, topic: str, data: bytes) -> None:
        """Never waits; what the other end has no room for is lost and told."""
        try:
            self._end.send(topic.encode() + b"\0" + data, socket.MSG_DONTWAIT)
        except OSError:
            self.on_lost(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def tell(self, topic: str, *words: object) -> None:
        """As `publish`, but waits: an account that loses a line is none."""
        with contextlib.suppress(OSError):
            self._end.send(topic.encode() + b"\0" + json.dumps(words).encode())

    def run(self, newest_of: str = "", superseded: Callable[[bytes], None] | None = None) -> None:
        """Hand packets to their handlers until the other end closes. Of `newest_of`, only the newest that
        waits; `superseded` gets the others."""
        waiting = self._receive()
        while waiting:
            topic, data = waiting
            waiting = None
            while topic == newest_of and superseded and (newer := self._receive(socket.MSG_DONTWAIT)):
                if newer[0] != newest_of:
                    waiting = newer
                    break
                superseded(data)
                data = newer[1]
            try:
                if handler := self._handlers.get(topic):
                    handler(data)
            except Exception as failure:  # kept for the end of the run: the loop must go on
                self.failure = self.failure or failure
            waiting = waiting or self._receive()

    def _receive(self, flags: int = 0) -> tuple[str, bytes] | None:
        try:
            packet = self._end.recv(PACKET_BYTES_MAX, flags)
        except OSError:
            return None
        topic, _, data = packet.partition(b"\0")
        return (topic.decode(), data) if packet else None


class RemoteLedger(Ledger):
    """Stamps outcomes here and has them counted at the other end of the link."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link, self._count = link, 0

    def produce(self) -> int:
        self._count += 1
        self._link.tell(ACCOUNT, "produce", self._count)
        return self._count

    def applied(self, message_id: int) -> None:
        taut.applied(message_id)
        self._link.tell(ACCOUNT, "applied", message_id)

    def drop(self, message_id: int, reason: str) -> None:
        taut.drop(message_id, reason)
        self._link.tell(ACCOUNT, "drop", message_id, reason)

    def modified(self, reason: str) -> None:
        self._link.tell(ACCOUNT, "modified", reason)


class NodeProcess:
    """A node's process and the link to it. `ready` is set when its arm is enabled."""

    def __init__(self, role: str, arm: processes.ControllerProcess, options: Options, on_lost: Callable[[bytes], None]):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._end = ours
        self.link = Link(ours, on_lost)
        self.ready = threading.Event()
        self.result: dict[str, object] = {}
        self._failure = ""
        self.link.subscribe(CONTROL, "control", self._on_control)
        self.link.subscribe(RESULT, "result", lambda data: self.result.update(json.loads(data)[0]))
        words = ["--role", role, "--fd", theirs.fileno(), "--commands", arm.command_port, "--states", arm.state_port]
        words += ["--receiver", options.receiver, "--validator", options.validator]
        command = [sys.executable, "-m", "workloads.teleop.split", *map(str, words)]
        path = os.pathsep.join(filter(None, [str(processes.PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        theirs.close()
        self._reader = threading.Thread(target=self._read, name=f"{role}-link", daemon=True)

    def start(self) -> None:
        self._reader.start()
        if not self.ready.wait(processes.START_TIMEOUT_S) or self._failure:
            raise processes.StartError(self._failure or "a node did not start")

    def stop(self) -> None:
        """Have it finish what it has; its account is complete when its link ends."""
        self.link.tell(CONTROL, "stop")
        self._reader.join(timeout=5.0)

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._end.close()

    def failures(self) -> list[str]:
        return [*self.result.get("failures", []), *([repr(self.link.failure)] if self.link.failure else [])]  # type: ignore[misc]

    def _read(self) -> None:
        self.link.run()
        self._failure = self._failure or "a node ended before it was ready"
        self.ready.set()

    def _on_control(self, data: bytes) -> None:
        word, *rest = json.loads(data)
        self._failure = str(rest[0]) if word == "failed" else ""
        self.ready.set()


def teleoperate(
    options: Options, stop: threading.Event, arms: tuple[processes.ControllerProcess, processes.ControllerProcess]
) -> tuple[Ledger, float, dict[str, object]]:
    """One run; returns the account, its seconds, and what the nodes counted."""
    ledger = Ledger(on_applied=lambda _: None, on_drop=lambda _id, _reason: None)

    def lost(data: bytes) -> None:
        message_id = RobotState.from_bytes(data).message_id
        ledger.drop(message_id, "queue_overflow")
        taut.drop(message_id, "queue_overflow")

    def account(data: bytes) -> None:
        match json.loads(data):
            case ["produce", _]:
                ledger.produce()
            case ["applied", message_id]:
                ledger.applied(message_id)
            case ["drop", message_id, reason]:
                ledger.drop(message_id, reason)
            case ["modified", reason]:
                ledger.modified(reason)

    leader, follower = NodeProcess("leader", arms[0], options, lost), NodeProcess("follower", arms[1], options, lost)
    try:
        for node in (leader, follower):
            node.link.subscribe(ACCOUNT, "account", account)
        manager = SystemStateManager(_Joined(leader.link, follower.link))
        Orchestrator(manager, follower.link, signs=np.ones(6), offsets_deg=np.zeros(6))
        follower.start()
        leader.start()
        leader.link.tell(CONTROL, "go")
        began = time.monotonic()
        stop.wait(options.duration_s)
        ran_s = time.monotonic() - began
        leader.stop()
        follower.stop()
    finally:
        leader.end()
        follower.end()
    counts = {
        "missed_publish_cycles": leader.result.get("missed_publish_cycles", 0),
        "leader_stream": leader.result.get("stream", {}),
        "follower_stream": follower.result.get("stream", {}),
        "servo_retries": follower.result.get("servo_retries", 0),
        "failures": leader.failures() + follower.failures(),
    }
    return ledger, ran_s, counts


class _Joined:
    """What the manager subscribes to: either link, whichever carries the topic."""

    def __init__(self, *links: Link) -> None:
        self._links = links

    def subscribe(self, topic: str, name: str, handler: Callable[[bytes], None]) -> None:
        for link in self._links:
            link.subscribe(topic, name, handler)


def main() -> int:
    """A node's process: `python -m workloads.teleop.split --role …`, started by the arrangement only."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--role", choices=["leader", "follower"], required=True)
    for number in ("--fd", "--commands", "--states"):
        parser.add_argument(number, type=int, required=True)
    parser.add_argument("--receiver", choices=RECEIVERS, required=True)
    parser.add_argument("--validator", choices=VALIDATORS, required=True)
    options = parser.parse_args()
    # Ctrl-C reaches the whole group; the main process decides what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = threading.Event()
    link = Link(socket.socket(fileno=options.fd), on_lost=lambda data: None)
    client = ArmClient("127.0.0.1", options.commands, options.states, RECEIVERS[options.receiver](), ended.is_set)
    try:
        client.start()
        client.wait_for_state(5.0)
        client.must("RobotEnable", 1)
        (_leader if options.role == "leader" else _follower)(link, client, options.validator)
    except (TransportError, processes.StartError, OSError) as failure:
        link.tell(CONTROL, "failed", str(failure))
        return 2
    finally:
        ended.set()
        client.stop()
    return 0


def _leader(link: Link, client: ArmClient, _validator: str) -> None:
    from .system import CIRCLE_RADIUS_MM, LAP_S

    ledger = RemoteLedger(link)
    link.on_lost = lambda data: ledger.drop(RobotState.from_bytes(data).message_id, "queue_overflow")
    node = LeaderNode(client, link, ledger)
    client.must("DragTeachSwitch", 1)

    def on_control(data: bytes) -> None:
        if json.loads(data)[0] == "go":
            client.must("SimHandCircle", CIRCLE_RADIUS_MM, LAP_S)
            node.loop.start()
        else:
            node.loop.stop()
            _finish(link, client, missed_publish_cycles=node.loop.missed_cycles)

    link.subscribe(CONTROL, "control", on_control)
    link.tell(CONTROL, "ready")
    link.run()


def _follower(link: Link, client: ArmClient, validator: str) -> None:
    ledger = RemoteLedger(link)
    checks = VALIDATORS[validator](FR20, Limits(), HOME_DEG)
    node = FollowerNode(client, link, checks, ledger)

    def on_control(_data: bytes) -> None:
        node.loop.stop()
        _finish(link, client, servo_retries=client.retries)

    link.subscribe(CONTROL, "control", on_control)
    link.tell(CONTROL, "ready")
    node.loop.start()
    link.run(FOLLOWER_COMMAND, lambda data: ledger.drop(RobotState.from_bytes(data).message_id, "superseded"))


def _finish(link: Link, client: ArmClient, **counts: object) -> None:
    failures = [repr(link.failure)] if link.failure else []
    link.tell(RESULT, {**counts, "stream": asdict(client.receiver.counts), "failures": failures})
    client.abandon_retries()
    link.close()


if __name__ == "__main__":
    sys.exit(main())
