"""Real-time priority for a process of the loop, where the machine grants it; and no pauses of Python's own."""

from __future__ import annotations

import gc
import os

CONTROLLER, GUARD, FOLLOWER, LEADER = 40, 30, 20, 10
"""SCHED_FIFO priorities. The controllers stand for machines of their own, so nothing here may delay them; the guard
stands above the loop that it guards."""


def ask(priority: int) -> str:
    """Ask for SCHED_FIFO for this thread and those it starts; says what was granted: "fifo 20", or why not."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as refusal:
        return f"normal ({refusal.strerror})"
    return f"fifo {priority}"


def without_collections() -> None:
    """No garbage collection from here on: a loop that makes no cycles needs none, and it would stop the loop."""
    with_small_collections()
    gc.disable()


def with_small_collections() -> None:
    """What is there now is never looked at again: a collection costs what was made since, not what was imported."""
    gc.collect()
    gc.freeze()
