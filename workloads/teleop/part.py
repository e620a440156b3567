"""One process of the split arrangement: `python -m workloads.teleop.part ROLE SETTINGS`, started by `split` only.

SETTINGS is one JSON object; its `fds` are the numbers of the inherited link ends.
"""

from __future__ import annotations

import json
import signal
import socket
import sys

from . import desk, follower, guarding, leader
from .commands import CallError
from .controller import die_with_parent
from .links import Control, Numbers, Setpoints
from .processes import StartError
from .stream import StreamError


def main() -> int:
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    die_with_parent(settings["parent"])
    # Ctrl-C reaches the whole group; the main process decides what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends = {name: socket.socket(fileno=fd) for name, fd in settings["fds"].items()}
    control = Control(ends["control"])
    try:
        match role:
            case "leader":
                leader.run(control, settings, Setpoints(ends["setpoints"]), Setpoints(ends["desk"]))
            case "follower":
                follower.run(control, settings, Setpoints(ends["setpoints"]), Numbers(ends["heartbeat"]))
            case "guard":
                guarding.run(control, settings, Numbers(ends["heartbeat"]))
            case "desk":
                desk.run(control, settings, Setpoints(ends["desk"]))
    except (StartError, StreamError, CallError, OSError) as failure:
        control.say("failed", why=f"{role}: {failure}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
