"""Threads whose names the kernel knows, and so recordings and `top -H`; Python does not pass them on before 3.14."""

import ctypes
import threading

PR_SET_NAME = 15  # linux/prctl.h


def call_thread(name: str) -> None:
    """Names the calling thread, and with the main thread its process. The kernel keeps 15 bytes."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())


class Thread(threading.Thread):
    """As its base, with its name for the kernel, too."""

    def run(self) -> None:
        call_thread(self.name)
        super().run()
