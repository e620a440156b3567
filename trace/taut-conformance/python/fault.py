"""fault SESSION: everything that a producer asks the kernel for, between two calls of getppid. The same as c/fault.c."""

import os
import sys
import threading

import taut
from taut import telemetry

STAMPS, SHORT_LIVES, VALUES = 50, 64, 20
stamped = 0


def stamp_some() -> None:
    """One thread's."""
    global stamped
    for _ in range(STAMPS):
        stamped += 1
        taut.stamp("fault", stamped)


os.getppid()
taut.attach(sys.argv[1])
stamp_some()
log = telemetry.Channel("state", [("position", "f8")], rate_hz=10, units={"position": "rad"})
for _ in range(VALUES):
    log.write()
os.getppid()
for _ in range(SHORT_LIVES):
    thread = threading.Thread(target=stamp_some)
    thread.start()
    thread.join()
status = taut.status()
print(stamped, status["lost"], int(status["attached"]), VALUES, log.lost())
