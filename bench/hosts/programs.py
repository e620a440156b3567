"""Programs as they come from Debian, on two hosts: what they say that they sent, beside what taut matched and made chains of."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from net import RELAY, ROOT, namespaces

MESSAGES = 1000
# Limits: of the calls that received, and of the messages.
KNOWN = 0.99
IN_CHAIN = 0.95


@dataclass(frozen=True)
class Program:
    name: str
    needs: str
    server: list[str]
    client: list[str]
    # How many messages the client says that went there.
    sent: Callable[[str], int]
    # What the points of the chain that carries them hold, in order; none where a thread that spins sends them, which is no loop.
    chain: list[str]
    # Whether its messages align the clocks.
    aligns: bool
    # Whether what was matched are messages of topics, and not calls.
    is_ros: bool = False
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Matched:
    name: str
    sent: int
    # Calls that received on either host, and those with a sending call that is known; of ROS 2 messages that were taken.
    received: int
    known: int
    in_chain: int | None
    error_ns: float | None
    bound_ns: float | None

    @property
    def holds(self) -> bool:
        return self.is_known and self.is_chained is not False and self.is_bounded is not False

    @property
    def is_known(self) -> bool:
        # Each message that was sent was received by a call of its own.
        return self.known >= KNOWN * max(self.received, self.sent)

    # None: the limit does not apply to this program.
    @property
    def is_chained(self) -> bool | None:
        return None if self.in_chain is None else self.in_chain >= IN_CHAIN * self.sent

    @property
    def is_bounded(self) -> bool | None:
        if self.error_ns is None:
            return None
        return self.bound_ns is not None and abs(self.error_ns) <= self.bound_ns


PUBLISH = f"for i in $(seq {MESSAGES}); do echo $i; sleep .003; done | mosquitto_pub -h {RELAY} -t t -l"
PROGRAMS = [
    Program(
        "redis: a client that sets a key every 3 ms (TCP)",
        "redis-server",
        ["redis-server", "--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""],
        ["redis-cli", "-h", RELAY, "-r", str(MESSAGES), "-i", "0.003", "SET", "key", "value"],
        lambda said: said.count("OK"),
        ["desk:redis-cli", "robot:redis-server"],
        True,
    ),
    Program(
        "mosquitto: from a publisher to the broker and on to a subscriber (TCP)",
        "mosquitto",
        ["mosquitto", "-c", "mosquitto.conf"],
        ["bash", "-c", f"mosquitto_sub -h {RELAY} -t t -C {MESSAGES} & sleep 1; {PUBLISH}; wait"],
        lambda said: len(re.findall(r"^\d+$", said, re.MULTILINE)),
        ["desk:mosquitto_pub", "robot:mosquitto", "desk:mosquitto_sub"],
        True,
    ),
    Program(
        "sockperf: 300 datagrams a second, each answered (UDP)",
        "sockperf",
        ["sockperf", "server", "-i", RELAY, "-p", "11111"],
        ["sockperf", "under-load", "-i", RELAY, "-p", "11111", "--mps", "300", "-t", "3", "--reply-every", "1"],
        lambda said: int(re.search(r"SentMessages=(\d+)", said)[1]),
        [],
        False,
    ),
]


def matched(taut: str, folder: Path, dds_python: str | None, ros: Path) -> list[Matched]:
    """`dds_python`: a Python with the package cyclonedds. `ros`: a virtual environment with the wheels of ROS 2."""
    folder.mkdir()
    programs = [*PROGRAMS, *([dds(dds_python)] if dds_python else []), ros2(ros)]
    return [of_program(taut, folder / str(at), one) for at, one in enumerate(programs) if shutil.which(one.needs)]


def dds(python: str) -> Program:
    command = [str(Path(python).absolute()), str(ROOT / "bench/hosts/dds.py")]
    return Program(
        "CycloneDDS: a setpoint every 5 ms, each answered with a state (UDP)",
        command[0],
        [*command, "robot", str(MESSAGES)],
        [*command, "desk", str(MESSAGES)],
        lambda said: int(said.strip() or 0),
        ["desk:python", "robot:recv"],
        False,
    )


def ros2(ros: Path) -> Program:
    """The nodes of cli/taut/tests/hosts."""
    ros = ros.resolve()
    command = [str(ros / "bin/python"), str(ROOT / "cli/taut/tests/hosts/ros_pair.py")]
    return Program(
        "ROS 2: a setpoint every 10 ms, each answered with a state (topics)",
        command[0],
        [*command, "robot", str(MESSAGES)],
        [*command, "desk", str(MESSAGES)],
        # It ends with the answer to its last one.
        lambda said: MESSAGES,
        ["robot:/robot take /setpoint", "desk:/desk take /state"],
        True,
        True,
        {
            "AMENT_PREFIX_PATH": str(ros),
            "LD_LIBRARY_PATH": str(ros / "lib"),
            # Memory would be shared by what are two hosts here.
            "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",
            "ROS_DOMAIN_ID": "77",
        },
    )


# Beside other work kernel events may be lost, and calls with them.
ATTEMPTS = 5


def whole(taut: str, folder: Path, program: Program) -> tuple[Path, str]:
    """A folder with two recordings that lost nothing, and what the client said."""
    for attempt in range(ATTEMPTS):
        of_attempt = folder / str(attempt)
        said = record_pair(taut, of_attempt, program)
        reported = subprocess.run(
            [taut, "report", "desk.mcap", "robot.mcap", "--join"], cwd=of_attempt, capture_output=True
        )
        if reported.returncode == 0:
            return of_attempt, said
    raise RuntimeError(f"{program.name}: each of {ATTEMPTS} recordings lost events, or {reported.stderr.decode()}")


def record_pair(taut: str, folder: Path, program: Program) -> str:
    folder.mkdir(parents=True)
    (folder / "mosquitto.conf").write_text("listener 1883 0.0.0.0\nallow_anonymous true\n")
    environment = {name: value for name, value in os.environ.items() if name != "TAUT_SESSION"}
    environment |= program.environment

    def record(namespace: str, host: str, command: list[str]) -> subprocess.Popen[str]:
        words = [taut, "record", "-q", "--ignore-loss", "--host-name", host, "-o", f"{host}.mcap", "--", *command]
        words = ["ip", "netns", "exec", namespace, *words]
        return subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    with namespaces() as (desk, robot, _):
        server = record(robot, "robot", program.server)
        time.sleep(2)
        client = record(desk, "desk", program.client)
        said, _ = client.communicate()
        server.terminate()
        server.communicate()
    return said


def of_program(taut: str, folder: Path, program: Program) -> Matched:
    folder, said = whole(taut, folder, program)

    def report(*words: str) -> dict:
        command = [taut, "report", "desk.mcap", "robot.mcap", "--join", "--format", "json", *words]
        return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)

    one_clock = report()
    notes = "\n".join(one_clock["notes"])
    known = sum(int(count) for count in re.findall(r"sending call is known of (\d+) calls", notes))
    not_known = sum(int(count) for count in re.findall(r"and not of (\d+) more", notes))
    pattern = re.compile(".*".join(re.escape(part) for part in program.chain))
    # The name of a long chain has its ends only.
    points = [(" ".join(hop["to"] for hop in chain["hops"]), chain["messages"]) for chain in one_clock["chains"]]
    in_chain = max((messages for names, messages in points if pattern.search(names)), default=0)
    others = sum(
        int(count) for count in re.findall(r"no sender on another recorded host is known of (\d+) calls", notes)
    )
    aligned = report("--clocks", "messages") if program.aligns else None
    clock = aligned["recording"]["hosts"][1]["clock"] if aligned else {}
    received = known + not_known + others
    if aligned and program.is_ros:
        # Sockets carry discovery as well.
        taken = re.findall(r":publish /\w+ → \w+:take /\w+: ([\d,]+) messages?$", "\n".join(aligned["notes"]), re.M)
        known, received = sum(int(count.replace(",", "")) for count in taken), 2 * MESSAGES
    return Matched(
        program.name,
        program.sent(said),
        received,
        known,
        in_chain if program.chain else None,
        clock.get("offset_ns"),
        clock.get("bound_max_ns"),
    )
