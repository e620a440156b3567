"""A loop of two seconds that logs a struct 400 times a second: what the page about telemetry looks at."""

import time

from taut.telemetry import Channel

joint = [("position", "f8"), ("torque", "f4")]
log = Channel("quad", [("cycle", "u8"), ("joint", joint, (3,))], rate_hz=400, units={"joint.position": "rad"})
due = time.monotonic()
for cycle in range(800):
    log.row["cycle"] = cycle
    log.row["joint"]["position"][2] = cycle / 4
    log.write()
    due += 0.0025
    time.sleep(max(0.0, due - time.monotonic()))
