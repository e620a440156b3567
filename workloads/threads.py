"""A process's name for the kernel, and so for recordings and `ps`. Its other threads have theirs from taut, when it is recorded."""

import ctypes

PR_SET_NAME = 15  # linux/prctl.h


def call_thread(name: str) -> None:
    """Names the calling thread, and with the main thread its process. The kernel keeps 15 bytes."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())
