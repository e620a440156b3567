"""The nodes in the order a setpoint passes them, with its twelve stamps.

leader node → bus → system-state manager → orchestrator → bus → follower node → ServoJ. In the source
arrangement all are threads of one interpreter, as in the source system: that is what is to be found out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import taut

from .arms import Array
from .bus import RobotState, Subscriptions, Topics
from .client import ArmClient, TransportError
from .guards import NaiveGuard, TautGuard
from .ledger import Ledger
from .safety import Validator

PUBLISH_PERIOD_NS = 20_000_000
REFUSALS = {4: "malformed"}
"""The ledger's reason for a controller's code; every other one means that it is not ready to follow."""
LEADER_STATE, FOLLOWER_STATE, FOLLOWER_COMMAND = "leader/state", "follower/state", "follower/command"


class PublishLoop:
    """Calls `publish` at 50 Hz on absolute deadlines; a cycle that is over already is left out."""

    def __init__(self, name: str, publish: Callable[[], None]) -> None:
        self.missed_cycles = 0
        self._publish = publish
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        deadline_ns = time.monotonic_ns()
        while not self._stop.is_set():
            deadline_ns += PUBLISH_PERIOD_NS
            late_ns = time.monotonic_ns() - deadline_ns
            if late_ns > 0:
                missed = late_ns // PUBLISH_PERIOD_NS + 1
                self.missed_cycles += missed
                deadline_ns += missed * PUBLISH_PERIOD_NS
            time.sleep((deadline_ns - time.monotonic_ns()) / 1e9 if deadline_ns > time.monotonic_ns() else 0)
            self._publish()


class LeaderNode:
    """Reads the leader's newest state and publishes it: a setpoint is born."""

    def __init__(self, client: ArmClient, bus: Topics, ledger: Ledger) -> None:
        self._client, self._bus, self._ledger = client, bus, ledger
        self.loop = PublishLoop("leader-node", self._publish)

    def _publish(self) -> None:
        message_id = self._ledger.produce()
        taut.stamp("publish.pre_read", message_id)
        state = self._client.state()
        taut.stamp("publish.got_state", message_id)
        if state is None:
            self._ledger.drop(message_id, "not_enabled")
            return
        joints = list(state.values["actual_joint_pos"])
        self._bus.publish(LEADER_STATE, RobotState(message_id, "leader", joints, state.source_ns).to_bytes())


class SystemStateManager:
    """Keeps the newest state of every arm and calls back whoever asked for changes, in its own thread."""

    def __init__(self, bus: Subscriptions) -> None:
        self.newest: dict[str, RobotState] = {}
        self._callbacks: list[Callable[[RobotState], None]] = []
        bus.subscribe(LEADER_STATE, "ssm-leader", self._on_state)
        bus.subscribe(FOLLOWER_STATE, "ssm-follower", self._on_state)

    def on_change(self, callback: Callable[[RobotState], None]) -> None:
        self._callbacks.append(callback)

    def _on_state(self, data: bytes) -> None:
        state = RobotState.from_bytes(data)
        if state.message_id:
            taut.stamp("ssm.deserialized", state.message_id)
        self.newest[state.arm] = state
        if state.message_id:
            taut.stamp("sysstate.pre_callback", state.message_id)
        for callback in self._callbacks:
            callback(state)


class Orchestrator:
    """Turns a state of the leader into a command to the follower, joint by joint."""

    def __init__(self, manager: SystemStateManager, bus: Topics, signs: Array, offsets_deg: Array) -> None:
        self._bus, self._signs, self._offsets_deg = bus, signs, offsets_deg
        manager.on_change(self._on_change)

    def _on_change(self, state: RobotState) -> None:
        if state.arm != "leader":
            return
        taut.stamp("orch.cb_enter", state.message_id)
        joints = self._signs * np.array(state.joints_deg) + self._offsets_deg
        command = RobotState(state.message_id, "follower", [float(v) for v in joints], state.source_ns)
        taut.stamp("orch.cb_converted", state.message_id)
        taut.stamp("orch.cb_pre_serialize", state.message_id)
        self._bus.publish(FOLLOWER_COMMAND, command.to_bytes())


class FollowerNode:
    """Validates a command and writes it to the follower with ServoJ: the setpoint's outcome."""

    def __init__(
        self, client: ArmClient, bus: Topics, validator: Validator, guard: NaiveGuard | TautGuard, ledger: Ledger
    ) -> None:
        self._client, self._bus, self._validator, self._ledger = client, bus, validator, ledger
        self._guard = guard
        self._sdk_lock = threading.Lock()
        taut.name_lock("sdk_lock", self._sdk_lock)
        self._servo_mode = False
        self.loop = PublishLoop("follower-node", self._publish)
        bus.subscribe(FOLLOWER_COMMAND, "follower-write", self._on_command)

    def _publish(self) -> None:
        self._guard.tick(time.monotonic_ns())
        state = self._client.state()
        if state is not None:
            joints = list(state.values["actual_joint_pos"])
            self._bus.publish(FOLLOWER_STATE, RobotState(0, "follower", joints).to_bytes())

    def _on_command(self, data: bytes) -> None:
        arrived_ns = time.monotonic_ns()
        command = RobotState.from_bytes(data)
        message_id = command.message_id
        taut.stamp("follower.command_parsed", message_id)
        taut.stamp("follower.command_pre_hardware_write", message_id)
        try:
            self._write(command, arrived_ns)
        except TransportError:
            self._ledger.drop(message_id, "transport")

    def _write(self, command: RobotState, arrived_ns: int) -> None:
        message_id = command.message_id
        verdict = self._validator.validate(np.array(command.joints_deg), arrived_ns, command.source_ns)
        if verdict.joints_deg is None:
            self._ledger.drop(message_id, verdict.reason or "malformed")
            return
        if not self._guard.enables_motion:
            self._ledger.drop(message_id, "guard_latched")
            return
        code = self._ensure_servo_mode()
        if code == 0:
            taut.stamp("follower.command_pre_lock", message_id)
            with self._sdk_lock:
                taut.stamp("follower.command_lock_acquired", message_id)
                code = self._client.servo_j(verdict.joints_deg.tolist(), message_id)
            taut.stamp("follower.command_applied", message_id)
        if code != 0:
            self._servo_mode = False
            self._ledger.drop(message_id, REFUSALS.get(code, "not_enabled"))
            return
        if verdict.changed:
            self._ledger.modified(verdict.changed)
        self._ledger.applied(message_id)

    def _ensure_servo_mode(self) -> int:
        if self._servo_mode:
            return 0
        with self._sdk_lock:
            code = self._client.safety_code() or self._client.call("ServoMoveStart")
        assert isinstance(code, int)
        self._servo_mode = code == 0
        return code
