"""A known disturbance, and whether `taut wakeup --explain` finds and names it."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import blame
import hog
import ours
from children import CPU, in_background, run
from page import Section

from bench.proof.page import Check, table

HERE = Path(__file__).parent
PRIORITY, PROBE_PRIORITY, INTERVAL_NS = 95, 80, 1_000_000
NAMED, LEAST_HITS = 0.99, 200


def measure(taut: str, count: int, seconds: float) -> Section:
    verdicts = [once(taut, max(seconds, 5), seed) for seed in range(1, max(count // 3, 1) + 1)]
    hits, named = sum(v.hits for v in verdicts), sum(v.named for v in verdicts)
    others, slandered = sum(v.others for v in verdicts), sum(v.slandered for v in verdicts)
    errors = [error for v in verdicts for error in v.errors_ns] or [0]
    result = Section(
        "A program that takes the CPU is named",
        f"`hog.py` takes CPU {CPU} for 2 ms at random moments, SCHED_FIFO {PRIORITY}, and logs the times; `taut wakeup --policy fifo --priority "
        f"{PROBE_PRIORITY} --explain --record RUN --above 100us` runs on the same CPU, {len(verdicts)} recordings of {max(seconds, 5):g} s; `taut explain RUN --all --format json` has "
        "the causes of every wake. A burst that overlaps a due time by more than 100 µs is a hit. It is named if a wake that it delayed has "
        "the hog, by name and process, as the largest part of its lateness.",
    )
    rows = [
        ["bursts that hit", str(hits)],
        ["named", str(named)],
        ["late wakes in all", str(sum(v.late for v in verdicts))],
        ["of them beyond every burst", str(others)],
        ["of those assigned to the hog", str(slandered)],
        ["hog's part less the truth, median", f"{statistics.median(errors) / 1000:+.1f} µs"],
        ["… 90 % of them", f"{quantile(errors, 0.05) / 1000:+.1f} to {quantile(errors, 0.95) / 1000:+.1f} µs"],
    ]
    result.body = [table(["", ""], rows)]
    wrong = [line for v in verdicts for line in v.wrong]
    if wrong:
        result.body.append("Not named:\n\n" + "\n".join(f"- {line}" for line in wrong[:20]))
    share = named / max(hits, 1)
    result.checks = [
        Check("hog found and named", f"{100 * share:.2f} % of {hits} hits", f"≥ {100 * NAMED:.0f} %", share >= NAMED),
        Check("hits of the hog", str(hits), f"≥ {LEAST_HITS}", hits >= LEAST_HITS),
        Check("late wakes beyond the hog's bursts assigned to it", f"{slandered} of {others}", "0", slandered == 0),
    ]
    return result


def once(taut: str, seconds: float, seed: int) -> blame.Verdict:
    with tempfile.TemporaryDirectory() as folder:
        recording, truth = Path(folder) / "run.mcap", Path(folder) / "truth"
        with in_background([sys.executable, str(HERE / "hog.py"), *map(str, (CPU, PRIORITY, seed, truth))]) as process:
            words = ["--policy", "fifo", "--priority", str(PROBE_PRIORITY), "--explain", "--above", "100us"]
            run(ours.command(taut, CPU, seconds, *words, "--record", str(recording)))
        bursts = [(int(start), int(end)) for start, end in map(str.split, truth.read_text().splitlines())]
        explained = json.loads(run([taut, "explain", str(recording), "--all", "--format", "json"]).stdout)
        due_ns = {id_: due for id_, (due, _) in ours.read_wakes(recording).items()}
    verdict = blame.judge(bursts, blame.read_wakes(explained, due_ns), f"{hog.NAME}/{process.pid}", INTERVAL_NS)
    print(f"hog: {verdict.named} of {verdict.hits} named", flush=True)
    return verdict


def quantile(values: list[int], q: float) -> int:
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]
