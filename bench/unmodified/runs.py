"""What the parts of this bench share: record a command, and read what the report says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any


def record(taut: str, recording: Path, command: list[str], seconds: float | None = None, **more: Any) -> str:
    """Records the command; its standard output."""
    words = [taut, "record", "-q", "--ignore-loss", "-o", str(recording)]
    words += ["--duration", str(seconds)] if seconds else []
    done = subprocess.run([*words, "--", *command], capture_output=True, text=True, **more)
    # What --duration ends, and a program that says by its code how it ended, are recorded all the same.
    if not recording.exists():
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def report(taut: str, recording: Path) -> dict[str, Any]:
    """The report as JSON."""
    done = subprocess.run([taut, "report", "--format", "json", str(recording)], capture_output=True, text=True)
    if done.returncode not in (0, 5):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def hops(taut: str, recording: Path) -> list[dict[str, Any]]:
    """Every hop of every message, those of the start-up too."""
    return table(taut, recording, "hops")


def causes(taut: str, recording: Path) -> list[dict[str, Any]]:
    """Every piece of every hop with its cause."""
    return table(taut, recording, "causes")


def table(taut: str, recording: Path, name: str) -> list[dict[str, Any]]:
    import pyarrow.parquet

    tables = recording.with_suffix(".tables")
    subprocess.run([taut, "export", "parquet", str(recording), "-o", str(tables)], capture_output=True)
    return pyarrow.parquet.read_table(tables / f"{name}.parquet").to_pylist()
