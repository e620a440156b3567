"""The controller as the simulator's node has it: gives orders, hears news. It is a program in Rust; src/packets.rs says what goes over the
link."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from . import messages as m
from .options import Options
from .robot import Arm, Slips, end
from .trajectory import Trajectory

MOST_BYTES = 4096
"""No news is longer."""
RESET = struct.Struct("<8sQ")
FOLLOW = struct.Struct("<8s16sQ")
POINT = struct.Struct("<15d")
JOINT_STATE = struct.Struct("<8s4Q21d")
PROGRESS = struct.Struct("<8s16s2d")
ENDED = struct.Struct("<8s16s32s11Q4d")
EXECUTION = (
    *("first_command_ns", "last_command_ns", "cycles", "missed", "late"),
    *("lateness_p50_ns", "lateness_p99_ns", "lateness_max_ns", "step_p50_ns", "step_p99_ns", "slipped_ns"),
    *("simulated_s", "wall_s", "tracking_rms_rad", "tracking_max_rad"),
)
"""The fields of `Execution` in the packet's order."""


@dataclass
class State:
    resets: int
    slips: Slips
    positions: list[float]
    speeds: list[float]
    efforts: list[float]


@dataclass
class Progress:
    goal_id: list[int]
    elapsed_s: float
    error_rad: float


@dataclass
class Ended:
    goal_id: list[int]
    reason: str
    execution: m.Execution


class Controller:
    """Raises RobotError. Orders and news may be of different threads."""

    def __init__(self, arm: Arm, chosen: Options) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        limit = ["--stall-limit", str(int(chosen.stall_limit * 1e9))]
        priority = ["--fifo"] if chosen.priority == "fifo" else []
        self.process = arm.start("controller", arm.link.fileno(), theirs.fileno(), *limit, *priority)
        # An end that both have would not tell when the other has ended.
        arm.link.close()
        theirs.close()

    def reset(self, number: int) -> None:
        """Done when a state has this number."""
        self._send(RESET.pack(b"reset/1\0", number))

    def follow(self, goal_id: list[int], trajectory: Trajectory) -> None:
        points = zip(trajectory.times_s, trajectory.positions, trajectory.speeds, strict=True)
        packet = FOLLOW.pack(b"follow/1", bytes(goal_id), len(trajectory.times_s))
        self._send(packet + b"".join(POINT.pack(time_s, *position, *speed) for time_s, position, speed in points))

    def _send(self, packet: bytes) -> None:
        # Of one that has ended its news tell.
        with contextlib.suppress(ConnectionError):
            self.link.send(packet)

    def news(self) -> Iterator[State | Progress | Ended]:
        """What comes, until the controller has ended."""
        while packet := self._packet():
            yield parsed(packet)

    def _packet(self) -> bytes:
        with contextlib.suppress(ConnectionError):
            return self.link.recv(MOST_BYTES)
        return b""

    def close(self) -> None:
        end(self.process)
        self.link.close()


def parsed(packet: bytes) -> State | Progress | Ended:
    """Raises ValueError."""
    try:
        match packet[:8]:
            case b"joints/1":
                _, resets, count, total_ns, longest_ns, *values = JOINT_STATE.unpack(packet)
                return State(resets, Slips(count, total_ns, longest_ns), values[:7], values[7:14], values[14:])
            case b"motion/1":
                _, goal_id, elapsed_s, error_rad = PROGRESS.unpack(packet)
                return Progress(list(goal_id), elapsed_s, error_rad)
            case b"ended/1\0":
                _, goal_id, reason, *values = ENDED.unpack(packet)
                execution = m.Execution(**dict(zip(EXECUTION, values, strict=True)))
                return Ended(list(goal_id), reason.rstrip(b"\0").decode("ascii"), execution)
    except (struct.error, UnicodeDecodeError) as wrong:
        raise ValueError(f"a packet of {len(packet)} bytes: {wrong}") from wrong
    raise ValueError(f"a packet {packet[:8]!r} of {len(packet)} bytes")
