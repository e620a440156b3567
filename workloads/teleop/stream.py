"""One controller's state stream, from asking for it to its states. Nothing here waits unless told to: who reads
owns the thread."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass

from . import cnde

STATE_PERIOD_MS = 10
STATE_FIELDS = [
    "robot_state",
    "actual_joint_pos",
    "actual_TCP_pos",
    "actual_joint_vel",
    "actual_TCP_cmpvel",
    "safety_stop0_state",
    "safety_stop1_state",
    "rbt_enable_state",
    "last_servoJ_target",
    "servoJ_cmd_num",
    "robot_time",
]
ANSWER_TIMEOUT_S = 5.0


class StreamError(RuntimeError):
    """The controller refused the stream, or hung up."""


@dataclass(frozen=True)
class State:
    """One frame of the stream. `source_ns` is the robot's own calendar time, in whole milliseconds."""

    values: cnde.Values
    count: int
    source_ns: int
    arrived_ns: int
    frames_in_read: int


class StateStream:
    """Connected to one controller and read with one receiver; `fileno` is for a selector."""

    def __init__(self, host: str, port: int, receiver: str) -> None:
        self.receiver: cnde.Receiver = cnde.RECEIVERS[receiver](cnde.fields_bytes(STATE_FIELDS))
        self._socket = socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S)

    def start(self) -> None:
        """Ask for the fields and for the stream of them."""
        self._socket.sendall(cnde.encode(cnde.Frame(0, cnde.OUTPUT_CONFIG, _CONFIG)))
        answers = cnde.FramedReceiver()
        while not (frames := [f for f in answers.feed(self._must_read()) if f.kind == cnde.MESSAGE]):
            pass
        if frames[0].data[:1] != b"\x00":
            raise StreamError(f"the controller refused: {frames[0].data[1:].decode(errors='replace')}")
        self._socket.sendall(cnde.encode(cnde.Frame(1, cnde.OUTPUT_START, b"")))
        self._socket.settimeout(None)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self, wait: bool = True) -> list[State] | None:
        """The states that one read brings, oldest first; `None` at the stream's end."""
        try:
            read = self._socket.recv(cnde.READ_BYTES, 0 if wait else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not read:
            return None
        arrived_ns = time.monotonic_ns()
        frames = [frame for frame in self.receiver.feed(read) if frame.kind == cnde.OUTPUT_DATA]
        states = []
        for frame in frames:
            values = cnde.unpack_fields(STATE_FIELDS, frame.data)
            source_ns = cnde.calendar_ns(values["robot_time"])
            states.append(State(values, frame.count, source_ns, arrived_ns, len(frames)))
        return states

    def shut_down(self) -> None:
        """Make a thread that waits in `read` return."""
        with contextlib.suppress(OSError):  # the controller may have hung up first
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()

    def _must_read(self) -> bytes:
        read = self._socket.recv(cnde.READ_BYTES)
        if not read:
            raise StreamError("the controller hung up instead of answering")
        return read


_CONFIG = cnde.output_config(STATE_PERIOD_MS, STATE_FIELDS)
