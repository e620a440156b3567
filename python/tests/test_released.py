"""A fleet's rows of every released layout, asked with today's questions; `cli/taut/tests/released/README.md` says what they are."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import taut.fleet

RELEASED = Path(__file__).resolve().parents[2] / "cli/taut/tests/released"


def holds(was: Any, now: Any, place: str) -> None:
    """All that was said is said still; fields may have come."""
    if isinstance(was, dict):
        for key in was:
            assert key in now, f"{place}.{key} is gone"
            holds(was[key], now[key], f"{place}.{key}")
    elif isinstance(was, list):
        assert len(was) == len(now), place
        for at, (one, other) in enumerate(zip(was, now, strict=True)):
            holds(one, other, f"{place}[{at}]")
    else:
        assert now == (pytest.approx(was, rel=1e-9) if isinstance(was, float) else was), place


@pytest.mark.parametrize("fleet", sorted(RELEASED.glob("fleet-*/")), ids=lambda path: path.name)
def test_a_fleets_rows_say_what_they_said(fleet: Path) -> None:
    answer = json.loads(json.dumps(taut.fleet.open(str(fleet)).report(), default=str))
    del answer["place"]
    expected = fleet.with_suffix(".json")
    if os.environ.get("TAUT_UPDATE"):
        expected.write_text(json.dumps(answer, indent=2, ensure_ascii=False) + "\n")
    holds(json.loads(expected.read_text()), answer, fleet.name)


def test_there_is_one() -> None:
    assert (RELEASED / "fleet-1").is_dir()
