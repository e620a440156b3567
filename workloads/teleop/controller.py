"""One simulated controller, a process of its own: command server (XML-RPC) and state stream (TCP).

It takes the calls of the vendor's Python SDK that this workload needs, with their names, argument order,
units and codes (0 done, 4 bad parameter, 14 refused, 99 safety stop). Calls named `Sim…` are the
simulation's own. Started by `processes.start`; prints its two ports as one JSON line, then serves until
SIGTERM or until its parent is gone.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import math
import os
import signal
import socket
import socketserver
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

import numpy as np

from . import cnde, realtime
from .arms import ARMS, HOME_DEG, Arm, circle_joints_deg
from .journal import Journal
from .servo import Servo, Target
from .wire import WIRES, Wire, wire

DONE, BAD_PARAMETER, REFUSED, SAFETY_STOP = 0, 4, 14, 99
RESTING, MOVING, DRAGGED = 1, 2, 4
HAND_RAMP_S = 1.0
PAST_STEPS = 1000
"""Of the servo, kept for states that are served late; a later one gets the oldest."""


class Moment(NamedTuple):
    """A step of the servo."""

    t_ns: int
    joints_deg: tuple[float, ...]
    speeds_deg_s: tuple[float, ...]


class Controller:
    """State of one arm and the calls on it. Every call first brings the servo up to now."""

    def __init__(self, arm: Arm, now_ns: int, journal: Journal | None = None) -> None:
        self._arm = arm
        self._lock = threading.Lock()
        self._journal = journal
        self._servo = Servo(arm, [float(v) for v in HOME_DEG], now_ns, self._keep)
        self._past: deque[Moment] = deque(maxlen=PAST_STEPS)
        self._keep(now_ns, self._servo.joints_deg)
        # The robot's calendar is set once: later steps of the host's are not its own.
        self._calendar_ns = time.time_ns() - time.monotonic_ns()
        self._enabled = False
        self._stopped = False
        self._servo_mode = False
        self._dragging = False
        self._servo_commands = 0
        self._last_target = list(self._servo.joints_deg)
        self._hand: Hand | None = None

    def RobotEnable(self, state: int) -> int:
        with self._at_now():
            self._enabled = bool(state)
            return DONE

    def ServoMoveStart(self) -> int:
        with self._at_now():
            if self._stopped:
                return SAFETY_STOP
            if not self._enabled or self._dragging:
                return REFUSED
            self._servo_mode = True
            return DONE

    def ServoMoveEnd(self) -> int:
        with self._at_now():
            self._servo_mode = False
            return DONE

    def ServoJ(
        self,
        joint_pos: list[float],
        axisPos: list[float],
        acc: float,
        vel: float,
        cmdT: float,
        filterT: float,
        gain: float,
        id: int,
    ) -> int:
        """Joint target in degrees; `acc`, `vel`, `filterT` and `gain` are not open in the vendor's either."""
        with self._at_now():
            if self._stopped:
                return SAFETY_STOP
            if len(joint_pos) != 6 or not all(math.isfinite(v) for v in joint_pos) or cmdT <= 0:
                return BAD_PARAMETER
            within = np.all((self._arm.lower_deg <= joint_pos) & (joint_pos <= self._arm.upper_deg))
            if not within or not self._enabled or not self._servo_mode:
                return REFUSED
            self._servo.aim([float(v) for v in joint_pos])
            self._last_target = [float(v) for v in joint_pos]
            self._servo_commands += 1
            if self._journal:
                self._journal.command(time.monotonic_ns(), id, cmdT, self._last_target)
            return DONE

    def DragTeachSwitch(self, state: int) -> int:
        """1: the arm gives way to the operator's hand; 0: it holds."""
        with self._at_now():
            if self._stopped or not self._enabled:
                return SAFETY_STOP if self._stopped else REFUSED
            self._dragging = bool(state)
            if not self._dragging:
                self._servo.aim(self._servo.joints_deg)
            return DONE

    def StopMotion(self) -> int:
        with self._at_now():
            self._hand = None
            self._servo.aim(self._servo.joints_deg)
            return DONE

    def GetActualJointPosDegree(self, flag: int) -> list[float]:
        with self._at_now():
            return [DONE, *self._servo.joints_deg]

    def SimSafetyStop(self, state: int) -> int:
        """Press (1) or release (0) the safety stop."""
        with self._at_now():
            self._stopped = bool(state)
            if self._stopped:
                self._hand = None
                self._servo_mode = False
                self._servo.aim(self._servo.joints_deg)
            return DONE

    def SimHandCircle(self, radius_mm: float, lap_s: float) -> int:
        """The operator's hand leads the dragged arm round a circle until StopMotion."""
        if not self._dragging:
            return REFUSED
        path = circle_joints_deg(self._arm, HOME_DEG, radius_mm / 1000.0)
        with self._at_now():
            self._hand = Hand([[float(v) for v in row] for row in path], lap_s, self._servo.time_ns)
            self._servo.follow(self._hand.joints_deg)
            return DONE

    def SimHandLaps(self) -> float:
        with self._at_now():
            return self._hand.laps(self._servo.time_ns) if self._hand else 0.0

    def state(self, at_ns: int) -> cnde.Values:
        """The state at a time that has come: a robot samples when it is due, however late its stream is served."""
        with self._lock:
            self._servo.advance(at_ns)
            then = next((moment for moment in reversed(self._past) if moment.t_ns <= at_ns), self._past[0])
            joints, speeds = np.array(then.joints_deg), np.array(then.speeds_deg_s)
            tool_speed = self._arm.jacobian(joints) @ np.radians(speeds)
            mode = DRAGGED if self._dragging else MOVING if float(np.abs(speeds).max()) > 0.01 else RESTING
            return {
                "robot_state": (mode,),
                "robot_mode": (0,),
                "actual_joint_pos": then.joints_deg,
                "actual_TCP_pos": tuple(self._arm.tool_pose_mm_deg(joints)),
                "actual_joint_vel": then.speeds_deg_s,
                "actual_TCP_cmpvel": (
                    float(np.linalg.norm(tool_speed[:3])) * 1000.0,
                    float(np.degrees(np.linalg.norm(tool_speed[3:]))),
                ),
                "motion_queue_len": (0,),
                "safety_stop0_state": (int(self._stopped),),
                "safety_stop1_state": (0,),
                "rbt_enable_state": (int(self._enabled),),
                "last_servoJ_target": tuple(self._last_target),
                "servoJ_cmd_num": (self._servo_commands,),
                "robot_time": cnde.calendar_time(then.t_ns + self._calendar_ns),
            }

    def close(self) -> None:
        with self._at_now():
            if self._journal:
                self._journal.close()
                self._journal = None

    def _keep(self, t_ns: int, joints_deg: list[float]) -> None:
        self._past.append(Moment(t_ns, tuple(joints_deg), tuple(self._servo.speeds_deg_s)))
        if self._journal:
            self._journal.step(t_ns, joints_deg)

    def _at_now(self) -> _AtNow:
        return _AtNow(self._lock, self._servo)


