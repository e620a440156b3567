"""Stamp the messages of a robot control loop; `taut record` and `taut report` do the rest.

>>> import taut
>>> taut.stamp("leader.read", 1)      # the message with this id was here
>>> taut.applied(1)                   # it reached its goal; or: taut.drop(1, "speed_limit")

Without a session (the environment variable TAUT_SESSION, which `taut record` sets) every call
returns at once. No call ever raises because of taut's own trouble, waits, or makes a system call
after a thread's first stamp; what is lost is counted (`taut.status()`).
"""

from taut._taut import (
    __version__,
    applied,
    attach,
    begin,
    drop,
    end,
    lock_acquired,
    lock_wait,
    prepare_thread,
    stamp,
    status,
    value,
)
from taut.locks import name_lock
from taut.marks import work

__all__ = [
    "__version__",
    "applied",
    "attach",
    "begin",
    "drop",
    "end",
    "lock_acquired",
    "lock_wait",
    "name_lock",
    "prepare_thread",
    "stamp",
    "status",
    "value",
    "work",
]
