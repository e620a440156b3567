"""jHiccup's definition, re-computed from the probe's recorded wakes, beside the real thing in Java."""

import statistics
import tempfile
from pathlib import Path

import jhiccup
import ours
from children import CPU, run
from page import Section, microseconds

from bench.proof.page import Check, table

HERE = Path(__file__).parent
INTERVAL_NS = 1_000_000
SHOWN = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


def measure(taut: str, count: int, seconds: float, jar: Path) -> Section:
    # ns by tool and name, round by round.
    found: dict[str, dict[str, list[int]]] = {tool: {name: [] for name in SHOWN} for tool in ("Java", "taut")}
    for round_ in range(count):
        for tool in ("Java", "taut")[:: 1 if round_ % 2 else -1]:
            quantiles = in_java(jar, seconds) if tool == "Java" else from_wakes(taut, seconds)
            for name, ns in quantiles.items():
                found[tool][name].append(ns)
        print(f"jHiccup: round {round_ + 1} of {count}", flush=True)
    usual = {tool: {name: statistics.median_low(all_) for name, all_ in of.items()} for tool, of in found.items()}
    apart = {name: jhiccup.buckets_apart(usual["Java"][name], usual["taut"][name]) for name in SHOWN}
    each = [jhiccup.buckets_apart(a, b) for a, b in zip(found["Java"]["p50"], found["taut"]["p50"], strict=True)]
    result = Section(
        "Against jHiccup's definition",
        f"{count} rounds of {seconds:g} s in turn, both on CPU {CPU}, SCHED_OTHER: `Hiccup.java` (jHiccup's loop, with HdrHistogram 2.2.2 and its "
        "settings), and `taut wakeup --wake relative`, recorded without kernel events. From its wakes the same figure is computed: "
        f"time between wakes less the shortest so far, with synthetic samples, in buckets of {jhiccup.BUCKET_NS / 1000:.1f} µs.",
    )
    rows = [[tool, *(microseconds(usual[tool][name]) for name in SHOWN)] for tool in usual]
    rows.append(["buckets apart", *(str(n) for n in apart.values())])
    result.body = ["µs, medians over the rounds; only p50 is claimed:", table(["", *SHOWN], rows)]
    result.body.append(f"Of single rounds {sum(n <= 1 for n in each)} of {count} are within one bucket at p50.")
    result.checks = [Check("p50 from jHiccup's", f"{apart['p50']} buckets of 16.4 µs", "≤ 1", apart["p50"] <= 1)]
    return result


def in_java(jar: Path, seconds: float) -> dict[str, int]:
    command = ["java", "-cp", str(jar), str(HERE / "Hiccup.java"), f"{seconds:g}"]
    _, *quantiles = run(command, cpu=CPU).stdout.split()
    return dict(zip(SHOWN, map(int, quantiles), strict=True))


def from_wakes(taut: str, seconds: float) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "wakes.mcap"
        probe = ours.command(taut, CPU, seconds, "--wake", "relative")
        run([taut, "record", "--quiet", "--tier", "stamps", "--output", str(recording), "--", *probe])
        woke = [woke for _, woke in ours.read_wakes(recording).values()]
    # The first wake has none before it, as in Hiccup.java.
    samples = jhiccup.corrected(jhiccup.hiccups(woke), INTERVAL_NS)
    return {name: jhiccup.quantile(samples, q) for name, q in SHOWN.items()}
