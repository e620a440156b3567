"""Puts the arms, the loop and the hand together, lets them run, and returns the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from . import processes
from .arms import FR20, HOME_DEG
from .bus import Bus, RobotState
from .client import ArmClient, TransportError
from .companions import Companions
from .guards import GUARDS
from .hosts import Hosts
from .ledger import Ledger
from .nodes import FollowerNode, LeaderNode, Orchestrator, SystemStateManager
from .safety import VALIDATORS, Limits

HOST = "127.0.0.1"
CIRCLE_RADIUS_MM = 20.0
"""Half a second a lap is then 92 % of the tool-speed limit at most: nothing is truly too fast."""
LAP_S = 0.5
HAND_RAMP_S = 1.0
"""The hand's rise to its speed."""


@dataclass(frozen=True)
class Options:
    duration_s: float
    receiver: str = "framed"
    validator: str = "reject"
    wire: str = "plain"
    arrangement: str = "source"
    guard: str = "naive"
    companions: str = "none"
    journal: str | None = None
    """Folder for what the arms truly did; see `journal`."""
    operator: bool = False
    """An operator presses reset after the guard has stopped motion."""
    two_hosts: Hosts | None = None
    """Leader and follower are on hosts of their own."""


def run(options: Options, stop: threading.Event) -> dict[str, object]:
    """One run, until its time is over or `stop` is set. Raises StartError if an arm or a part does not come up."""
    journal = Path(options.journal) if options.journal else None
    with ExitStack() as stack:
        page = stack.enter_context(processes.clock())
        arms = []
        for name in processes.ARMS:
            arms.append(processes.start(name, page, options.wire, journal))
            stack.callback(arms[-1].stop)
        if options.arrangement == "split":
            from . import split

            hand: dict[str, object] = {"radius_mm": CIRCLE_RADIUS_MM, "lap_s": LAP_S}
            ran_s, counts = split.teleoperate(options, stop, (arms[0], arms[1]), page, hand)
        else:
            ran_s, counts = _in_one_process(options, stop, arms)
    # Each arm has ended, and said how it was held up. One that died comes first: other failures follow from it.
    failures = [*processes.deaths(arms, stop.is_set()), *counts["failures"]]  # type: ignore[misc]
    return {**_head(options, ran_s), **processes.held_up(arms), **counts, "failures": failures}


def _in_one_process(
    options: Options, stop: threading.Event, arms: list[processes.ArmProcess]
) -> tuple[float, dict[str, object]]:
    """The source arrangement; its seconds, and what its parts counted."""
    with _client(arms[0], "leader", options, stop) as leader, _client(arms[1], "follower", options, stop) as follower:
        try:
            # Both have been asked: they get ready at the same time.
            for arm in (leader, follower):
                arm.wait_for_state(5.0)
            return _teleoperate(options, stop, Ledger(), leader, follower)
        except TransportError as failure:
            raise processes.StartError(f"an arm stopped answering: {failure}") from failure


def _teleoperate(
    options: Options, stop: threading.Event, ledger: Ledger, leader: ArmClient, follower: ArmClient
) -> tuple[float, dict[str, object]]:
    bus = Bus(on_lost=lambda data: _count_lost(ledger, data))
    manager = SystemStateManager(bus)
    Orchestrator(manager, bus, signs=np.ones(6), offsets_deg=np.zeros(6))
    validator = VALIDATORS[options.validator](FR20, Limits(), HOME_DEG)
    guard = GUARDS[options.guard](Limits(), options.wire)
    follower.on_state = guard.update
    follower_node = FollowerNode(follower, bus, validator, guard, ledger)
    companions = Companions() if options.companions == "all" else None
    leader_node = LeaderNode(leader, bus, ledger)

    follower.must("RobotEnable", 1)
    leader.must("RobotEnable", 1)
    leader.must("DragTeachSwitch", 1)
    bus.start()
    if companions:
        companions.start()
    follower_node.loop.start()
    leader.must("SimHandCircle", CIRCLE_RADIUS_MM, LAP_S)
    began = time.monotonic()
    leader_node.loop.start()
    stop.wait(options.duration_s)
    ran_s = time.monotonic() - began

    leader_node.loop.stop()
    follower_node.loop.stop()
    follower.abandon_retries()
    bus.stop()
    turns = companions.stop() if companions else {}
    return ran_s, {
        "missed_publish_cycles": leader_node.loop.missed_cycles,
        "setpoints": ledger.balance(),
        "guard": guard.summary(),
        "stops": [],
        "stopped": "guard_latched" if guard.is_latched else None,
        "desk": {"turns": turns},
        "leader_stream": asdict(leader.receiver.counts),
        "follower_stream": asdict(follower.receiver.counts),
        "servo_retries": follower.retries,
        "failures": [repr(failure) for failure in bus.failures()],
    }


def _head(options: Options, ran_s: float) -> dict[str, object]:
    laps = max(0.0, ran_s - HAND_RAMP_S / 2) / LAP_S  # the hand's own count: it never pauses
    return {
        "schema_version": 2,
        **asdict(replace(options, two_hosts=None)),
        "ran_s": round(ran_s, 3),
        "laps": int(laps),
    }


@contextmanager
def _client(arm: processes.ArmProcess, role: str, options: Options, stop: threading.Event) -> Iterator[ArmClient]:
    """A client that has asked the arm for its states, ended on leaving."""

    def hopeless() -> bool:
        return stop.is_set() or arm.process.poll() is not None

    try:
        client = ArmClient(HOST, arm.command_port, arm.state_port, options.receiver, hopeless, role)
    except OSError as failure:
        raise processes.StartError(f"cannot connect to the {arm.name}: {failure}") from failure
    try:
        client.start()
        yield client
    finally:
        client.stop()


def _count_lost(ledger: Ledger, data: bytes) -> None:
    message_id = RobotState.from_bytes(data).message_id
    if message_id:
        ledger.drop(message_id, "queue_overflow")
