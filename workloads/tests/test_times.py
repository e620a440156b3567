"""Times in the options of all workloads: the forms of `taut`, and no option that takes another."""

import argparse
import re
from pathlib import Path

import pytest

from workloads import times

WORKLOADS = Path(times.__file__).parent


@pytest.mark.parametrize(
    ("text", "value_s"),
    [("90", 90.0), ("90s", 90.0), ("250ms", 0.25), ("10m", 600.0), ("2h", 7200.0), ("150us", 150e-6), ("0.5", 0.5)],
)
def test_times_are_numbers_with_a_unit_or_seconds(text: str, value_s: float) -> None:
    assert times.within(86_400)(text) == pytest.approx(value_s)


@pytest.mark.parametrize("text", ["0", "-1", "1 parsec", "nan", "inf", "1e3", "", "1.2.3", "25h"])
def test_other_texts_are_refused_with_the_forms(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="90s, 250ms, 10m or 2h"):
        times.within(86_400)(text)


def test_no_option_of_a_workload_takes_a_time_in_a_form_of_its_own() -> None:
    taken = 0
    for path in sorted(WORKLOADS.glob("*/*.py")):
        calls = re.findall(r"(?:add_argument|option)\(\s*\"(?:--)?[^()]*(?:\([^()]*\)[^()]*)*\)", path.read_text())
        for call in calls:
            is_time = re.search(r"\bduration\b|-(?:ms|us|ns|s)\"|metavar=\"(?:S|MS|US|NS|TIME)\"|seconds", call)
            if is_time:
                assert "type=times.within(" in call and 'metavar="TIME"' in call, f"{path.name}: {call}"
                taken += 1
    assert taken == 5, "--duration three times, --stall-limit, --hog"
