"""Reads what an arm truly did, which its controller keeps (`src/journal.rs`): the servo's every step and every command it
took. The truth that tracking, smoothness and a guard's trips are held against.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STEP = np.dtype([("t_ns", "<i8"), ("joints_deg", "<f8", 6)])
COMMAND = np.dtype([("t_ns", "<i8"), ("id", "<i8"), ("period_s", "<f8"), ("joints_deg", "<f8", 6)])


def read(folder: Path, arm: str) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Steps and commands of an arm."""
    return np.fromfile(folder / f"{arm}.steps", STEP), np.fromfile(folder / f"{arm}.commands", COMMAND)
