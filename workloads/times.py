"""Times on the command line, as `taut` itself takes them: `90` and `90s`, `250ms`, `10m`, `2h`."""

import argparse
import math
import re
from collections.abc import Callable

UNITS_S = {
    "": 1.0,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
HINT = "such as 90, 90s, 250ms, 10m or 2h (a number alone is seconds)"


def within(most_s: float) -> Callable[[str], float]:
    """A type for argparse: seconds, above 0 and up to `most_s`."""

    def time(text: str) -> float:
        found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zµ]*)\s*", text)
        try:
            value_s = float(found[1]) * UNITS_S[found[2]] if found else math.nan
        except (ValueError, KeyError):
            value_s = math.nan
        if not 0 < value_s <= most_s:
            raise argparse.ArgumentTypeError(f"{text}: give a time above 0 and up to {most_s:g}s, {HINT}")
        return value_s

    return time
