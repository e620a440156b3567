"""How long a command takes, and how much memory it holds at its peak."""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    done: "subprocess.CompletedProcess[bytes]"
    seconds: float
    peak_bytes: int


def ran(command: Sequence[str | Path], **options: Any) -> Ran:
    """Runs it. A started process inherits the peak of the one that starts it (getrusage(2), `ru_maxrss`): a large benchmark would
    measure itself. So time(1), which is small, stands between the two."""
    with tempfile.NamedTemporaryFile("r") as peak:
        began = time.monotonic()
        done = subprocess.run(["/usr/bin/time", "--quiet", "-f", "%M", "-o", peak.name, *command], **options)
        return Ran(done, time.monotonic() - began, int(peak.read()) * 1024)
