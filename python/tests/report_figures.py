"""What two reports of one recording have in common."""

import json
from typing import Any


def figures(report: str | bytes) -> dict[str, Any]:
    """A report's JSON without the last digits: sums of floats depend on their order."""
    found: dict[str, Any] = json.loads(report, parse_float=lambda text: float(f"{float(text):.9g}"))
    return found
