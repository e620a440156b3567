"""What can go wrong, and when."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

# The robot stands after two seconds; from then on it trots with this period (src/gait.rs).
TROTS_FROM_S, PERIOD_S = 2.0, 0.5

NAMES = ("none", "power-cut", "host-killed", "host-hung", "servo-overheat", "bus-cut", "replies-lost")


@dataclass(frozen=True)
class Failure:
    """One failure at a time of the servos' clock. Indices count from 0."""

    name: str = "none"
    at_s: float = math.inf
    # All torque is gone at once: what the others are compared with.
    power_cut: bool = False
    # The host is killed, or stopped for so long.
    host_killed: bool = False
    host_hangs_s: float = 0.0
    # The servo that gets too hot, and how hot.
    hot_servo: int | None = None
    hot_c: float = 90.0
    # The bus whose cable breaks next to the host, and the bus on which no reply comes through.
    cut_bus: int | None = None
    deaf_bus: int | None = None


def failure(name: str, at_s: float, seed: int) -> Failure:
    """The failure of this name; the seed picks the servo or bus that it hits."""
    chance = random.Random(seed)
    servo, bus = chance.randrange(12), chance.randrange(4)
    return {
        "none": Failure(),
        "power-cut": Failure(name, at_s, power_cut=True),
        "host-killed": Failure(name, at_s, host_killed=True),
        "host-hung": Failure(name, at_s, host_hangs_s=1.0),
        "servo-overheat": Failure(name, at_s, hot_servo=servo),
        "bus-cut": Failure(name, at_s, cut_bus=bus),
        "replies-lost": Failure(name, at_s, deaf_bus=bus),
    }[name]
