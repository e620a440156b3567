"""Locks that reports know by name: which sleep in the kernel belongs to which Python lock, and locks that say it themselves."""

import sys
import threading
from threading import Condition
from types import TracebackType
from typing import Any, Protocol

from taut import _taut


class ProcessLock(Protocol):
    """What `multiprocessing` makes: Lock, RLock, Semaphore, BoundedSemaphore."""

    _semlock: Any


def name_lock(name: str, lock: "threading.Lock | threading.RLock | Condition | ProcessLock") -> bool:
    """Tell waits for this lock by `name` from now on: a `threading.Lock`, `RLock` or `Condition` (its lock), or
    a lock of `multiprocessing` (in each process that uses it). Once, where it is made; the lock stays as it is.

    True when reports will know the lock. False when they cannot: without a session, for other kinds of
    lock, and for thread locks where waiters do not sleep on a word of the lock (CPython from 3.14 on,
    free-threaded builds, PyPy); `lock_wait` and `lock_acquired` around the lock work everywhere.
    """
    if not isinstance(name, str):
        raise TypeError("name_lock(name, lock): the name must be a str")
    if isinstance(lock, Condition):
        lock = lock._lock  # type: ignore[attr-defined]
    if hasattr(lock, "_semlock"):
        return _taut.name_semaphore(name, lock._semlock.handle)
    lock = getattr(lock, "_block", lock)  # an RLock written in Python
    return HAVE_SEMAPHORES and type(lock) in THREAD_LOCKS and _taut.name_thread_lock(name, lock)


# What is behind a thread lock was read in the sources of these versions; of any other, nothing is believed.
HAVE_SEMAPHORES = (
    sys.implementation.name == "cpython"
    and (3, 11) <= sys.version_info[:2] <= (3, 13)
    and sys.thread_info.lock == "semaphore"
    and "t" not in sys.abiflags
)
THREAD_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Lock:
    """A `threading.Lock` that marks its waits: `sdk = taut.Lock("sdk_lock")` in place of `sdk = threading.Lock()`.

    Works on every Python and tier, unlike `name_lock`, which costs nothing and needs the kernel's events. A lock that is free is
    taken as before, plus a call; only who must wait is marked, at both ends of the wait. Without a name it is called after
    the line that made it.
    """

    __slots__ = ("__weakref__", "_lock", "name")

    # Annotated Any: typeshed has no protocol of what Condition asks of its lock.
    _make: Any = staticmethod(threading.Lock)

    def __init__(self, name: str | None = None) -> None:
        self._lock = self._make()
        self.name = name or _made_at()
        name_lock(self.name, self._lock)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.Lock.acquire`."""
        if not blocking:
            return bool(self._lock.acquire(blocking, timeout))
        if self._lock.acquire(False):
            return True
        _taut.lock_wait(self.name)
        try:
            return bool(self._lock.acquire(True, timeout))
        finally:
            # Whether it was had or not, the wait is over.
            _taut.lock_acquired(self.name)

    def release(self) -> None:
        """As `threading.Lock.release`."""
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    def __getattr__(self, name: str) -> Any:
        # What else a lock of this Python has: `locked`, and what Condition and fork ask for.
        return getattr(self._lock, name)

    def __repr__(self) -> str:
        return f"<taut.{type(self).__name__} {self.name!r} of {self._lock!r}>"


class RLock(Lock):
    """The same for `threading.RLock`: `taut.RLock("state_lock")`."""

    __slots__ = ()

    _make: Any = staticmethod(threading.RLock)


def _made_at() -> str:
    """`lock robot.py:12`, of the first line outside of this module."""
    frame: Any = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return f"lock {frame.f_code.co_filename.rsplit('/', 1)[-1]}:{frame.f_lineno}"
