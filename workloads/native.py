"""The workloads' own programs, which are written in Rust, and the library that some of them open."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_MUJOCO = f"{sys.executable} has no package mujoco; pip install 'mujoco>=4,<5'"


def binary(name: str) -> Path | None:
    """A program, as `make setup` leaves it or as cargo does; a Python of ROS 2 has it on its PATH."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(sys.executable).with_name(name), target / "release" / name, target / "debug" / name]
    on_path = shutil.which(name)
    return next((place for place in [*places, *([Path(on_path)] if on_path else [])] if place.exists()), None)


def missing(name: str) -> str:
    """What to do about one that is not there."""
    return f"{name} is not built; run `make setup`, or `cargo build --release -p {name}`"


def mujoco() -> Path | None:
    """MuJoCo's library in the package `mujoco`, which is looked for and not imported."""
    found = importlib.util.find_spec("mujoco")
    folders = (found.submodule_search_locations if found else None) or []
    return next((path for folder in folders for path in sorted(Path(folder).glob("libmujoco.so*"))), None)
