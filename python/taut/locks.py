"""Which sleep in the kernel belongs to which Python lock."""

import sys
from threading import Condition, Lock, RLock
from typing import Any, Protocol

from taut import _taut


class ProcessLock(Protocol):
    """What `multiprocessing` makes: Lock, RLock, Semaphore, BoundedSemaphore."""

    _semlock: Any


def name_lock(lock: "Lock | RLock | Condition | ProcessLock", name: str) -> bool:
    """Tell waits for this lock by `name` from now on: a `threading.Lock`, `RLock` or `Condition` (its lock), or
    a lock of `multiprocessing` (in each process that uses it). Once, where it is made; the lock stays as it is.

    True when reports will know the lock. False when they cannot: without a session, for other kinds of
    lock, and for thread locks where waiters do not sleep on a word of the lock (CPython from 3.14 on,
    free-threaded builds, PyPy); `lock_wait` and `lock_acquired` around the lock work everywhere.
    """
    if not isinstance(name, str):
        raise TypeError("the name must be a str")
    if isinstance(lock, Condition):
        lock = lock._lock  # type: ignore[attr-defined]
    if hasattr(lock, "_semlock"):
        return _taut.name_semaphore(lock._semlock.handle, name)
    lock = getattr(lock, "_block", lock)  # an RLock written in Python
    return HAVE_SEMAPHORES and type(lock) in THREAD_LOCKS and _taut.name_thread_lock(lock, name)


# What is behind a thread lock was read in the sources of these versions; of any other, nothing is believed.
HAVE_SEMAPHORES = (
    sys.implementation.name == "cpython"
    and (3, 11) <= sys.version_info[:2] <= (3, 13)
    and sys.thread_info.lock == "semaphore"
    and "t" not in sys.abiflags
)
THREAD_LOCKS = (type(Lock()), type(RLock()))