class _AtNow:
    """Holds the lock with the servo brought up to now."""

    def __init__(self, lock: threading.Lock, servo: Servo) -> None:
        self._lock, self._servo = lock, servo

    def __enter__(self) -> None:
        self._lock.acquire()
        self._servo.advance(time.monotonic_ns())

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Hand:
    """An operator's hand that goes round a closed path, gently up to speed within a second."""

    def __init__(self, path: list[list[float]], lap_s: float, start_ns: int) -> None:
        self._path, self._lap_s, self._start_ns = path, lap_s, start_ns
        self.joints_deg: Target = self._joints_deg

    def laps(self, now_ns: int) -> float:
        t = (now_ns - self._start_ns) / 1e9
        ramped = t * t / (2.0 * HAND_RAMP_S) if t < HAND_RAMP_S else t - HAND_RAMP_S / 2.0
        return ramped / self._lap_s

    def _joints_deg(self, now_ns: int) -> list[float]:
        at = self.laps(now_ns) % 1.0 * len(self._path)
        index, part = int(at), at - int(at)
        before, after = self._path[index % len(self._path)], self._path[(index + 1) % len(self._path)]
        return [b + part * (a - b) for b, a in zip(before, after, strict=True)]


def stream(client: socket.socket, controller: Controller, wire_kind: str) -> None:
    """Serve one client of the state stream until it hangs up."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    receiver = cnde.FramedReceiver()
    names: list[str] = []
    period_ns = count = 0
    while True:
        for frame in receiver.feed(_read(client)):
            answer = b"\x00"
            if frame.kind == cnde.OUTPUT_CONFIG:
                try:
                    period_ms, names = cnde.parse_output_config(frame.data)
                    period_ns = period_ms * 1_000_000
                except ValueError as refusal:
                    answer = b"\x01" + str(refusal).encode()
            elif frame.kind != cnde.OUTPUT_START or not names:
                answer = b"\x01"
            client.sendall(cnde.encode(cnde.Frame(count, cnde.MESSAGE, answer)))
            if frame.kind == cnde.OUTPUT_START and names:
                _send_states(wire(wire_kind, client), controller, names, period_ns)


def _send_states(line: Wire, controller: Controller, names: list[str], period_ns: int) -> None:
    deadline_ns, count = time.monotonic_ns(), 0
    while True:
        deadline_ns += period_ns
        time.sleep(max(0, deadline_ns - time.monotonic_ns()) / 1e9)
        data = cnde.pack_fields(names, controller.state(deadline_ns))
        line.send(cnde.encode(cnde.Frame(count, cnde.OUTPUT_DATA, data)))
        count = (count + 1) % 256


def _read(client: socket.socket) -> bytes:
    read = client.recv(cnde.READ_BYTES)
    if not read:
        raise ConnectionResetError("client hung up")
    return read


class CommandHandler(SimpleXMLRPCRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps the connection, as the SDK's proxy expects
    disable_nagle_algorithm = True


class CommandServer(socketserver.ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave a call up hangs up: that is its affair."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def serve_commands(controller: Controller) -> CommandServer:
    server = CommandServer(("127.0.0.1", 0), CommandHandler, logRequests=False, allow_none=True)
    server.register_instance(controller)
    threading.Thread(target=server.serve_forever, name="commands", daemon=True).start()
    return server


def serve_states(controller: Controller, wire_kind: str = "plain") -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))

    def client_thread(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):  # a client that went away connects anew
            stream(client, controller, wire_kind)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=client_thread, args=(client,), name="state-client", daemon=True).start()

    threading.Thread(target=accept, name="states", daemon=True).start()
    return listener


def die_with_parent(parent_pid: int) -> None:
    """SIGKILL to this process when its parent ends, however it ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--arm", choices=ARMS, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--wire", choices=WIRES, default="plain")
    parser.add_argument("--journal", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    die_with_parent(args.parent)
    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to all; the parent decides
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    realtime.ask(realtime.CONTROLLER)
    journal = Journal(args.journal, args.arm) if args.journal else None
    controller = Controller(ARMS[args.arm], time.monotonic_ns(), journal)
    commands = serve_commands(controller)
    states = serve_states(controller, args.wire)
    realtime.with_small_collections()
    print(json.dumps({"commands": commands.server_address[1], "states": states.getsockname()[1]}), flush=True)
    stop.wait()
    controller.close()


if __name__ == "__main__":
    main()
