"""The leader's process of the split arrangement: a state frame comes in, a setpoint goes out. One thread.

The robot's own time decides when a setpoint is due, not a timer of the host's: setpoints are then 20 ms apart as the
operator moved, and made from a state that has just come.
"""

from __future__ import annotations

import selectors
import time
from dataclasses import asdict

import numpy as np
import taut

from . import realtime
from .arms import Array
from .commands import Commands
from .links import Control, Setpoint, Setpoints
from .processes import StartError
from .stream import STATE_PERIOD_MS, State, StateStream

SETPOINT_PERIOD_NS = 20_000_000
STATE_PERIOD_NS = STATE_PERIOD_MS * 1_000_000


class Leader:
    def __init__(
        self, stream: StateStream, setpoints: Setpoints, desk: Setpoints, signs: Array, offsets_deg: Array
    ) -> None:
        self._stream, self._setpoints, self._desk = stream, setpoints, desk
        self._signs, self._offsets_deg = signs, offsets_deg
        self._last_source_ns = self._newest_source_ns = 0
        self.produced = 0
        self.overflowed = 0

    def on_readable(self) -> bool:
        """Take what came; false at the stream's end."""
        pre_read_ns = time.monotonic_ns()
        # Mostly the next frame is the one after the last; only a setpoint's own read is its first point.
        is_expected = self._is_due(self._newest_source_ns + STATE_PERIOD_NS)
        if is_expected:
            taut.stamp("publish.pre_read", self.produced + 1)
        states = self._stream.read(wait=False)
        if states is None:
            return False
        # Of a bunch each is a point of the operator's way: the newest alone would cut his corners.
        for state in states:
            self._newest_source_ns = state.source_ns
            if self._is_due(state.source_ns):
                message_id = self.produced + 1
                if not is_expected:
                    taut.stamp("publish.pre_read", message_id)
                is_expected = False
                taut.stamp("publish.got_state", message_id)
                self._publish(message_id, state, pre_read_ns)
        return True

    def _is_due(self, source_ns: int) -> bool:
        # A frame's stamp is cut to milliseconds; half a frame is far from either neighbour.
        return source_ns - self._last_source_ns >= SETPOINT_PERIOD_NS - STATE_PERIOD_NS // 2

    def _publish(self, message_id: int, state: State, produced_ns: int) -> None:
        self._last_source_ns = state.source_ns
        self.produced = message_id
        joints = self._signs * np.array(state.values["actual_joint_pos"]) + self._offsets_deg
        setpoint = Setpoint(message_id, state.source_ns, produced_ns, tuple(joints.tolist()))
        taut.stamp("orch.cb_converted", message_id)
        if not self._setpoints.send(setpoint):
            # The follower learns of it from the gap in the ids.
            self.overflowed += 1
        self._desk.send(setpoint)


def run(control: Control, settings: dict[str, object], setpoints: Setpoints, desk: Setpoints) -> None:
    stream = StateStream(str(settings["host"]), int(str(settings["states"])), str(settings["receiver"]))
    commands = Commands(str(settings["host"]), int(str(settings["commands"])))
    stream.start()
    commands.must("RobotEnable", 1)
    commands.must("DragTeachSwitch", 1)
    leader = Leader(stream, setpoints, desk, signs=np.ones(6), offsets_deg=np.zeros(6))
    priority = realtime.ask(realtime.LEADER)
    control.say("ready")
    _await_go(control, stream)
    commands.must("SimHandCircle", settings["radius_mm"], settings["lap_s"])
    commands.close()
    taut.prepare_thread()
    realtime.without_collections()
    # What came while the hand took hold shows an arm at rest: no setpoint is made of it.
    while stream.read(wait=False):
        pass
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ, leader.on_readable)
        selector.register(control, selectors.EVENT_READ, lambda: False)
        while all(key.data() for key, _ in selector.select()):
            pass
    facts = {"produced": leader.produced, "overflowed": leader.overflowed, "priority": priority}
    control.say("result", **facts, stream=asdict(stream.receiver.counts))
    control.hear(timeout_s=5.0)


def _await_go(control: Control, stream: StateStream) -> None:
    """Reads the stream meanwhile, so that the first setpoint is made from a new state."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is control:
                    if control.hear() is None:
                        raise StartError("the main process is gone")
                    return
                if stream.read(wait=False) is None:
                    raise StartError("the leader's controller hung up")
