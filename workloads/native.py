"""The workloads' own programs, which are written in Rust."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def binary(name: str) -> Path | None:
    """A program, as `make setup` leaves it or as cargo does."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [Path(sys.executable).with_name(name), target / "release" / name, target / "debug" / name]
    return next((place for place in places if place.exists()), None)


def missing(name: str) -> str:
    """What to do about one that is not there."""
    return f"{name} is not built; run `make setup`, or `cargo build --release -p {name}`"
