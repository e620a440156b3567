"""Two hosts and a relay between them as network namespaces, and what is recorded there."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DESK, RELAY, ROBOT = "10.98.1.1", "10.98.1.2", "10.98.2.1"
# Above other load of this machine, which would be causes of its own.
REAL_TIME = ["chrt", "-f", "50"]
# The port of all three, as /proc/net/udp has it.
PORT = ":1267 "


@dataclass(frozen=True)
class Relay:
    name: str
    # µs, and the mean of the queue: "200:100".
    there: str
    back: str
    # Of so many setpoints one takes `held_us` longer at each of four places (pair.c); 0: of none.
    every: int = 0
    held_us: int = 0


@contextmanager
def namespaces() -> Iterator[list[str]]:
    names = [f"{name}-{os.getpid()}" for name in ("desk", "relay", "robot")]
    desk, relay, robot = names

    def ip(words: str) -> None:
        subprocess.run(["ip", *words.split()], check=True)

    try:
        for name in names:
            ip(f"netns add {name}")
        for near, address, far, far_address in ((desk, DESK, "rd", RELAY), (robot, ROBOT, "rr", "10.98.2.2")):
            ip(f"-n {near} link add e type veth peer name {far} netns {relay}")
            for name, interface, own in ((near, "e", address), (relay, far, far_address)):
                ip(f"-n {name} addr add {own}/24 dev {interface}")
                ip(f"-n {name} link set {interface} up")
        # For DDS: its discovery is by multicast.
        for name, interface in ((desk, "e"), (relay, "rd")):
            ip(f"-n {name} link set lo up")
            ip(f"-n {name} route add 224.0.0.0/4 dev {interface}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def recorded(taut: str, folder: Path, relay: Relay, messages: int) -> Path:
    """A folder with desk.mcap and robot.mcap."""
    folder.mkdir()
    source = ROOT / "cli/taut/tests/hosts/pair.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-I", ROOT / "include", source, "-lm", "-o", folder / "pair"], check=True)
    held = [str(relay.every), str(relay.held_us)]
    with namespaces() as (desk, between, robot):

        def start(namespace: str, command: list[str]) -> subprocess.Popen[bytes]:
            environment = {name: value for name, value in os.environ.items() if name != "TAUT_SESSION"}
            return subprocess.Popen(["ip", "netns", "exec", namespace, *command], cwd=folder, env=environment)

        def record(namespace: str, host: str, command: list[str]) -> subprocess.Popen[bytes]:
            words = [
                taut,
                "record",
                "-q",
                "--ignore-loss",
                "--host-name",
                host,
                "-o",
                f"{host}.mcap",
                "--",
                *REAL_TIME,
                *command,
            ]
            return start(namespace, words)

        def until_bound(namespace: str, process: subprocess.Popen[bytes]) -> None:
            sockets = ["ip", "netns", "exec", namespace, "cat", "/proc/net/udp"]
            while PORT not in subprocess.run(sockets, capture_output=True, text=True).stdout:
                assert process.poll() is None, process.args
                time.sleep(0.05)

        running = [record(robot, "robot", ["./pair", "robot", *held])]
        until_bound(robot, running[-1])
        running.append(start(between, [*REAL_TIME, "./pair", "relay", DESK, ROBOT, relay.there, relay.back, *held]))
        until_bound(between, running[-1])
        running.append(record(desk, "desk", ["./pair", "desk", RELAY, str(messages), "5000", *held]))
        for process in running:
            assert process.wait() == 0, process.args
    return folder
