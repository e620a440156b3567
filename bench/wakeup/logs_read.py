"""Interval logs of the probe, read by HdrHistogram's own tools in Python and Java."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ours
from children import run
from page import Section

from bench.proof.page import Check, table

# Of its three digits: a bucket's width, and one for whole nanoseconds.
DIGITS, WHOLE_NS = 0.001, 1


@dataclass(frozen=True)
class Figures:
    n: int
    p50_ns: float
    p99_ns: float
    max_ns: float

    def agrees(self, other: "Figures") -> bool:
        pairs = [(self.p50_ns, other.p50_ns), (self.p99_ns, other.p99_ns), (self.max_ns, other.max_ns)]
        return self.n == other.n and all(abs(a - b) <= DIGITS * b + WHOLE_NS for a, b in pairs)

    def __str__(self) -> str:
        return f"{self.n}: {self.p50_ns / 1000:.2f}, {self.p99_ns / 1000:.2f}, {self.max_ns / 1000:.2f}"


def measure(taut: str, seconds: float, jar: Path) -> Section:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "wakes.hlog"
        words = ["--vary", "policy=other,fifo", "--interval", "500us", "--duration", f"{round(2000 * seconds)}ms"]
        stdout = run([taut, "wakeup", "--quiet", "--format", "json", *words, "--hlog", str(log)]).stdout
        truth = dict(by_json(json.loads(stdout)))
        in_python = {tag: by_python(lateness) for tag, lateness in ours.read_log(log).items()}
        in_java = {tag: by_java(jar, log, tag) for tag in tags_by_java(jar, log)}
    result = Section(
        "Interval logs in other tools",
        f"`taut wakeup {' '.join(words)} --hlog FILE`, the file read by PyPI's `hdrhistogram` and by HistogramLogProcessor of Java's HdrHistogram "
        "2.2.2, beside what `taut wakeup` prints. Each cell is the count, and p50, p99 and max in µs.",
    )
    same = [tag for tag in truth if tag in in_python and tag in in_java]
    rows = [[f"`{tag}`", str(truth[tag]), str(in_python.get(tag)), str(in_java.get(tag))] for tag in truth]
    result.body = [table(["tag", "taut", "Python", "Java"], rows)]
    agree = [tag for tag in same if in_python[tag].agrees(truth[tag]) and in_java[tag].agrees(truth[tag])]
    strange = (in_python.keys() | in_java.keys()) - truth.keys()
    holds = len(agree) == len(truth) and not strange
    figure = f"{len(agree)} of {len(truth)} tags" + (
        f", and unknown ones: {', '.join(sorted(strange))}" if strange else ""
    )
    result.checks = [
        Check("interval logs read alike by Python, Java and taut", figure, "all, within three digits", holds)
    ]
    return result


def by_json(probe: dict[str, Any]) -> Iterator[tuple[str, Figures]]:
    for variant in probe["variants"]:
        for cpu in variant["cpus"]:
            d = cpu["wakeups"]
            figures = Figures(d["n"], d["p50_ns"], d["p99_ns"], d["max_ns"])
            yield f"{variant['label']}/cpu{cpu['cpu']}", figures


def by_python(lateness: ours.Lateness) -> Figures:
    return Figures(lateness.n, lateness.quantile_ns(0.5), lateness.quantile_ns(0.99), lateness.max_ns)


def tags_by_java(jar: Path, log: Path) -> list[str]:
    lines = processor(jar, log, "-listtags").splitlines()
    return [line for line in lines[lines.index("Tags found in input file:") + 1 :] if line]


def by_java(jar: Path, log: Path, tag: str) -> Figures:
    output = log.with_suffix(".out")
    processor(jar, log, "-tag", tag, "-outputValueUnitRatio", "1", "-o", str(output))
    return read_processed(output.read_text())


def read_processed(text: str) -> Figures:
    """The totals at the end: T:n ( 50% 90% 99% 99.9% 99.99% Max )."""
    count, _, values = text.rstrip().splitlines()[-1].partition("T:")[2].partition(" ( ")
    p50, _, p99, _, _, max_ = map(float, values.split()[:6])
    return Figures(int(count), p50, p99, max_)


def processor(jar: Path, log: Path, *words: str) -> str:
    command = ["java", "-cp", str(jar), "org.HdrHistogram.HistogramLogProcessor", "-i", str(log), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
