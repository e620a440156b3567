"""The desk's process of the split arrangement: `python -m workloads.teleop.part desk SETTINGS`, started by `split` only.

SETTINGS is one JSON object; its `fds` are the numbers of the inherited link ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys

from ..threads import call_thread
from . import desk
from .links import Control, Link


def main() -> int:
    settings = json.loads(sys.argv[2])
    die_with_parent(settings["parent"])
    call_thread("teleop-desk")
    # Ctrl-C reaches the whole group; the main process decides what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends = {name: socket.socket(fileno=fd) for name, fd in settings["fds"].items()}
    desk.run(Control(ends["control"]), settings, Link(ends["desk"]))
    return 0


def die_with_parent(parent_pid: int) -> None:
    """SIGKILL to this process when its parent ends, however it ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
