"""The robot's body in MuJoCo, behind a socket: servos' torques come in, the joints' places go back."""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from .failures import PERIOD_S, Failure
from .fall import Fall

Numbers = NDArray[np.float64]

MODEL = Path(__file__).with_name("robot.xml")
LEGS, JOINTS = 4, 3
SERVOS = LEGS * JOINTS
STEP_S = 0.0005
# Numbers of a message from the servos (src/world.rs): the time; each servo's torque, mode and fault.
TOLD = 1 + 3 * SERVOS
# Folded under the body, feet where they will stand: shoulder, femur, tibia.
FOLDED = (-0.100, 0.969, -2.803)


class Physics:
    """Steps the model as the servos ask for it, and lets a failure happen."""

    def __init__(self, failure: Failure, feel: Path) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data = mujoco.MjData(self.model)
        self.data.qpos[7:] = FOLDED * LEGS
        mujoco.mj_forward(self.model, self.data)
        self.failure = failure
        self.fall = Fall(self.model, self.data)
        self._feel = feel
        self._feeling = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._feeling.setblocking(False)
        self._placed = np.zeros(10 + 3 * SERVOS + 2 * LEGS)

    def begin(self, servos: socket.socket) -> None:
        """Answers the servos once, with where the robot lies: before they know that, nobody may ask them."""
        if servos.recv(8 * TOLD):
            servos.send(self._place(failed=False).tobytes())

    def serve(self, servos: socket.socket, until_s: float, each: Callable[[float], None]) -> None:
        """Answers the servos until `until_s` of their time, or until they go. `each` is told the time."""
        while message := servos.recv(8 * TOLD):
            told = np.frombuffer(message)
            time_s = float(told[0])
            if time_s >= until_s:
                return
            each(time_s)
            placed = self.step(time_s, told[1:].reshape(SERVOS, 3)).tobytes()
            servos.send(placed)
            # The host may be gone or hang; then nobody feels.
            with contextlib.suppress(OSError):
                self._feeling.sendto(placed[:80], str(self._feel))

    def step(self, time_s: float, told: Numbers) -> Numbers:
        """Moves on by one step under the servos' torques and gives what they are to know of it."""
        data, failure = self.data, self.failure
        failed = time_s >= failure.at_s
        data.ctrl[:] = 0.0 if failed and failure.power_cut else told[:, 0]
        mujoco.mj_step(self.model, data)
        if failed:
            self.fall.watch(time_s - failure.at_s, told[:, 1])
        elif time_s >= failure.at_s - PERIOD_S:
            self.fall.usual(told[:, 1])
        return self._place(failed)

    def _place(self, failed: bool) -> Numbers:
        """What the servos are to know of it."""
        data, failure, placed = self.data, self.failure, self._placed
        placed[:10] = data.sensordata
        placed[4:7] *= 180.0 / math.pi
        joints = placed[10 : 10 + 3 * SERVOS].reshape(SERVOS, 3)
        joints[:, 0] = data.qpos[7:] / math.tau
        joints[:, 1] = data.qvel[6:] / math.tau
        joints[:, 2] = math.nan
        buses = placed[10 + 3 * SERVOS :].reshape(LEGS, 2)
        buses[:] = 0.0
        if failed:
            if failure.hot_servo is not None:
                joints[failure.hot_servo, 2] = failure.hot_c
            if failure.cut_bus is not None:
                buses[failure.cut_bus, 0] = 1.0
            if failure.deaf_bus is not None:
                buses[failure.deaf_bus, 1] = 1.0
        return placed
