"""How a robot comes down: how fast it hits the ground, and how hard."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

# Modes of moteus in which a servo no longer follows anybody: fault, time-out, zero velocity.
LET_DOWN = (1, 11, 12)
# The body of a robot that stands is at 21 to 25 cm, that of one on its belly below 12.
STANDS_M = 0.18


@dataclass
class Measured:
    """From the failure on: s, m/s, rad/s, N, J."""

    # Just before the failure: the body's height, and servos that no longer followed a host.
    before_height_m: float | None = None
    before_let_down: int = 0

    # Until every servo damps, or is off with a fault of its own.
    damped_after_s: float | None = None
    # Until anything but a foot touches the ground, and how fast the body came down then.
    down_after_s: float | None = None
    impact_m_s: float | None = None
    fastest_down_m_s: float = 0.0
    # Upward: in the gait's last period before the failure; while servos still follow setpoints; once all damp.
    usual_up_m_s: float = 0.0
    following_up_m_s: float = 0.0
    damped_up_m_s: float = 0.0
    # How far the body ever was above where it was when all servos damped.
    damped_rise_m: float = 0.0
    fastest_joint_rad_s: float = 0.0
    # Of the ground on everything but the feet, and on the whole robot.
    peak_body_n: float = 0.0
    peak_ground_n: float = 0.0
    # How far the mechanical energy ever rose above its least so far, once all servos damped.
    energy_rise_j: float = 0.0


class Fall:
    """Watches a robot from its failure on."""

    def __init__(self, model: Any, data: Any) -> None:
        self.measured = Measured()
        self._model, self._data = model, data
        # A contact is always one of the ground, which is first among the geoms.
        self._feet = [model.geom(f"foot{leg}").id for leg in (1, 2, 3, 4)]
        self._force = np.zeros(6)
        self._least_j = float("inf")
        self._down_m_s = 0.0
        self._damped_m = float("inf")

    def usual(self, modes: NDArray[np.float64]) -> None:
        """Looks at the robot in the gait's last period before the failure."""
        self.measured.before_height_m = float(self._data.qpos[2])
        self.measured.before_let_down = int(np.isin(modes, LET_DOWN).sum())
        self.measured.usual_up_m_s = max(self.measured.usual_up_m_s, float(self._data.qvel[2]))

    def watch(self, after_s: float, modes: NDArray[np.float64]) -> None:
        """Looks at the robot, so long after the failure."""
        data, measured = self._data, self.measured
        if measured.damped_after_s is None and np.isin(modes, LET_DOWN).all():
            measured.damped_after_s = after_s
            self._damped_m = float(data.qpos[2])
        body_n, ground_n = self._ground()
        if body_n > 0 and measured.down_after_s is None:
            # The contact has already slowed this step: the speed is that of the one before.
            measured.down_after_s, measured.impact_m_s = after_s, self._down_m_s
        self._down_m_s = -float(data.qvel[2])
        measured.fastest_down_m_s = max(measured.fastest_down_m_s, self._down_m_s)
        measured.fastest_joint_rad_s = max(measured.fastest_joint_rad_s, float(np.abs(data.qvel[6:]).max()))
        measured.peak_body_n = max(measured.peak_body_n, body_n)
        measured.peak_ground_n = max(measured.peak_ground_n, ground_n)
        if measured.damped_after_s is None:
            measured.following_up_m_s = max(measured.following_up_m_s, -self._down_m_s)
        else:
            measured.damped_up_m_s = max(measured.damped_up_m_s, -self._down_m_s)
            measured.damped_rise_m = max(measured.damped_rise_m, float(data.qpos[2]) - self._damped_m)
            energy_j = float(data.energy.sum())
            self._least_j = min(self._least_j, energy_j)
            measured.energy_rise_j = max(measured.energy_rise_j, energy_j - self._least_j)

    def _ground(self) -> tuple[float, float]:
        """The ground's force on everything but the feet, and on all, N."""
        body_n = ground_n = 0.0
        for at in range(self._data.ncon):
            mujoco.mj_contactForce(self._model, self._data, at, self._force)
            ground_n += float(self._force[0])
            if self._data.contact[at].geom[1] not in self._feet:
                body_n += float(self._force[0])
        return body_n, ground_n

    def stood(self) -> bool:
        """Whether the failure met a robot that stood and followed its host: of any other it shows nothing."""
        height_m = self.measured.before_height_m
        return height_m is not None and height_m >= STANDS_M and self.measured.before_let_down == 0

    def told(self) -> dict[str, float | None]:
        """As plain numbers."""
        return asdict(self.measured)
