"""The arm in its cell: where its tool is, what it touches, and which joints bring the tool to a place."""

from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

JOINTS = tuple(f"panda_joint{number}" for number in range(1, 8))
LINKS = ("panda_link0", *(f"panda_link{number}" for number in range(1, 8)), "panda_hand")
MAX_SPEED_RAD_S = np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61])
"""Of the joints: Franka Control Interface documentation, robot and interface specifications."""
MAX_ACCELERATION_RAD_S2 = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
MAX_JERK_RAD_S3 = np.array([7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0])

Vector = NDArray[np.float64]


class Arm:
    """Kinematics and collisions on a state of its own."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name("panda.xml")))
        self.data = mujoco.MjData(self.model)
        self.tool = self.model.site("tool").id
        self.home: Vector = self.model.key("home").qpos.copy()
        self.lower: Vector = self.model.jnt_range[:, 0].copy()
        self.upper: Vector = self.model.jnt_range[:, 1].copy()

    def tool_at(self, joints: Vector) -> Vector:
        """Position in m from the base."""
        self.data.qpos[:] = joints
        mujoco.mj_kinematics(self.model, self.data)
        place: Vector = self.data.site_xpos[self.tool].copy()
        return place

    def turned_at(self, joints: Vector) -> Vector:
        """The tool's axes in the base's frame, one a column."""
        self.data.qpos[:] = joints
        mujoco.mj_kinematics(self.model, self.data)
        axes: Vector = self.data.site_xmat[self.tool].reshape(3, 3).copy()
        return axes

    def poses(self, joints: Vector) -> tuple[Vector, Vector]:
        """Position and quaternion (w x y z) of every link, of `link0` first."""
        self.data.qpos[:] = joints
        mujoco.mj_kinematics(self.model, self.data)
        return self.data.xpos[1:], self.data.xquat[1:]

    def touches(self, joints: Vector) -> bool:
        """Whether the arm touches the cell or itself."""
        self.data.qpos[:] = joints
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
        return bool(self.data.ncon > 0)

    def reach(self, place: Vector, random: np.random.Generator, starts: int = 12, solutions: int = 2) -> list[Vector]:
        """Joints that bring the tool there, turned as at home, touching nothing; nearest to home first. From home and starts around it."""
        found: list[Vector] = []
        for start in self.home + np.vstack([np.zeros(len(JOINTS)), random.normal(0.0, 0.5, (starts, len(JOINTS)))]):
            joints = self._descend(place, np.clip(start, self.lower, self.upper))
            if joints is not None and not self.touches(joints):
                found.append(joints)
                if len(found) == solutions:
                    break
        return sorted(found, key=lambda joints: float(np.abs(joints - self.home).max()))

    def _descend(self, place: Vector, joints: Vector, steps: int = 40) -> Vector | None:
        """Damped least squares (Wampler 1986) to 0.1 mm and 1 mrad, or None."""
        linear, angular = np.zeros((3, len(JOINTS))), np.zeros((3, len(JOINTS)))
        wanted = self.turned_at(self.home)
        for _ in range(steps):
            # Half the sum of the cross products of the axes is the turn between two orientations, where it is small.
            turn = 0.5 * np.cross(self.turned_at(joints), wanted, axis=0).sum(axis=1)
            error = np.concatenate([place - self.data.site_xpos[self.tool], turn])
            if np.linalg.norm(error[:3]) < 1e-4 and np.linalg.norm(turn) < 1e-3:
                # A half turn too has no cross products.
                return joints if np.sum(self.turned_at(joints) * wanted) > 2.9 else None
            mujoco.mj_comPos(self.model, self.data)
            mujoco.mj_jacSite(self.model, self.data, linear, angular, self.tool)
            jacobian = np.vstack([linear, angular])
            step = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + 1e-4 * np.eye(6), error)
            joints = np.clip(joints + np.clip(step, -0.3, 0.3), self.lower, self.upper)
        return None
