"""What the processes with one thread have in common."""

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing

import taut

from ..threads import call_thread
from .bus import Bus, BusError, open_bus
from .options import Options

JOIN_S = 15.0
"""So long for the others to come up."""
Stop = threading.Event


def main(name: str, run: Callable[[Options, Bus, Stop], None], chosen: Options) -> int:
    """Exit code 0 after SIGINT or SIGTERM, 2 when the bus or the others were not there."""
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    call_thread(name)
    taut.prepare_thread()
    try:
        with closing(open_bus(chosen)) as bus:
            run(chosen, bus, stop)
    except BusError as failure:
        if not stop.is_set():
            print(f"reach: {failure}", file=sys.stderr)
            return 2
    return 0
