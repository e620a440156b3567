"""One arm as the source's process sees it: its newest state from the stream, its calls over XML-RPC.

Like the vendor's SDK, `servo_j` first looks at the *cached* safety-stop bits (code 99), then calls over
one kept-alive connection, and tries again for ever when the socket fails. Here "for ever" ends when the
run is stopped or the controller's process is gone.
The proxy is not safe for threads: callers hold their own lock.
"""

from __future__ import annotations

import http.client
import threading
import time
import xmlrpc.client
from collections.abc import Callable, Sequence

from .processes import StartError
from .stream import State, StateStream

SAFETY_STOP = 99
COMMAND_PERIOD_S = 0.008
"""ServoJ's default cmdT, which the source's call leaves as it is."""
RETRY_WAIT_S = 0.1


class TransportError(RuntimeError):
    """A call could not be made; the run is being stopped or the answer was not XML-RPC."""


class ArmClient:
    """`on_state` gets every state, in the receiver's thread."""

    def __init__(
        self,
        host: str,
        command_port: int,
        state_port: int,
        receiver: str,
        hopeless: Callable[[], bool] = lambda: False,
        role: str = "arm",
    ) -> None:
        self._hopeless = hopeless
        self.on_state: Callable[[State], None] = lambda _: None
        self.retries = 0
        self._newest: State | None = None
        self._stopping = threading.Event()
        self._proxy = xmlrpc.client.ServerProxy(f"http://{host}:{command_port}", allow_none=True)
        self._stream = StateStream(host, state_port, receiver)
        self.receiver = self._stream.receiver
        self._thread = threading.Thread(target=self._receive, name=f"{role}-stream", daemon=True)

    def start(self) -> None:
        """Ask for the state stream and receive it from now on."""
        self._stream.start()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._stream.shut_down()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)
        self._stream.close()

    def abandon_retries(self) -> None:
        """Make a call that is being tried again give up."""
        self._stopping.set()

    def state(self) -> State | None:
        return self._newest

    def wait_for_state(self, timeout_s: float) -> State:
        deadline = time.monotonic() + timeout_s
        while self._newest is None:
            if time.monotonic() > deadline:
                raise TransportError(f"no state arrived within {timeout_s:g} s")
            time.sleep(0.005)
        return self._newest

    def safety_code(self) -> int:
        newest = self._newest
        if newest is None:
            return 0
        stopped = newest.values["safety_stop0_state"][0] or newest.values["safety_stop1_state"][0]
        return SAFETY_STOP if stopped else 0

    def servo_j(self, joints_deg: Sequence[float], message_id: int) -> int:
        code = self.safety_code()
        if code:
            return code
        target = [float(v) for v in joints_deg]
        command_id = message_id & 0x7FFFFFFF  # XML-RPC integers are 32 bits
        answer = self.call("ServoJ", target, [0.0] * 4, 0.0, 0.0, COMMAND_PERIOD_S, 0.0, 0.0, command_id)
        assert isinstance(answer, int)
        return answer

    def call(self, name: str, *arguments: object) -> object:
        while True:
            try:
                return getattr(self._proxy, name)(*arguments)
            except (OSError, http.client.HTTPException) as failure:
                self.retries += 1
                if self._stopping.wait(RETRY_WAIT_S) or self._hopeless():
                    raise TransportError(f"{name}: {failure}") from failure
            except (xmlrpc.client.Error, ValueError) as failure:
                raise TransportError(f"{name}: {failure}") from failure

    def must(self, name: str, *arguments: object) -> None:
        """As `call`, for what a run cannot start without."""
        code = self.call(name, *arguments)
        if code != 0:
            raise StartError(f"{name} was refused with code {code}")

    def _receive(self) -> None:
        while not self._stopping.is_set():
            states = self._stream.read()
            if states is None:
                return
            for state in states:
                self._newest = state
                self.on_state(state)
