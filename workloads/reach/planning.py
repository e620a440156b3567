"""From a place for the tool to a trajectory: inverse kinematics, RRTConnect (OMPL), timing along the path (Ruckig)."""

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import ruckig
from ompl import base, geometric, util

from .arm import JOINTS, MAX_ACCELERATION_RAD_S2, MAX_JERK_RAD_S3, MAX_SPEED_RAD_S, Arm, Vector
from .trajectory import Trajectory

SCALING = 0.5
"""Of speed and acceleration, as the benchmark that this workload repeats asks of MoveIt."""
POINT_S = 0.025
CHECKED_RAD = 0.05
"""Path segments are checked for collisions this densely: far from the base that is 4 cm, less than the thinnest link."""

CLEARANCE_M = 0.01
"""A plan stays that far from everything: the arm follows it with an error, and between two checks it goes unseen."""


class PlanningFailed(Exception):
    """No trajectory; the text says why."""


@dataclass
class Plan:
    trajectory: Trajectory
    states_checked: int
    ik_ms: float
    search_ms: float
    simplify_ms: float

    @property
    def path_rad(self) -> float:
        return float(np.linalg.norm(np.diff(self.trajectory.positions, axis=0), axis=1).sum())


class Planner:
    """Plans for one arm. OMPL's random numbers start once in a process, from `seed`."""

    def __init__(self, seed: int) -> None:
        util.setLogLevel(util.LogLevel.LOG_ERROR)
        util.RNG.setSeed(max(1, seed))
        self.arm = Arm()
        self.arm.model.geom_margin[:] = CLEARANCE_M
        self.random = np.random.default_rng(seed)
        self.checked = 0
        self.space = base.RealVectorStateSpace(len(JOINTS))
        bounds = base.RealVectorBounds(len(JOINTS))
        for joint in range(len(JOINTS)):
            bounds.setLow(joint, float(self.arm.lower[joint]))
            bounds.setHigh(joint, float(self.arm.upper[joint]))
        self.space.setBounds(bounds)

    def plan(self, start: Vector, place: Vector, budget_s: float = 5.0) -> Plan:
        """Raises PlanningFailed."""
        self.checked = 0
        began = time.monotonic()
        if self.arm.touches(start):
            raise PlanningFailed("start in collision")
        goals = self.arm.reach(place, self.random)
        if not goals:
            raise PlanningFailed("no inverse kinematics")
        solved = time.monotonic()
        setup = self._setup(start, goals)
        if not setup.solve(budget_s) or not setup.haveExactSolutionPath():
            raise PlanningFailed("no path in time")
        searched = time.monotonic()
        setup.simplifySolution(0.2)
        path = setup.getSolutionPath()
        corners = [self._vector(path.getState(i)) for i in range(path.getStateCount())]
        simplified = time.monotonic()
        return Plan(
            timed(corners),
            self.checked,
            1e3 * (solved - began),
            1e3 * (searched - solved),
            1e3 * (simplified - searched),
        )

    def _setup(self, start: Vector, goals: list[Vector]) -> geometric.SimpleSetup:
        setup = geometric.SimpleSetup(self.space)
        setup.setStateValidityChecker(self._free)
        information = setup.getSpaceInformation()
        information.setStateValidityCheckingResolution(CHECKED_RAD / self.space.getMaximumExtent())
        setup.setPlanner(geometric.RRTConnect(information))
        setup.setStartState(self._state(start))
        ends = base.GoalStates(information)
        for goal in goals:
            ends.addState(self._state(goal))
        setup.setGoal(ends)
        return setup

    def _free(self, state: base.State) -> bool:
        self.checked += 1
        return not self.arm.touches(self._vector(state))

    def _state(self, joints: Vector) -> base.State:
        state = self.space.allocState()
        for joint, value in enumerate(joints):
            state[joint] = float(value)
        return state

    def _vector(self, state: base.State) -> Vector:
        return np.array([state[joint] for joint in range(len(JOINTS))])


def timed(corners: list[Vector]) -> Trajectory:
    """At rest at every corner, straight between them: exactly the path that was checked for collisions."""
    generator = ruckig.Ruckig(len(JOINTS))
    times, positions, speeds = [0.0], [corners[0]], [np.zeros(len(JOINTS))]
    for start, end in pairwise(corners):
        if np.abs(end - start).max() < 1e-9:
            continue
        task = ruckig.InputParameter(len(JOINTS))
        task.current_position, task.target_position = list(start), list(end)
        task.max_velocity = list(SCALING * MAX_SPEED_RAD_S)
        task.max_acceleration = list(SCALING * MAX_ACCELERATION_RAD_S2)
        task.max_jerk = list(SCALING * MAX_JERK_RAD_S3)
        task.synchronization = ruckig.Synchronization.Phase
        segment = ruckig.Trajectory(len(JOINTS))
        if generator.calculate(task, segment) != ruckig.Result.Working:
            raise PlanningFailed("no timing")
        before = times[-1]
        for moment in np.linspace(0.0, segment.duration, max(2, int(np.ceil(segment.duration / POINT_S)) + 1))[1:]:
            position, speed, _ = segment.at_time(float(moment))
            times.append(before + float(moment))
            positions.append(np.array(position))
            speeds.append(np.array(speed))
    return Trajectory(np.array(times), np.array(positions), np.array(speeds))
