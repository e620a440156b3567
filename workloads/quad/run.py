"""Starts the robot's programs around its physics, and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .failures import Failure
from .fall import STANDS_M
from .physics import LEGS, Physics

ROOT = Path(__file__).resolve().parents[2]
START_S = 20.0
# The host's priority, below it the servos', and below that the physics', for those who may.
HOST_PRIORITY, SERVOS_PRIORITY, PHYSICS_PRIORITY = 80, 70, 60


class StartError(RuntimeError):
    """A program of the robot did not come up."""


@dataclass(frozen=True)
class Options:
    """What is asked of a run."""

    duration_s: float
    rate_hz: float
    gait: str
    failure: Failure
    virtual: bool = False
    clear: bool = False
    spin_us: int = 0
    cpu: int | None = None
    seed: int = 1


def run(options: Options) -> dict[str, Any]:
    """One run, in real or in virtual time."""
    with tempfile.TemporaryDirectory(prefix="quad-") as folder:
        physics = Physics(options.failure, Path(folder) / "inertial")
        with _listening(Path(folder) / "physics") as door:
            rehearsed = _rehearse if options.virtual else _run
            host = rehearsed(options, physics, door, Path(folder))
    told = {"failure": options.failure.name, "rate_hz": options.rate_hz, **host}
    told["height_m"] = float(physics.data.qpos[2])
    if physics.failure.name != "none":
        told["fall"] = physics.fall.told()
        told["stood"] = physics.fall.stood()
    else:
        told["stood"] = bool(host["host"]["stood"]) and told["height_m"] >= STANDS_M
    return told


def _rehearse(options: Options, physics: Physics, door: socket.socket, folder: Path) -> dict[str, Any]:
    dies = options.failure.host_killed or options.failure.host_hangs_s > 0
    ends = ["--host-ends", str(options.failure.at_s)] if dies else []
    with _program("rehearse", "--physics", str(folder / "physics"), *ends, *_seed(options), *_wishes(options)) as host:
        servos = _accepted(door, host)
        with servos:
            physics.serve(servos, options.duration_s + 1.0, lambda _: None)
        return {"host": _told(host)}


def _run(options: Options, physics: Physics, door: socket.socket, folder: Path) -> dict[str, Any]:
    may = os.geteuid() == 0
    priority = ["--priority", str(SERVOS_PRIORITY)] if may else []
    with contextlib.ExitStack() as programs:
        where = ["--physics", str(folder / "physics")]
        servos = programs.enter_context(_program("servos", *where, *priority, *_seed(options)))
        link = programs.enter_context(_accepted(door, servos))
        physics.begin(link)
        buses = [f"--bus={address}" for address in _addresses(servos)]
        wishes = [*buses, "--inertial", str(folder / "inertial"), "--spin-us", str(options.spin_us), *_wishes(options)]
        wishes += ["--priority", str(HOST_PRIORITY)] if may else []
        wishes += ["--cpu", str(options.cpu)] if options.cpu is not None else []
        scene = _Scene(options.failure, lambda: programs.enter_context(_program("host", *wishes)))
        if may:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PHYSICS_PRIORITY))
        physics.serve(link, options.duration_s, scene.look)
        if may:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if not scene.hosts:
            raise StartError(f"taut-quad servos ended at once (exit {servos.poll()})")
        first, *second = scene.hosts
        told = {"host": None if options.failure.host_killed else _ended(first)}
        if second:
            told["second_host"] = _ended(second[0])
        link.close()
        return {**told, "physics": _told(servos)}


class _Scene:
    """What happens to the host's process, and when."""

    def __init__(self, failure: Failure, start: Callable[[], subprocess.Popen[str]]) -> None:
        self.hosts: list[subprocess.Popen[str]] = []
        self._new = start
        at = failure.at_s
        # The host starts when the robot is alive: a leg that does not answer yet would get ever farther setpoints.
        self._acts: list[tuple[float, Callable[[], None]]] = [(0.0, self._start)]
        if failure.host_killed:
            # Whoever starts the host again finds the servos as they are, and is not to clear them by itself.
            self._acts += [(at, self._kill), (at + 1.0, self._start)]
        elif failure.host_hangs_s > 0:
            self._acts += [(at, self._stop), (at + failure.host_hangs_s, self._resume)]

    def look(self, time_s: float) -> None:
        while self._acts and time_s >= self._acts[0][0]:
            self._acts.pop(0)[1]()

    def _start(self) -> None:
        self.hosts.append(self._new())

    def _kill(self) -> None:
        self.hosts[0].kill()

    def _stop(self) -> None:
        self.hosts[0].send_signal(signal.SIGSTOP)

    def _resume(self) -> None:
        self.hosts[0].send_signal(signal.SIGCONT)


def binary() -> Path:
    """The robot's programs, as `make setup` leaves them or as cargo does."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(sys.executable).with_name("taut-quad"), target / "release/taut-quad", target / "debug/taut-quad"]
    for place in places:
        if place.exists():
            return place
    raise StartError("taut-quad is not built; run `make setup`, or `cargo build --release -p taut-quad`")


@contextlib.contextmanager
def _program(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([binary(), *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        # Also out of a stop signal.
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _wishes(options: Options) -> list[str]:
    wishes = ["--rate", str(options.rate_hz), "--duration", str(options.duration_s), "--gait", options.gait]
    return wishes + ["--clear"] * options.clear


def _seed(options: Options) -> list[str]:
    return ["--seed", str(options.seed)]


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(str(path))
        door.listen(1)
        door.settimeout(START_S)
        yield door


def _accepted(door: socket.socket, program: subprocess.Popen[str]) -> socket.socket:
    try:
        return door.accept()[0]
    except TimeoutError:
        raise StartError(f"taut-quad did not come up within {START_S:.0f} s (exit {program.poll()})") from None


def _addresses(servos: subprocess.Popen[str]) -> list[str]:
    """Where the buses are: the servos' program says all of them at once."""
    assert servos.stdout is not None
    ready, _, _ = select.select([servos.stdout], [], [], START_S)
    addresses = [servos.stdout.readline().strip() for _ in range(LEGS)] if ready else []
    if not all(addresses) or not addresses:
        raise StartError(f"taut-quad servos opens no buses (exit {servos.poll()})")
    return addresses


def _ended(program: subprocess.Popen[str]) -> dict[str, Any]:
    """Asks a program to end and gives what it told."""
    program.terminate()
    return _told(program)


def _told(program: subprocess.Popen[str]) -> dict[str, Any]:
    try:
        out, _ = program.communicate(timeout=START_S)
        return dict(json.loads(out))
    except (subprocess.TimeoutExpired, ValueError):
        raise StartError(f"taut-quad ended without its account (exit {program.poll()})") from None
