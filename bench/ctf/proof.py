"""How fast is `taut import ctf`, against the Python way, and how much memory does it take? Writes docs/proof/ctf.md."""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import multiply

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.proof import peak  # noqa: E402

TAUT = ROOT / "target/shipped/taut"
# Debian's own Python: the bindings are made for no other.
PYTHON = "/usr/bin/python3"
SAMPLE = ROOT / "trace/taut-import/tests/data/ros2-caret-sample/end_to_end_sample/ust/uid/1000/64-bit"
PAGE = ROOT / "docs/proof/ctf.md"
PROMISED_RATIO, PROMISED_MIB = 50, 500


@dataclass
class Run:
    seconds: float
    peak_mib: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of little, on stdout: half a minute")
    quick = parser.parse_args().quick
    rounds, both, alone, large = (1, 100_000, 500_000, 64 << 20) if quick else (5, 500_000, 5_000_000, 1 << 30)
    # Not in /tmp, which may be memory.
    with tempfile.TemporaryDirectory(dir=ROOT / "target", prefix="ctf-proof-") as folder:
        text, holds = page(Path(folder), rounds, both, alone, large)
    if quick:
        print(text)
    else:
        PAGE.write_text(text)
        say(f"wrote {PAGE.relative_to(ROOT)}")
    return 0 if holds or quick else 1


def page(folder: Path, rounds: int, both: int, alone: int, large: int) -> tuple[str, bool]:
    """The page, and whether what was promised holds."""
    say(f"multiplying the sample to {both:,} events")
    events = multiply.multiply(SAMPLE, folder / "both", both, 0)
    ours, theirs = [], []
    for turn in range(rounds):
        say(f"round {turn + 1} of {rounds}")
        for way in (imported, with_bt2) if turn % 2 == 0 else (with_bt2, imported):
            (ours if way is imported else theirs).append(way(folder / "both", folder))
    ratios = [b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
    rows = [row("babeltrace2's Python bindings and pandas", theirs, events), row("`taut import ctf`", ours, events)]
    say(f"multiplying the sample to {alone:,} events")
    more = multiply.multiply(SAMPLE, folder / "alone", alone, 0)
    rows.append(row("`taut import ctf`", [imported(folder / "alone", folder) for _ in range(rounds)], more))
    say(f"multiplying the sample to {large >> 20} MiB")
    most = multiply.multiply(SAMPLE, folder / "large", 0, large)
    one = imported(folder / "large", folder)
    rows.append(row(f"`taut import ctf`, {large >> 20} MiB of streams", [one], most))
    peak = one.peak_mib
    ratio = statistics.median(ratios)
    table = "\n".join(rows)
    verdict = "kept" if ratio >= PROMISED_RATIO else "missed"
    memory = "kept" if peak <= PROMISED_MIB else "missed"
    text = f"""# Speed of trace imports

`taut import ctf` is {ratio:.0f} times as fast as Python's way on the same trace ({min(ratios):.0f} to {max(ratios):.0f} in the {len(ratios)} pairs). Limit {PROMISED_RATIO}: **{verdict}**.
{large >> 20} MiB took at most {peak:.0f} MiB of memory. Limit {PROMISED_MIB} for 1 GiB: **{memory}**.

Made by `bench/ctf/run` on {date.today()} with the trace of ROS 2 in the tests, multiplied; both programs read it in alternation.
`taut import ctf` leaves a recording with all chains. `bench/ctf/with_bt2.py` makes a dict of each event and data frames of those, as
tracetools_analysis and CARET do first. Wall time of the process, median of the rounds (least to most).

| way | events | rounds | seconds | events a second | peak memory, MiB |
|---|---|---|---|---|---|
{table}

{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, one thread each.
"""
    return text, ratio >= PROMISED_RATIO and peak <= PROMISED_MIB


def row(way: str, runs: list[Run], events: int) -> str:
    def spread(values: list[float], digits: int) -> str:
        middle = f"{statistics.median(values):,.{digits}f}"
        return middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"

    seconds = [run.seconds for run in runs]
    rate = statistics.median(events / run.seconds for run in runs)
    peaks = [run.peak_mib for run in runs]
    return f"| {way} | {events:,} | {len(runs)} | {spread(seconds, 2)} | {rate:,.0f} | {statistics.median(peaks):.0f} |"


def imported(trace: Path, folder: Path) -> Run:
    return measured([str(TAUT), "import", "ctf", str(trace), "-o", str(folder / "run.mcap")])


def with_bt2(trace: Path, _: Path) -> Run:
    return measured([PYTHON, str(ROOT / "bench/ctf/with_bt2.py"), str(trace)])


def measured(command: list[str]) -> Run:
    ran = peak.ran(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if ran.done.returncode:
        sys.exit(f"bench/ctf: {' '.join(command)}: exit code {ran.done.returncode}\n{ran.done.stderr.decode()}")
    return Run(ran.seconds, ran.peak_bytes / (1 << 20))


def say(sentence: str) -> None:
    print(f"bench/ctf: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
