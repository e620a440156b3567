"""Starts the simulated arms as processes (`taut-teleop arm`), and ends them again."""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import native

PROGRAM = "taut-teleop"
ARMS = ["FR3", "FR20"]
START_TIMEOUT_S = 60.0
"""Beside thirty hogs a process takes its time to start."""
END_TIMEOUT_S = 10.0
"""And to end."""
PACKAGE_ROOT = Path(__file__).resolve().parents[2]
MOST_SLIP = 0.10
"""A run is no evidence where the arms were held up for more than this share of their time: what a machine does that cannot even
run the arms says nothing of the loop."""
STEP_S = 0.001
"""Of an arm."""
CLOCK = struct.Struct("<3Q")
"""The page of `taut-simulated-clock`: how far behind CLOCK_MONOTONIC it is, and up to when each arm allows it to go."""
LEFT = 2**64 - 1


class StartError(RuntimeError):
    """An arm or a part of the loop did not come up."""


@contextlib.contextmanager
def clock(arms: Sequence[str] = ARMS) -> Iterator[int]:
    """The simulated clock of these arms, a descriptor; it begins when each of them has."""
    page = os.memfd_create("taut-robot")
    try:
        os.write(page, CLOCK.pack(0, *(0 if arm in arms else LEFT for arm in ARMS)))
        yield page
    finally:
        os.close(page)


@dataclass
class ArmProcess:
    name: str
    process: subprocess.Popen[bytes]
    command_port: int
    state_port: int
    told: dict[str, Any] = field(default_factory=dict)
    """What it said of itself at its end: its steps, and how the machine held it up."""
    ended: int | None = None
    """The exit code of one that ended by itself."""
    was_killed: bool = False
    """It did not end in time when it was asked to, and so said nothing."""

    def stop(self) -> None:
        self.ended = self.process.poll()
        self.process.terminate()
        try:
            out, _ = self.process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.was_killed = True
            self.process.kill()
            out, _ = self.process.communicate()
        with contextlib.suppress(ValueError):  # it was killed
            self.told = json.loads(out or b"{}")


def program() -> str:
    """Raises StartError where it is not built."""
    found = native.binary(PROGRAM)
    if found is None:
        raise StartError(native.missing(PROGRAM))
    return str(found)


def start(arm: str, page: int, wire: str = "plain", journal: Path | None = None) -> ArmProcess:
    """Start this arm with its clock. Must be called from a thread that lives as long as the run."""
    settings = {"arm": arm, "seat": ARMS.index(arm), "wire": wire, "clock": path_of(page), "parent": os.getpid()}
    if journal is not None:
        settings["journal"] = str(journal)
    process = subprocess.Popen(
        [program(), "arm", json.dumps(settings)], stdout=subprocess.PIPE, bufsize=0, pass_fds=[page]
    )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    try:
        ports = json.loads(process.stdout.readline() if ready else b"")
    except ValueError:
        process.kill()
        process.wait()
        raise StartError(f"the {arm} did not start within {START_TIMEOUT_S:.0f} s") from None
    return ArmProcess(arm, process, ports["commands"], ports["states"])


def path_of(page: int) -> str:
    """What a child that inherits the page opens."""
    return f"/proc/self/fd/{page}"


def deaths(arms: Sequence[ArmProcess], is_asked: bool) -> list[str]:
    """The arms that failed. Where the run was asked to end, so may the arms have been, as by `timeout`: they end in order."""
    dead = [(arm.name, arm.ended) for arm in arms if arm.ended or (arm.ended == 0 and not is_asked)]
    return [f"the {name} ended during the run, {_how(code)}" for name, code in dead]


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def held_up(arms: Sequence[ArmProcess]) -> dict[str, object]:
    """How the machine held the arms up, and whether the run is evidence. For labs: the metric `real_time` with `valid_from`."""
    told = [arm.told for arm in arms if arm.told]
    slipped_s = sum(one["slips"]["total_s"] for one in told)
    moved_s = max((one["steps"] * STEP_S for one in told), default=0.0)
    share = slipped_s / max(slipped_s + moved_s, STEP_S)
    if any(arm.ended for arm in arms):
        # The clock waited for one that died: that is a failure of the robot, not of the machine.
        share = 0.0
    killed = [arm.name for arm in arms if arm.was_killed]
    if killed:
        # How long these were held up is not known.
        share = 1.0
    return {
        "simulator": {arm.name: arm.told for arm in arms},
        "killed": killed,
        "real_time": round(1.0 - share, 4),
        "valid": share <= MOST_SLIP,
    }


def environment() -> dict[str, str]:
    """For a process that must find this package."""
    path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
