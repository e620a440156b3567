"""What a section found, and all of it as `docs/proof/wakeup.md`."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.proof.page import Check, held, machine, verdicts


@dataclass
class Section:
    title: str
    # How it was measured, in Markdown.
    text: str
    # Tables and further paragraphs, in Markdown.
    body: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n\n".join([f"## {self.title}", self.text, *self.body])


def page(sections: Sequence[Section], command: str, minutes: float) -> str:
    checks = [check for section in sections for check in section.checks]
    parts = [
        "# The wakeup test against other tools",
        "Does `taut wakeup` measure what cyclictest and jHiccup measure, at what cost, and does it name a program that takes the CPU? "
        + held(checks),
        f"Made by `{command}` on {datetime.date.today()} in {minutes:.0f} minutes: {machine()}. Do not edit. "
        "Every comparison is within a round, and the round is the "
        "unit. No round is left out, also if the whole machine stalled. Intervals are 90 %.",
        verdicts(checks),
    ]
    return "\n\n".join(parts + [str(section) for section in sections]) + "\n"


def microseconds(ns: float | None) -> str:
    """To a precision that somebody reads."""
    if ns is None:
        return "–"
    us = ns / 1000
    return f"{us:.1f}" if abs(us) < 100 else f"{us:,.0f}".replace(",", "\u202f")
