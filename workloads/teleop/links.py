"""What goes between the processes of the split arrangement, over SOCK_SEQPACKET pairs: packets arrive whole and in
order, and the end of a process is the end of its links. Nothing on the setpoint's way waits for a reader."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from dataclasses import dataclass

_SETPOINT = struct.Struct("<Qqq6d")
_NUMBER = struct.Struct("<I")
PACKET_BYTES_MAX = 65536


@dataclass(frozen=True)
class Setpoint:
    """Joint angles for the follower, with the robot's own time of the state that they were made from."""

    id: int
    source_ns: int
    produced_ns: int
    joints_deg: tuple[float, ...]


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Link:
    """One end; `is_open` turns false when the other end is gone."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.is_open = True

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    def _send(self, packet: bytes) -> bool:
        """Whether there was room for it."""
        try:
            self._end.send(packet, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def _receive(self) -> bytes | None:
        """The next packet that waits, if any."""
        try:
            packet = self._end.recv(PACKET_BYTES_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            packet = b""
        self.is_open = self.is_open and packet != b""
        return packet or None


class Setpoints(Link):
    def send(self, setpoint: Setpoint) -> bool:
        """False: there was no room, and the setpoint is lost."""
        packet = _SETPOINT.pack(setpoint.id, setpoint.source_ns, setpoint.produced_ns, *setpoint.joints_deg)
        return self._send(packet)

    def waiting(self) -> list[Setpoint]:
        """All that wait, oldest first."""
        setpoints = []
        while packet := self._receive():
            number, source_ns, produced_ns, *joints = _SETPOINT.unpack(packet)
            setpoints.append(Setpoint(number, source_ns, produced_ns, tuple(joints)))
        return setpoints


class Numbers(Link):
    """Questions and answers of the heartbeat."""

    def send(self, number: int) -> bool:
        return self._send(_NUMBER.pack(number))

    def waiting(self) -> list[int]:
        numbers = []
        while packet := self._receive():
            numbers.append(int(_NUMBER.unpack(packet)[0]))
        return numbers


class Control(Link):
    """Words between the main process and a part; off the setpoint's way, so they may wait."""

    def say(self, word: str, **facts: object) -> None:
        with contextlib.suppress(OSError):
            self._end.send(json.dumps([word, facts]).encode())

    def hear(self, timeout_s: float | None = None) -> tuple[str, dict[str, object]] | None:
        """The next word, or `None` after the time-out or at the other's end."""
        self._end.settimeout(timeout_s)
        try:
            packet = self._end.recv(PACKET_BYTES_MAX)
        except TimeoutError:
            return None
        except OSError:
            packet = b""
        finally:
            self._end.settimeout(None)
        self.is_open = self.is_open and packet != b""
        if not packet:
            return None
        word, facts = json.loads(packet)
        return word, facts
