"""Gives the kernel the names that threads have in `threading`: kernel events, and all programs that show threads, then have them.

Python does so by itself from 3.14 on. Before, each thread has the name of the program.
"""

import os
import sys
import threading
from os import PathLike

from taut import _taut
from taut.tasks import mark_loops

# Of the kernel's, without the terminating zero.
NAME_BYTES = 15


def attach(session: str | PathLike[str]) -> bool:
    """Use this session directory instead of TAUT_SESSION. True when attached."""
    attached = _taut.attach(session)
    if attached:
        name_threads()
        mark_loops()
    return attached


def name_threads() -> None:
    """Names the threads that there are and those to come. The main thread keeps the program's name."""
    if sys.version_info >= (3, 14) or not hasattr(threading.Thread, "_set_native_id"):
        return
    if hasattr(threading.Thread._set_native_id, "__wrapped__"):
        return
    by_itself = threading.Thread._set_native_id

    # Each thread calls this once, first of all.
    def set_native_id(thread: threading.Thread) -> None:
        by_itself(thread)
        _name(thread)

    set_native_id.__wrapped__ = by_itself  # type: ignore[attr-defined]
    threading.Thread._set_native_id = set_native_id
    for thread in threading.enumerate():
        _name(thread)


def _name(thread: threading.Thread) -> None:
    # With green threads the numbers of all are the main thread's.
    if isinstance(thread, threading._DummyThread) or thread.native_id in (None, os.getpid()):
        return
    # The kernel cuts in the middle of a character.
    name = thread.name.encode(errors="replace")[:NAME_BYTES].decode(errors="ignore").encode()
    try:
        with (
            open(f"/proc/self/task/{thread.native_id}/comm", "r+b", buffering=0) as comm,
            open("/proc/self/comm", "rb") as own,
        ):
            # One that named itself keeps its name.
            if comm.read() == own.read():
                comm.write(name)
    except OSError:
        # It has ended, or the platform forbids it: a thread without its name is recorded all the same.
        pass
