"""Becomes the robot's program, which is written in Rust (src/main.rs has the options), and says where MuJoCo is."""

import importlib.util
import os
import sys
from pathlib import Path

from .. import native


def mujoco() -> Path | None:
    """MuJoCo's library in the package `mujoco`, which is looked for and not imported."""
    found = importlib.util.find_spec("mujoco")
    folders = (found.submodule_search_locations if found else None) or []
    return next((path for folder in folders for path in sorted(Path(folder).glob("libmujoco.so*"))), None)


def main() -> None:
    program, library = native.binary("taut-quad"), mujoco()
    if program is None:
        sys.exit(_refuse(native.missing("taut-quad")))
    if library is None:
        sys.exit(_refuse(f"{sys.executable} has no package mujoco; pip install 'mujoco>=4,<5'"))
    os.execv(program, [str(program), f"--mujoco={library}", *sys.argv[1:]])


def _refuse(why: str) -> int:
    print(f"quad: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
