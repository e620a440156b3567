"""What every proof's page has: checks against limits, tables in Markdown, the machine in one line."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """A figure against its limit."""

    what: str
    figure: str
    limit: str
    holds: bool
    # Under which of the proof's conditions, if it has several.
    condition: str = ""

    def __str__(self) -> str:
        return f"{'ok    ' if self.holds else 'MISSED'} {self.what}: {self.figure} (limit {self.limit})"


def verdicts(checks: Sequence[Check]) -> str:
    """All checks as a table."""
    rows = [[check.what, check.figure, check.limit, "holds" if check.holds else "**missed**"] for check in checks]
    return table(["", "measured", "limit", ""], rows)


def held(checks: Sequence[Check]) -> str:
    """How many checks hold, and which do not."""
    missed = [check.what for check in checks if not check.holds]
    text = f"{len(checks) - len(missed)} of {len(checks)} limits hold."
    return f"{text} **Missed**: {'; '.join(missed)}." if missed else text


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def machine() -> str:
    rows = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((row.split(":")[1].strip() for row in rows if row.startswith("model name")), "?")
    guest = ", virtual machine" if any(" hypervisor" in row for row in rows) else ""
    return f"{model}, {os.cpu_count()} CPUs{guest}, Linux {platform.release()}, Python {platform.python_version()}"
