"""Starts the processes of the system, sees them ready, and ends them again."""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .options import Options
from .ros2 import environment as ros2

NODES = ("simulator", "state_publisher", "planner")
START_S = 60.0
"""Beside other work a process takes its time to start: Python, MuJoCo and OMPL are loaded first."""
TRIAL_S = 60.0
"""A trial and the client's start are over within."""
ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class StartError(RuntimeError):
    """A process did not come up."""


@contextmanager
def system(options: Options, stop: threading.Event, nodes: tuple[str, ...] = NODES) -> Iterator[None]:
    """The nodes, one after the other, each ready before the next. Raises StartError."""
    with ExitStack() as stack:
        for node in nodes:
            process = start(node, options)
            stack.callback(end, process)
            until_ready(node, process, stop)
        yield


def trials(
    options: Options, stop: threading.Event, number: int, duration_s: float | None, client_name: str = "client"
) -> list[dict[str, Any]]:
    """What the bench client says of each of its trials. Raises StartError when it says nothing."""
    client = start(client_name, options, "--trials", str(100_000 if duration_s else number))
    told: list[dict[str, Any]] = []
    began = time.monotonic()
    try:
        while len(told) < number or duration_s:
            line = next_line(client, stop, TRIAL_S)
            if not line:
                break
            told.append(json.loads(line))
            if duration_s and time.monotonic() - began > duration_s:
                break
    finally:
        end(client)
    if not told and not stop.is_set():
        raise StartError("the client ended without a trial")
    return told


def start(node: str, options: Options, *more: str) -> subprocess.Popen[str]:
    """Raises StartError."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    words = [sys.executable, "-m", f"workloads.reach.{node}", *options.arguments(), *more]
    environment: dict[str, str] = dict(os.environ)
    if options.bus == "ros2":
        try:
            words, (_, environment) = ros2.command(node, options, *more), ros2.interpreter()
        except ros2.NoRos2 as missing:
            raise StartError(str(missing)) from missing
        environment = environment | {"ROS_DOMAIN_ID": str(options.domain)}
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        env=environment | path,
        preexec_fn=_die_with_parent,
    )


def until_ready(node: str, process: subprocess.Popen[str], stop: threading.Event) -> None:
    """Raises StartError."""
    if next_line(process, stop, START_S) != "ready\n":
        silent = "was interrupted" if stop.is_set() else f"said nothing for {START_S:.0f} s or ended"
        raise StartError(f"the {node} {silent} instead of getting ready")


def next_line(process: subprocess.Popen[str], stop: threading.Event, seconds: float) -> str:
    """What it prints next; nothing when it ends, is silent for so long, or everything shall stop. One line at a time is printed."""
    assert process.stdout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + seconds
        while not selector.select(0.1):
            if stop.is_set() or time.monotonic() > deadline:
                return ""
    return process.stdout.readline()


def end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=3.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def stop_on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _die_with_parent() -> None:
    """Between fork and exec. A terminal's Ctrl-C reaches the whole group; the parent ends the nodes in their order."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
