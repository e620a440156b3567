"""The two arms of the source's loop: Denavit-Hartenberg parameters, joint limits, forward kinematics. (The arms
themselves are `src/arms.rs`.)

Angles are degrees at the interfaces, as the vendor's are; lengths are metres; matrices are 4 x 4.

Source: the vendor's robot descriptions, FAIR-INNOVATION/frcobot_ros2 at 6ee4abc,
``fairino_description/urdf/fairino3_v6.urdf`` and ``fairino20_v6.urdf``: link offsets, joint limits and
joint speeds. Their chain is the standard DH chain with twists 90, 0, 0, 90, -90, 0 degrees. They end at
joint 6. The FR3's flange offset d6 = 0.100 m is from the package robotkinematicscatalogue; for the FR20
none was found in text, so its tool point is the origin of joint 6 (d6 = 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, degrees, radians, sin

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TWIST_RAD = np.radians([90.0, 0.0, 0.0, 90.0, -90.0, 0.0])
TWIST_COS_SIN = [(cos(twist), sin(twist)) for twist in TWIST_RAD]


@dataclass(frozen=True, eq=False)
class Arm:
    """One arm. ``a_m`` and ``d_m`` are the DH lengths, one for each joint."""

    name: str
    a_m: tuple[float, ...]
    d_m: tuple[float, ...]
    lower_deg: Array
    upper_deg: Array

    def frames(self, joints_deg: Array) -> list[Array]:
        """Pose of the base and of every joint's DH frame, the tool's last."""
        pose = np.eye(4)
        frames = [pose]
        for theta, a, d, twist in zip(np.radians(joints_deg), self.a_m, self.d_m, TWIST_RAD, strict=True):
            pose = pose @ dh_matrix(float(theta), d, a, float(twist))
            frames.append(pose)
        return frames

    def tool_m(self, joints_deg: Array) -> Array:
        """Position of the tool point in the base frame, by scalars: a tenth of the time that the matrices take."""
        ax, ay, az = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
        x = y = z = 0.0
        for theta_deg, a, d, (cos_twist, sin_twist) in zip(joints_deg, self.a_m, self.d_m, TWIST_COS_SIN, strict=True):
            ct, st = cos(radians(theta_deg)), sin(radians(theta_deg))
            # Along the old z, round it, along the new x, round that.
            x, y, z = x + d * az[0], y + d * az[1], z + d * az[2]
            ax, ay = (
                (ct * ax[0] + st * ay[0], ct * ax[1] + st * ay[1], ct * ax[2] + st * ay[2]),
                (ct * ay[0] - st * ax[0], ct * ay[1] - st * ax[1], ct * ay[2] - st * ax[2]),
            )
            x, y, z = x + a * ax[0], y + a * ax[1], z + a * ax[2]
            ay, az = (
                (
                    cos_twist * ay[0] + sin_twist * az[0],
                    cos_twist * ay[1] + sin_twist * az[1],
                    cos_twist * ay[2] + sin_twist * az[2],
                ),
                (
                    cos_twist * az[0] - sin_twist * ay[0],
                    cos_twist * az[1] - sin_twist * ay[1],
                    cos_twist * az[2] - sin_twist * ay[2],
                ),
            )
        return np.array((x, y, z))

    def tool_pose_mm_deg(self, joints_deg: Array) -> list[float]:
        """x, y, z in mm and rx, ry, rz in degrees (Z-Y-X order of the vendor's manual)."""
        pose = self.frames(joints_deg)[-1]
        rx = degrees(atan2(pose[2, 1], pose[2, 2]))
        ry = degrees(atan2(-pose[2, 0], float(np.hypot(pose[2, 1], pose[2, 2]))))
        rz = degrees(atan2(pose[1, 0], pose[0, 0]))
        return [*(float(v) for v in pose[:3, 3] * 1000.0), rx, ry, rz]

    def jacobian(self, joints_deg: Array) -> Array:
        """Geometric Jacobian, 6 x 6: metres and radians for each radian of a joint."""
        frames = self.frames(joints_deg)
        tool = frames[-1][:3, 3]
        columns = [np.concatenate((np.cross(f[:3, 2], tool - f[:3, 3]), f[:3, 2])) for f in frames[:-1]]
        return np.array(columns).T


def dh_matrix(theta_rad: float, d_m: float, a_m: float, twist_rad: float) -> Array:
    """Standard DH step: turn about z, move along z, move along x, turn about x."""
    ct, st, ca, sa = np.cos(theta_rad), np.sin(theta_rad), np.cos(twist_rad), np.sin(twist_rad)
    return np.array(
        [
            [ct, -st * ca, st * sa, a_m * ct],
            [st, ct * ca, -ct * sa, a_m * st],
            [0.0, sa, ca, d_m],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


LOWER_DEG = np.degrees([-3.0543, -4.6251, -2.8274, -4.6251, -3.0543, -3.0543])
UPPER_DEG = np.degrees([3.0543, 1.4835, 2.8274, 1.4835, 3.0543, 3.0543])

FR3 = Arm(
    "FR3",
    a_m=(0.0, -0.28, -0.24001, 0.0, 0.0, 0.0),
    d_m=(0.14, 0.0, 0.0, 0.102, 0.102, 0.1),
    lower_deg=LOWER_DEG,
    upper_deg=UPPER_DEG,
)
FR20 = Arm(
    "FR20",
    a_m=(0.0, -1.0, -0.716, 0.0, 0.0, 0.0),
    d_m=(0.215, 0.0, 0.0, 0.16601, 0.138, 0.0),
    lower_deg=LOWER_DEG,
    upper_deg=UPPER_DEG,
)
ARMS = {arm.name: arm for arm in (FR3, FR20)}

HOME_DEG = np.array([0.0, -110.0, 100.0, -80.0, -90.0, 0.0])
"""Where both arms start: elbow up, tool down, far from every limit and singularity."""
