"""Calls to a controller that end: no call takes longer than it may, and a failed one is tried again within its
setpoint's period only. (The vendor's SDK, and so the source, tries for ever.)"""

from __future__ import annotations

import contextlib
import http.client
import xmlrpc.client
from collections.abc import Sequence

from .processes import StartError

CALL_TIMEOUT_S = 2.0


class CallError(RuntimeError):
    """A call was not answered in time, or not with XML-RPC."""


class Commands:
    """One kept-alive connection; for one thread."""

    def __init__(self, host: str, port: int) -> None:
        self._transport = _Bounded()
        self._proxy = xmlrpc.client.ServerProxy(f"http://{host}:{port}", transport=self._transport, allow_none=True)

    def call(self, name: str, *arguments: object, timeout_s: float = CALL_TIMEOUT_S) -> object:
        self._transport.bound(timeout_s)
        try:
            return getattr(self._proxy, name)(*arguments)
        except (OSError, http.client.HTTPException, xmlrpc.client.Error, ValueError) as failure:
            # A late answer must not be taken for the next call's.
            self._transport.close()
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
        with contextlib.suppress(OSError):
            self._transport.close()


class _Bounded(xmlrpc.client.Transport):
    def __init__(self) -> None:
        super().__init__()
        self._timeout_s = CALL_TIMEOUT_S

    def bound(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        connection = self._connection[1]
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(timeout_s)

    def make_connection(self, host: xmlrpc.client._HostType) -> http.client.HTTPConnection:
        connection = super().make_connection(host)
        connection.timeout = self._timeout_s
        return connection
