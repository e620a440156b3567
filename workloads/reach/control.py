"""The joint-trajectory controller and the physics under it: one cycle every 2 ms of real time.

The arm does not wait for a late controller. When cycles were missed, the physics goes on under the last torques for as long as
they took, and the controller commands for the time that it is now."""

from dataclasses import dataclass, field

import mujoco
import numpy as np

from .arm import JOINTS, Arm, Vector
from .messages import Execution
from .trajectory import Trajectory

PERIOD_NS = 2_000_000
STIFFNESS, DAMPING = 900.0, 60.0
"""Of the computed torque, in 1/s² and 1/s: critically damped at 30 rad/s."""
PATH_TOLERANCE_RAD = 0.1
GOAL_TOLERANCE_RAD = 0.01
GOAL_SETTLE_S = 0.5
"""After the last point the arm may take so long to come within the tolerance."""


@dataclass
class Follow:
    """One trajectory on its way."""

    trajectory: Trajectory
    goal_id: list[int]
    began_ns: int = 0
    lateness_ns: list[int] = field(default_factory=list)
    steps_ns: list[int] = field(default_factory=list)
    errors_rad: list[float] = field(default_factory=list)
    missed: int = 0
    late: int = 0
    last_command_ns: int = 0

    def execution(self, now_ns: int) -> Execution:
        def rank(of: list[int], percent: float) -> int:
            return int(np.percentile(of, percent, method="higher")) if of else 0

        errors = np.array(self.errors_rad or [0.0])
        return Execution(
            first_command_ns=self.began_ns,
            last_command_ns=self.last_command_ns,
            cycles=len(self.lateness_ns),
            missed=self.missed,
            late=self.late,
            lateness_p50_ns=rank(self.lateness_ns, 50),
            lateness_p99_ns=rank(self.lateness_ns, 99),
            lateness_max_ns=max(self.lateness_ns, default=0),
            step_p50_ns=rank(self.steps_ns, 50),
            step_p99_ns=rank(self.steps_ns, 99),
            simulated_s=len(self.lateness_ns) * PERIOD_NS / 1e9,
            wall_s=(now_ns - self.began_ns) / 1e9 if self.began_ns else 0.0,
            tracking_rms_rad=float(np.sqrt(np.mean(errors**2))),
            tracking_max_rad=float(errors.max()),
        )


class Controller:
    """Physics, reference and torques. Everything here is of the control thread."""

    def __init__(self, stall_limit_ns: int) -> None:
        self.arm = Arm()
        self.model, self.data = self.arm.model, mujoco.MjData(self.arm.model)
        self.substeps = round(PERIOD_NS / 1e9 / self.model.opt.timestep)
        self.stall_limit_ns = stall_limit_ns
        self.follow: Follow | None = None
        self.hold: Vector = self.arm.home
        self.reset()

    def reset(self) -> None:
        """Home, at rest, following nothing."""
        mujoco.mj_resetDataKeyframe(self.model, self.data, self.model.key("home").id)
        mujoco.mj_forward(self.model, self.data)
        self.follow, self.hold = None, self.arm.home
        self.command(self.hold, np.zeros(len(JOINTS)), np.zeros(len(JOINTS)))

    def start(self, follow: Follow) -> None:
        """The first command is that of the next cycle."""
        self.follow = follow

    def cycle(self, due_ns: int, began_ns: int, missed: int) -> str | None:
        """`missed` + 1 periods of physics, then a command for the cycle due at `due_ns`. Says how a trajectory ended, if it did:
        "" at its goal, else why not."""
        for _ in range((missed + 1) * self.substeps):
            mujoco.mj_step(self.model, self.data)
        follow = self.follow
        if follow is None:
            self.command(self.hold, np.zeros(len(JOINTS)), np.zeros(len(JOINTS)))
            return None
        if not follow.began_ns:
            follow.began_ns, missed = due_ns, 0
        # A missed cycle is as late as this one, and more by the periods between them.
        follow.lateness_ns += [began_ns - due_ns + periods * PERIOD_NS for periods in range(missed, -1, -1)]
        follow.missed += missed
        elapsed_s = (due_ns - follow.began_ns) / 1e9
        position, speed, acceleration = follow.trajectory.at(elapsed_s)
        self.command(position, speed, acceleration)
        follow.last_command_ns = began_ns
        error = float(np.abs(position - self.data.qpos).max())
        follow.errors_rad.append(error)
        return self._ended(follow, elapsed_s, error, began_ns - due_ns + missed * PERIOD_NS)

    def _ended(self, follow: Follow, elapsed_s: float, error: float, lateness_ns: int) -> str | None:
        over_s = elapsed_s - follow.trajectory.duration_s
        if lateness_ns > self.stall_limit_ns:
            ended = "control stalled"
        elif error > PATH_TOLERANCE_RAD:
            ended = "path tolerance violated"
        elif self.data.ncon:
            ended = "arm touched the cell"
        elif over_s >= 0 and error < GOAL_TOLERANCE_RAD:
            ended = ""
        elif over_s > GOAL_SETTLE_S:
            ended = "goal tolerance violated"
        else:
            return None
        self.follow, self.hold = None, self.data.qpos.copy() if ended else follow.trajectory.positions[-1]
        return ended

    def command(self, position: Vector, speed: Vector, acceleration: Vector) -> None:
        """Computed torque: inertia times the wanted acceleration, and what gravity and motion ask for."""
        wanted = acceleration + STIFFNESS * (position - self.data.qpos) + DAMPING * (speed - self.data.qvel)
        torque = np.zeros(len(JOINTS))
        mujoco.mj_mulM(self.model, self.data, torque, wanted)
        torque += self.data.qfrc_bias - self.data.qfrc_passive
        self.data.ctrl[:] = np.clip(torque, self.model.actuator_ctrlrange[:, 0], self.model.actuator_ctrlrange[:, 1])
