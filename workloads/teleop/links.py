"""What Python's side has of the links between the processes of the split arrangement (`src/links.rs`), SOCK_SEQPACKET pairs:
packets arrive whole and in order, and the end of a process is the end of its links."""

from __future__ import annotations

import contextlib
import json
import socket

PACKET_BYTES_MAX = 65536


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

    def waiting(self) -> int:
        """Takes all packets that wait; gives how many."""
        count = 0
        while True:
            try:
                packet = self._end.recv(PACKET_BYTES_MAX, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return count
            except OSError:
                packet = b""
            if not packet:
                self.is_open = False
                return count
            count += 1


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
