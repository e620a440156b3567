"""Starts the simulated controllers as processes and ends them again."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_S = 60.0
"""Beside thirty hogs an interpreter takes its time to start."""
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class StartError(RuntimeError):
    """A controller did not come up."""


@dataclass
class ControllerProcess:
    process: subprocess.Popen[bytes]
    command_port: int
    state_port: int

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def start(arm: str, wire: str = "plain", journal: Path | None = None) -> ControllerProcess:
    """Start the controller of `arm`. Must be called from a thread that lives as long as the run."""
    command = [
        sys.executable,
        "-m",
        "workloads.teleop.controller",
        "--arm",
        arm,
        "--parent",
        str(os.getpid()),
        "--wire",
        wire,
    ]
    if journal is not None:
        command += ["--journal", str(journal)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    try:
        ports = json.loads(process.stdout.readline() if ready else b"")
    except ValueError:
        process.kill()
        process.wait()
        raise StartError(f"the {arm} controller did not start within {START_TIMEOUT_S:.0f} s") from None
    return ControllerProcess(process, ports["commands"], ports["states"])


def environment() -> dict[str, str]:
    """For a process that must find this package."""
    path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
