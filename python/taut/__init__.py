"""Stamp the messages of a robot control loop, for `taut record` and `taut report`.

>>> import taut
>>> taut.stamp("leader.read", 1)      # the message with this id was here
>>> taut.applied(1)                   # it reached its goal; or: taut.drop(1, "speed_limit")

Without a session (the environment variable TAUT_SESSION, which `taut record` sets) every call
returns at once. No call raises for a failure inside taut. After a thread's first stamp no call waits
or makes a system call. Lost stamps are counted (`taut.status()`).

`taut.record()` records this process, and `taut.open("run.mcap")` analyses a recording.
"""

import os
from typing import TYPE_CHECKING, Any

from taut._taut import (
    __version__,
    applied,
    begin,
    drop,
    end,
    lock_acquired,
    lock_wait,
    prepare_thread,
    stamp,
    stamp_at,
    status,
    value,
)
from taut.locks import Lock, RLock, name_lock
from taut.marks import traced, work
from taut.tasks import name_tasks
from taut.threads import attach, name_threads

if TYPE_CHECKING:
    from taut.recorder import record
    from taut.recording import open

__all__ = [
    "Lock",
    "RLock",
    "__version__",
    "applied",
    "attach",
    "begin",
    "drop",
    "end",
    "lock_acquired",
    "lock_wait",
    "name_lock",
    "name_tasks",
    "open",
    "prepare_thread",
    "record",
    "stamp",
    "stamp_at",
    "status",
    "traced",
    "value",
    "work",
]
# From the first message on.
if os.environ.get("TAUT_SESSION"):
    name_threads()

# Loaded when asked for: a robot that stamps needs none of it.
LATER = {"open": "taut.recording", "record": "taut.recorder"}


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module 'taut' has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module(LATER[name]), name)
    return found
