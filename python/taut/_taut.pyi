from os import PathLike
from typing import TypedDict

__version__: str

class Status(TypedDict):
    attached: bool
    lost: int

def stamp(point: str, message_id: int, /) -> None:
    """The message passed the point. `message_id` is an int from 0 to 2**64 - 1."""

def drop(message_id: int, reason: str, /) -> None:
    """The message ended for this reason, not applied."""

def applied(message_id: int, /) -> None:
    """The message reached its goal."""

def begin(work: str, /) -> None:
    """Work that is not a message's begins."""

def end(work: str, /) -> None:
    """That work ends."""

def value(name: str, value: float, /) -> None:
    """The signal has this value now."""

def lock_wait(lock: str, /) -> None:
    """About to take the lock of this name."""

def lock_acquired(lock: str, /) -> None:
    """The lock of this name is taken."""

def name_thread_lock(lock: object, name: str) -> bool:
    """Of `taut.locks` alone."""

def name_semaphore(address: int, name: str) -> bool:
    """Of `taut.locks` alone."""

def prepare_thread() -> bool:
    """Take this thread's one slow step now. True when the thread will stamp."""

def attach(session: str | PathLike[str]) -> bool:
    """Use this session directory instead of TAUT_SESSION. True when attached."""

def status() -> Status:
    """Whether stamps go anywhere, and how many were lost by this process."""
