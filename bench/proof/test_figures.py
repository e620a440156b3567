"""A page of docs/proof may fall short of its results, and may not claim: its figures are those of the results that it links to, and the
overview's are those of the pages."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROOF = ROOT / "docs/proof"

# What is no figure of the results, page by page, and why.
ELSEWHERE = {
    "bus.md": {"30 µs": "the limit"},
    "causes.md": {version: "a version of CPython" for version in ("3.14",)},
    "fleet.md": {
        "17.5 M": "rows of six weeks in the time of their report",
        "143 s": "a year's rows at this rate",
        "5.63 M": "rows of an hour in the time of its report",
    },
    "intervals.md": {
        "95 %": "the level",
        "96 %": "78 of 81: the sum of two sets",
        "88 %": "21 of 24",
        "85 %": "181 of 212: the sum of two sets",
    },
    "predictions.md": {"50 µs": "the limit"},
    "ros2.md": {"36 µs": "a difference of two columns", "29.5": "a version of rclcpp"},
    "teleop-hour.md": {
        **{time: "a setting of the wire" for time in ("10 ms", "0.5", "200 ms")},
        **{time: "a setting of the guard" for time in ("500 ms", "50 ms", "100 ms")},
        "99.9 %": "the limit",
    },
    "teleop.md": {
        "90 %": "the level",
        **{step: "the longest step, which only the page has" for step in ("58.5", "57.8", "60.3")},
    },
    "tune.md": {"150 s": "the longest that a run of runs.jsonl may take"},
    "wakeup.md": {"28 minutes": "how long it took"},
}
# Pages of one table, which have all that was measured, and one of which the results have other figures.
WITHOUT_RESULTS = {"README.md", "ctf.md", "import.md", "live.md", "teleop-report.md"}
NOT_HELD = {"gate.md": "it has the bounds of counts, and the results have their shares"}

# A number with its unit; in a column its unit is in the head. Without a unit only one with a decimal point counts: others are many.
UNIT = r"%|ns|µs|ms|s|min|minutes|h|hours|B|bytes|[kMG]B|[KMG]iB|M|Hz|kHz"
NUMBER = re.compile(rf"(?<![\w.,])(?<!\w-)(\d+(?:[,\u202f]\d+)*(?:\.\d+)?)(?!\.?\d)(?:[ \u202f]?({UNIT})(?![\w/]))?")
COUNT = re.compile(r"(?<![\w.,])(\d+(?:,\d+)*) of (\d+(?:,\d+)*)\b")


def prose(text: str) -> str:
    """Without comments, code, the targets of links, and versions."""
    for pattern in (r"(?s)<!--.*?-->", r"(?s)```.*?```", r"`[^`]*`", r"\]\([^)]*\)", r"\b\d+\.\d+\.\d+\S*"):
        text = re.sub(pattern, " ", text)
    return re.sub(r"(?<=\d)[\s\u00a0](?=\d{3}\b)", "", text)


def numbers(text: str) -> Iterator[tuple[str, Decimal, str]]:
    """As they stand there, their value, and their unit."""
    for found in NUMBER.finditer(prose(text)):
        yield " ".join(found[0].split()), Decimal(re.sub(r"[,\u202f]", "", found[1])), found[2] or ""


def missing(text: str, evidence: str) -> set[str]:
    """Numbers of a text that the evidence does not have: exact, rounded, or in a unit a thousand times as large or small."""
    known = {(abs(value), unit) for _, value, unit in numbers(evidence)}
    found = set()
    for written, value, unit in numbers(text):
        if not unit and "." not in written:
            continue
        half = Decimal(5).scaleb(value.as_tuple().exponent - 1)
        same = {of for of, other in known if not other or not unit or (other == "%") == (unit == "%")}
        if not any(abs(of.scaleb(by) - value) <= half for of in same for by in (0, 3, -3)):
            found.add(written)
    return found


def linked(text: str, folder: Path) -> list[Path]:
    return [(folder / target).resolve() for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", text)]


def results_of(page: Path) -> list[Path]:
    return [path for path in linked(page.read_text(), page.parent) if path.parts[len(ROOT.parts)] in ("bench", "fuzz")]


PAGES = sorted(PROOF.glob("*.md"))


def test_a_page_without_results_is_known_as_one() -> None:
    assert {page.name for page in PAGES if page.name == "README.md" or not results_of(page)} == WITHOUT_RESULTS


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in WITHOUT_RESULTS | NOT_HELD.keys()], ids=lambda page: page.name
)
def test_the_figures_of_a_page_are_those_of_its_results(page: Path) -> None:
    evidence = "\n".join(path.read_text() for path in results_of(page))
    known = ELSEWHERE.get(page.name, {})
    found = missing(page.read_text(), evidence)
    assert found - known.keys() == set(), "no results that the page links to have these"
    assert known.keys() - found == set(), "these exceptions are needed no more"


def rows() -> list[str]:
    return [line for line in (PROOF / "README.md").read_text().splitlines() if line.startswith("| [")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[: row.index("]")].removeprefix("| ["))
def test_the_figures_of_the_overview_are_those_of_the_pages(row: str) -> None:
    pages = "\n".join(path.read_text() for path in linked(row, PROOF))
    assert missing(row, pages) == set()
    counts = {found.groups() for found in COUNT.finditer(prose(row))}
    assert counts - {found.groups() for found in COUNT.finditer(" ".join(prose(pages).split()))} == set()


def test_a_number_is_found_rounded_and_in_another_unit_and_no_other_is() -> None:
    evidence = "| p99, ns | 11 309 | 0.928 |\n\nIt took 98.4 % of 12,000."
    assert missing("11.3 µs, 11,309 ns, 98 %, 0.93 and 12,000", evidence) == set()
    assert missing("11.4 µs", evidence) == {"11.4 µs"}
    assert missing("98.5 %", evidence) == {"98.5 %"}
    assert missing("98.4 ms", evidence) == {"98.4 ms"}, "a share is no time"
