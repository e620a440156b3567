"""Becomes the robot's program, which is written in Rust (src/main.rs has the options), and says where MuJoCo is."""

import os
import sys

from .. import native


def main() -> None:
    program, library = native.binary("taut-quad"), native.mujoco()
    if program is None:
        sys.exit(_refuse(native.missing("taut-quad")))
    if library is None:
        sys.exit(_refuse(native.NO_MUJOCO))
    os.execv(program, [str(program), f"--mujoco={library}", *sys.argv[1:]])


def _refuse(why: str) -> int:
    print(f"quad: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
