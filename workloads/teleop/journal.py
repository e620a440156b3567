"""What an arm truly did, kept by its controller: the servo's every step and every command it took. The truth that
tracking, smoothness and a guard's trips are held against.

Two files beside each other, of little-endian records: `ARM.steps`, 1 kHz: time i64 (CLOCK_MONOTONIC ns), six joint
angles f64 (deg); `ARM.commands`: time i64, setpoint id i64, cmdT f64 (s), six target angles f64 (deg).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STEP = np.dtype([("t_ns", "<i8"), ("joints_deg", "<f8", 6)])
COMMAND = np.dtype([("t_ns", "<i8"), ("id", "<i8"), ("period_s", "<f8"), ("joints_deg", "<f8", 6)])
BUFFER_BYTES = 1 << 16


class Journal:
    """Open files of one arm."""

    def __init__(self, folder: Path, arm: str) -> None:
        self._steps = (folder / f"{arm}.steps").open("wb", buffering=BUFFER_BYTES)
        self._commands = (folder / f"{arm}.commands").open("wb", buffering=BUFFER_BYTES)
        self._pack_step = struct.Struct("<q6d").pack
        self._pack_command = struct.Struct("<qqd6d").pack

    def step(self, t_ns: int, joints_deg: Sequence[float]) -> None:
        self._steps.write(self._pack_step(t_ns, *joints_deg))

    def command(self, t_ns: int, setpoint: int, period_s: float, joints_deg: Sequence[float]) -> None:
        self._commands.write(self._pack_command(t_ns, setpoint, period_s, *joints_deg))

    def close(self) -> None:
        self._steps.close()
        self._commands.close()


def read(folder: Path, arm: str) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Steps and commands of an arm."""
    return np.fromfile(folder / f"{arm}.steps", STEP), np.fromfile(folder / f"{arm}.commands", COMMAND)
