"""The split arrangement: what must be on time in programs of its own, `taut-teleop`, and the desk in Python beside them.

    FR3 ──states──▶ leader ──setpoints──▶ follower ──commands──▶ FR20
                      └─copies─▶ desk        ▲  └─◀─states──────────┤
                                             └─heartbeat─ guard ◀───┘ states

The way of a setpoint is leader → follower and nothing else. This side starts the parts, has them begin and end in
order, and gathers what they counted.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from . import processes
from .hosts import Hosts, cpu_of
from .links import Control, pair

if TYPE_CHECKING:
    from .system import Options

RESULT_TIMEOUT_S = 5.0
NO_SETPOINTS: dict[str, object] = {
    "produced": 0,
    "applied": 0,
    "dropped": {},
    "modified": {},
    "in_flight": 0,
    "unexplained": 0,
}


class Part:
    """One process and the control link to it; `shared` are descriptors that it inherits."""

    def __init__(
        self, role: str, settings: dict[str, object], shared: list[int], hosts: Hosts | None, **ends: socket.socket
    ) -> None:
        ours, theirs = pair()
        ends["control"] = theirs
        self.role = role
        self.control = Control(ours)
        self.result: dict[str, object] = {}
        fds = {name: end.fileno() for name, end in ends.items()}
        # On a host of its own it is recorded, and its parent is the recorder.
        has_host = hosts is not None and role in ("leader", "follower")
        words = json.dumps({**settings, "fds": fds, "parent": 0 if has_host else os.getpid()})
        program = [sys.executable, "-m", "workloads.teleop.part"] if role == "desk" else [processes.program()]
        environment = processes.environment()
        if hosts is not None and has_host:
            program = [*hosts.recorded(role), "taskset", "-c", str(cpu_of(role)), *program]
            # A session of its own.
            environment.pop("TAUT_SESSION", None)
        self._process = subprocess.Popen([*program, role, words], pass_fds=[*fds.values(), *shared], env=environment)
        for end in ends.values():
            end.close()

    def await_ready(self) -> dict[str, object]:
        word = self.control.hear(processes.START_TIMEOUT_S)
        if word is None or word[0] != "ready":
            why = str(word[1].get("why")) if word else f"the {self.role} did not start"
            raise processes.StartError(why)
        return word[1]

    def finish(self, **facts: object) -> None:
        """Have it end what it has and say what it counted."""
        self.control.say("stop", **facts)
        word = self.control.hear(RESULT_TIMEOUT_S)
        self.result = word[1] if word else {"failures": [f"the {self.role} ended without a result"]}

    def end(self) -> None:
        self.control.close()
        self._process.terminate()
        try:
            # A recorder has its file to end.
            self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:  # it hangs: nothing of it is needed any more
            self._process.kill()
            self._process.wait()


def teleoperate(
    options: Options,
    stop: threading.Event,
    arms: tuple[processes.ArmProcess, processes.ArmProcess],
    page: int,
    hand: dict[str, object],
) -> tuple[float, dict[str, object]]:
    """One run; its seconds, and what the parts counted."""
    arm = [{"host": "127.0.0.1", "commands": a.command_port, "states": a.state_port} for a in arms]
    common: dict[str, object] = {"receiver": options.receiver, "validator": options.validator, "guard": options.guard}
    common |= {"wire": options.wire, "companions": options.companions, "operator": options.operator, **hand}
    common |= {"clock": processes.path_of(page)}
    hosts = options.two_hosts
    heartbeat, copies = pair(), pair()
    with ExitStack() as parts:
        setpoints = parts.enter_context(hosts.link()) if hosts else pair()

        def start(role: str, settings: dict[str, object], **ends: socket.socket) -> Part:
            part = Part(role, {**common, **settings}, [page], hosts, **ends)
            parts.callback(part.end)
            return part

        desk = start("desk", {}, desk=copies[1])
        guard = start("guard", arm[1], heartbeat=heartbeat[1])
        leader = start("leader", arm[0], setpoints=setpoints[0], desk=copies[0])
        follower = start("follower", arm[1], setpoints=setpoints[1], heartbeat=heartbeat[0])
        for part in (desk, guard, follower, leader):
            part.await_ready()
        leader.control.say("go")
        began = time.monotonic()
        stop.wait(options.duration_s)
        ran_s = time.monotonic() - began
        leader.finish()
        follower.finish(produced=leader.result.get("produced", 0))
        guard.finish()
        desk.finish()
    return ran_s, _gather(desk.result, guard.result, follower.result, leader.result)


def _gather(
    desk: dict[str, object], guard: dict[str, object], follower: dict[str, object], leader: dict[str, object]
) -> dict[str, object]:
    parts = {"leader": leader, "follower": follower, "guard": guard, "desk": desk}
    failures = [text for part in parts.values() for text in part.get("failures", [])]  # type: ignore[attr-defined]
    return {
        "setpoints": follower.get("setpoints", NO_SETPOINTS),
        "guard": guard.get("guard", {}),
        "stops": follower.get("stops", []),
        "stopped": follower.get("stopped"),
        "holds": follower.get("holds", 0),
        "heartbeat_lapse_ms": follower.get("heartbeat_lapse_ms", 0),
        "commands": follower.get("commands", 0),
        "added_delay_ms": follower.get("added_delay_ms", {}),
        "leader_stream": leader.get("stream", {}),
        "follower_stream": follower.get("stream", {}),
        "servo_retries": follower.get("servo_retries", 0),
        "diverged": follower.get("diverged", 0),
        "priorities": {name: part["priority"] for name, part in parts.items() if "priority" in part},
        "desk": desk,
        "failures": failures,
    }
