"""Marks what event loops run: each step of a task and each callback is work of the loop's thread, by its name."""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from taut import _taut
from taut._taut import begin, end

# Names that a program makes up for its tasks have no end, and the table of names has one.
MOST_NAMES = 256

_tasks: dict[str, str] = {}
_callbacks: dict[str, str] = {}
_is_asked = False


def name_tasks() -> None:
    """Mark what asyncio's event loops run, in all threads: a message that waits for a loop which is busy with another task
    or callback is `queued` behind that one, by name.

    Once, before loops run, and after `import uvloop` where that is used: of its loops only the tasks are marked. A task
    goes by the name that was given to it, else by its coroutine's. Without a session nothing is changed.
    """
    global _is_asked
    _is_asked = True
    if os.environ.get("TAUT_SESSION") or _taut.status()["attached"]:
        mark_loops()


def mark_loops() -> None:
    """The same in a session, where it was asked for."""
    if not _is_asked:
        return
    from asyncio import Handle, Task

    def name_of(callback: Any) -> str:
        """ "task camera_poll", "callback Camera.poll"; one and the same object each time."""
        try:
            task = getattr(callback, "__self__", None)
            if not isinstance(task, Task):
                return _of_function(callback, _callbacks, "callback")
            given = task.get_name()
            # asyncio numbers tasks that were given none.
            is_numbered = given[:5] == "Task-"
            known = _tasks.get(getattr(task.get_coro(), "__qualname__", "") if is_numbered else given)
            if known is not None:
                return known
            if is_numbered or len(_tasks) >= MOST_NAMES:
                return _of_function(task.get_coro(), _tasks, "task")
            return _tasks.setdefault(given, _printable(f"task {given}"))
        except Exception:
            # An object that stands for another one may refuse to be looked at: the loop goes on.
            return "callback"

    by_itself: Any = getattr(Handle, "_run", None)
    if by_itself is not None and not hasattr(by_itself, "_taut"):

        def run(handle: Any) -> None:
            name = name_of(handle._callback)
            begin(name)
            try:
                by_itself(handle)
            finally:
                end(name)

        run.__wrapped__ = by_itself  # type: ignore[attr-defined]
        # Another tool's wrapper has that, too.
        run._taut = True  # type: ignore[attr-defined]
        Handle._run = run  # type: ignore[method-assign, assignment]

    loop = getattr(sys.modules.get("uvloop"), "Loop", None)
    if loop is not None and not hasattr(loop.call_soon, "_taut"):
        # Its handles cannot be changed, but what it is asked to run can: tasks ask for each of their steps.
        call_soon = loop.call_soon

        def run_callback(callback: Callable[..., object], *args: Any) -> None:
            name = name_of(callback)
            begin(name)
            try:
                callback(*args)
            finally:
                end(name)

        def marked(self: Any, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
            return call_soon(self, partial(run_callback, callback), *args, context=context)

        marked.__wrapped__ = call_soon  # type: ignore[attr-defined]
        marked._taut = True  # type: ignore[attr-defined]
        loop.call_soon = marked


def _of_function(function: Any, names: dict[str, str], kind: str) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return names.get(name) or names.setdefault(name, _printable(f"{kind} {name.rpartition('<locals>.')[2]}"))


def _printable(name: str) -> str:
    # A name may be any str, and half of a surrogate pair is no text.
    return name.encode(errors="replace").decode()
