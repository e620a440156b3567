"""Two hosts for the loop: the leader's and the follower's, network namespaces joined by veth over a relay. Needs root and `ip`.

The setpoints' way alone crosses them: its two ends are sockets made in the namespaces, and the leader and the follower inherit them. Each
of the two is recorded for itself, on a CPU of its own where there are two. The arms are where they always are.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import native
from .processes import StartError, environment

LEADER, RELAY, RELAY_FAR, FOLLOWER = "10.96.1.1", "10.96.1.2", "10.96.2.2", "10.96.2.1"
PORT = 4712
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Hosts:
    relay: str
    """Delay and mean jitter of the relay, µs: "200:100"."""
    hog_s: float
    """A hog on the follower's host takes its CPU for this time, five times a second; 0: there is none."""
    folder: Path
    """Where leader.mcap and follower.mcap go."""

    def recorded(self, role: str) -> list[str]:
        """What stands in front of a part's command."""
        taut = native.binary("taut")
        if taut is None:
            raise StartError(native.missing("taut"))
        file = str(self.folder / f"{role}.mcap")
        return [str(taut), "record", "-q", "--ignore-loss", "--host-name", role, "-o", file, "--"]

    @contextmanager
    def link(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        """The leader's end and the follower's, with the relay between them, and the hog."""
        with ExitStack() as stack:
            leader, relay, follower = stack.enter_context(_namespaces())
            with _inside(follower):
                far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                far.bind((FOLLOWER, PORT))
            with _inside(relay):
                between = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                between.bind(("", PORT))
            with _inside(leader):
                near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                near.connect((RELAY, PORT))
            _start(stack, ["relay", str(between.fileno()), FOLLOWER, str(PORT), *self.relay.split(":")], between)
            if self.hog_s > 0:
                _start(stack, ["hog", str(cpu_of("follower")), str(1e3 * self.hog_s)])
            yield near, far


def cpu_of(role: str) -> int:
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[0] if role == "leader" else cpus[-1]


def _start(stack: ExitStack, words: list[str], *ends: socket.socket) -> None:
    command = [sys.executable, "-m", "workloads.teleop.beside", *words]
    process = subprocess.Popen(command, pass_fds=[end.fileno() for end in ends], env=environment())
    stack.callback(process.wait)
    stack.callback(process.kill)
    for end in ends:
        end.close()


@contextmanager
def _namespaces() -> Iterator[list[str]]:
    names = [f"{name}-{os.getpid()}" for name in ("leader", "relay", "follower")]
    leader, relay, follower = names

    def ip(words: str) -> None:
        done = subprocess.run(["ip", *words.split()], capture_output=True, text=True)
        if done.returncode != 0:
            raise StartError(f"--hosts 2: ip {words}: {done.stderr.strip()}; run it as root")

    try:
        for name in names:
            ip(f"netns add {name}")
        for near, address, far, far_address in (
            (leader, LEADER, "rl", RELAY),
            (follower, FOLLOWER, "rf", RELAY_FAR),
        ):
            ip(f"-n {near} link add e type veth peer name {far} netns {relay}")
            for name, interface, own in ((near, "e", address), (relay, far, far_address)):
                ip(f"-n {name} addr add {own}/24 dev {interface}")
                ip(f"-n {name} link set {interface} up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """What this thread makes meanwhile is made there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{namespace}") as there:
        for target in (there, own):
            if libc.setns(target.fileno(), CLONE_NEWNET) != 0:
                raise StartError(f"--hosts 2: setns: {os.strerror(ctypes.get_errno())}; run it as root")
            if target is there:
                yield
