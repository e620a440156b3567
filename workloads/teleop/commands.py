"""Calls to a controller that end: no call takes longer than it may, and a failed one is tried again within its
setpoint's period only. (The vendor's SDK, and so the source, tries for ever.)

XML-RPC is the standard library's. The HTTP around it is done here, in one send and mostly one receive: the library's own
takes as long as the controller.
"""

from __future__ import annotations

import contextlib
import socket
import time
import xmlrpc.client
from collections.abc import Sequence

from .processes import StartError

CALL_TIMEOUT_S = 2.0
RECEIVE_BYTES, ANSWER_BYTES_MAX = 65536, 1 << 20


class CallError(RuntimeError):
    """A call was not answered in time, or not with XML-RPC."""


class Commands:
    """One kept-alive connection; for one thread."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._head = f"POST /RPC2 HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: text/xml\r\nContent-Length: "
        self._socket: socket.socket | None = None

    def call(self, name: str, *arguments: object, timeout_s: float = CALL_TIMEOUT_S) -> object:
        body = xmlrpc.client.dumps(arguments, name, allow_none=True)  # type: ignore[arg-type]
        try:
            answer = self._post(body.encode(), time.monotonic() + timeout_s)
            return xmlrpc.client.loads(answer)[0][0]
        except (OSError, xmlrpc.client.Error, ValueError, IndexError) as failure:
            # A late answer must not be taken for the next call's.
            self.close()
            raise CallError(f"{name}: {failure}") from failure

    def must(self, name: str, *arguments: object) -> None:
        """As `call`, for what a run cannot start without."""
        code = self.call(name, *arguments)
        if code != 0:
            raise StartError(f"{name} was refused with code {code}")

    def servo_j(self, joints_deg: Sequence[float], period_s: float, setpoint: int, timeout_s: float) -> int:
        """Gives the controller's code; 0 means that the target was taken."""
        command_id = setpoint & 0x7FFFFFFF  # XML-RPC integers are 32 bits
        arguments = (list(joints_deg), [0.0] * 4, 0.0, 0.0, period_s, 0.0, 0.0, command_id)
        answer = self.call("ServoJ", *arguments, timeout_s=timeout_s)
        assert isinstance(answer, int)
        return answer

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _post(self, body: bytes, deadline: float) -> bytes:
        """The answer's body. Raises OSError or ValueError."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=_left_s(deadline))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(_left_s(deadline))
        self._socket.sendall(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while (head_ends := answer.find(b"\r\n\r\n")) < 0:
            answer += self._receive(deadline, len(answer))
        status, *fields = answer[:head_ends].split(b"\r\n")
        if status.split(b" ")[1:2] != [b"200"]:
            raise ValueError(f"the controller answered {status.decode(errors='replace')}")
        lengths = [field.split(b":")[1] for field in fields if field.lower().startswith(b"content-length:")]
        if len(lengths) != 1:
            raise ValueError("the controller's answer has no length")
        ends = head_ends + 4 + int(lengths[0])
        while len(answer) < ends:
            answer += self._receive(deadline, len(answer))
        if len(answer) > ends:
            raise ValueError("the controller sent more than its answer")
        return answer[head_ends + 4 :]

    def _receive(self, deadline: float, so_far: int) -> bytes:
        assert self._socket is not None
        self._socket.settimeout(_left_s(deadline))
        received = self._socket.recv(RECEIVE_BYTES)
        if not received or so_far > ANSWER_BYTES_MAX:
            raise ConnectionError("the controller hung up, or sends without end")
        return received


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s
