"""What a section found; the verdicts as `docs/proof/wakeup.md`, and all of it as `bench/wakeup/results.md`."""

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
    # What the page has of it, in Markdown; of a section without it the page's table has the checks.
    brief: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n\n".join([f"## {self.title}", self.text, *self.body])


TITLE = "The wakeup test against other tools"


def page(sections: Sequence[Section], command: str, minutes: float) -> str:
    checks = [check for section in sections for check in section.checks]
    parts = [
        f"# {TITLE}",
        "Does `taut wakeup` measure what cyclictest and jHiccup measure, at what cost, and does it name a program that takes the CPU (*hog*)? "
        + held(checks)
        + " All figures, and the interpreter's part of a Python script's lateness: [results](../../bench/wakeup/results.md).",
        f"Made by `{command}` on {datetime.date.today()} in {minutes:.0f} minutes: {machine()}. Do not edit. "
        "Comparisons are within a round; no round is left out. Intervals are 90 %.",
        verdicts([check for section in sections if not section.brief for check in section.checks]),
    ]
    briefs = ["\n\n".join([f"## {section.title}", *section.brief]) for section in sections if section.brief]
    return "\n\n".join(parts + briefs) + "\n"


def results(sections: Sequence[Section], command: str) -> str:
    """Every figure, and how it was measured."""
    parts = [
        f"# {TITLE}: results",
        f"Made by `{command}` on {datetime.date.today()}. Do not edit. What they mean: [the page](../../docs/proof/wakeup.md).",
        verdicts([check for section in sections for check in section.checks]),
    ]
    return "\n\n".join(parts + [str(section) for section in sections]) + "\n"


def microseconds(ns: float | None) -> str:
    """To a precision that somebody reads."""
    if ns is None:
        return "–"
    us = ns / 1000
    return f"{us:.1f}" if abs(us) < 100 else f"{us:,.0f}".replace(",", "\u202f")
