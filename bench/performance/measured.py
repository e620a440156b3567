"""The measurements, each by the programs of its own folder, and what they are held against."""

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from build import ROOT, TAUT, example
from written import Row

# KiB.
MIB = 1024


def load() -> float:
    return os.getloadavg()[0]


def run(*command: object, **environment: str) -> str:
    """What the command prints; it ends this program where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}")
    return done.stdout


def used(*command: str) -> tuple[float, float]:
    """CPU seconds of a command, and its largest resident set in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MIB


def medians(runs: list[tuple[float, float]]) -> tuple[float, float]:
    cpu, memory = zip(*runs, strict=True)
    return statistics.median(cpu), statistics.median(memory)


def times(ours: float, peer: float, most: float) -> tuple[str, bool]:
    return f"≤ {most:g} × ({ours / peer:.2f} ×)", ours <= most * peer


def stamps(quick: bool) -> list[Row]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        run("bench/stamp/run", "--rounds", 3 if quick else 41, "--json", file.name)
        batches = json.loads(Path(file.name).read_text())["ns_each"]
    median = {row: statistics.median(values) for row, values in batches.items()}
    pairs = [
        ("stamp in C", "taut C", "TSC read", 1.1),
        ("stamp in Rust", "taut Rust", "TSC read", 1.1),
        ("stamp in Python, in a session", "taut Python", "Python time.perf_counter()", 1.0),
        ("stamp in Python, no session", "taut Python, no session", "Python empty builtin", 1.3),
    ]
    rows = []
    for what, ours, peer, most in pairs:
        limit, holds = times(median[ours], median[peer], most)
        beside = f"{peer.removeprefix('Python ')}: {median[peer]:.1f} ns"
        n = f"median of {len(batches[ours])} batches"
        rows.append(Row(what, f"{median[ours]:.1f} ns", beside, limit, holds, n))
    return rows + ros2(quick, median["LTTng-UST"])


def ros2(quick: bool, lttng_ns: float) -> list[Row]:
    rounds = 1 if quick else 5
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        words = ["bench/ros2/run", "--rounds", str(rounds), "--json", file.name]
        # It fails above limits of its own, and has written the figures then.
        subprocess.run(words, cwd=ROOT, env=os.environ | {"TAUT": TAUT}, stdout=subprocess.DEVNULL)
        found = json.loads(Path(file.name).read_text())
    [ns] = [row["ns"] for row in found["rows"] if (row["tracepoint"], row["mode"]) == ("callback_start", "session")]
    limit, holds = times(ns, lttng_ns, 0.2)
    n = f"median of {rounds} rounds"
    return [Row("ROS 2 tracepoint", f"{ns:.1f} ns", f"LTTng-UST: {lttng_ns:.1f} ns", limit, holds, n)]


def analysis(quick: bool) -> list[Row]:
    bench = example("analysis_bench")
    rounds, small, large = (1, 1, 2) if quick else (5, 10, 100)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/kernel.mcap"
        run(bench, "generate-kernel", file, small * 1_000_000)
        arms: dict[str, list[tuple[float, float]]] = {"read": [], "analyse": []}
        for _ in range(rounds):
            for arm in random.sample(list(arms), 2):
                arms[arm].append(used(bench, arm, file))
        run(bench, "generate-kernel", file, large * 1_000_000)
        large_s, large_mib = used(bench, "analyse", file)
        run(bench, "generate-kernel", file, 1_400_000)
        reports = [used(TAUT, "report", file, "--format", "json") for _ in range(2 if quick else 11)]
    (cpu_s, mib), (read_s, _), (report_s, report_mib) = (
        medians(arms["analyse"]),
        medians(arms["read"]),
        medians(reports),
    )
    linear_s = large / small * cpu_s
    few, many, n = f"{small} M kernel events", f"{large} M kernel events", f"median of {rounds} runs"
    beside = f"{large / small:g} × {small} M: {linear_s:.1f} s"
    limit, holds = times(large_s, linear_s, 1.1)
    reported, of = f"{report_s:.2f} s, {report_mib:.0f} MiB", f"median of {len(reports)} runs"
    return [
        Row(f"explain {few}", f"{cpu_s:.2f} s", f"read the file: {read_s:.2f} s", "≤ 2.5 s", cpu_s <= 2.5, n),
        Row("… memory", f"{mib:.0f} MiB", "", "≤ 500 MiB", mib <= 500, n),
        Row(f"explain {many}", f"{large_s:.1f} s", beside, limit, holds, "one run"),
        Row("… memory", f"{large_mib:.0f} MiB", "", "≤ 1536 MiB", large_mib <= 1536, "one run"),
        Row("`taut report` of 1.4 M kernel events", reported, "", "≤ 0.2 s", report_s <= 0.2, of),
    ]


def recorder(quick: bool) -> list[Row]:
    # In a short run starting and ending costs as much as recording.
    pairs, cycles = (2, 2000) if quick else (12, 8000)
    words = ["--pairs", pairs, "--cycles", cycles, "--json", "--taut", TAUT, "--loop", example("overhead_loop")]
    found = json.loads(run(sys.executable, "bench/record/overhead.py", *words))
    usual, n = found["usual"], f"{pairs} pairs of {found['duration_s']:g} s"
    share = 100 * usual["recorder_cpu_ns"] / 1e9 / found["duration_s"]
    size = found["bytes_an_event"]
    rows = [
        Row("recorder, full tier", f"{share:.1f} % of a core", "", "≤ 2 %", share <= 2, n),
        Row("kernel event on disk", f"{size:.1f} bytes", "", "≤ 9 bytes", size <= 9, "a run without stamps"),
        Row("events and stamps lost", f"{found['lost']}", "", "none", found["lost"] == 0, n),
    ]
    for name in ["wakeup p99", "cycle p99"]:
        middle, low, high = found["ratios"][name]
        figure = f"{middle:.3f} × [{low:.3f}, {high:.3f}]"
        holds = low >= 0.97 and high <= 1.03
        rows.append(Row(f"1 kHz loop recorded, {name}", figure, "bare", "interval within 0.97 to 1.03 ×", holds, n))
    return rows + sources(quick)


def sources(quick: bool) -> list[Row]:
    batches = 3 if quick else 15
    text = run(example("kernel_sources"), batches, 20_000)
    each = {name: float(ns) for name, ns in re.findall(r"(\w+) +\d+ ns/switch +(\d+) ns/event", text)}
    limit, holds = times(each["ftrace"], each["unread"], 1.1)
    n = f"median of {batches} batches"
    peer = f"unread: {each['unread']:.0f} ns; perf: {each['perf']:.0f} ns"
    return [Row("kernel event, to the traced thread", f"{each['ftrace']:.0f} ns", peer, limit, holds, n)]


def guard(quick: bool) -> list[Row]:
    rounds, updates = (1, 20_000) if quick else (11, 200_000)
    prefix = ["chrt", "-f", "50", "taskset", "-c", max(os.sched_getaffinity(0))]
    lines = run(*prefix, example("guard_bench"), "latency", updates, rounds).splitlines()
    found = [json.loads(line) for line in lines]
    tail = {arm: statistics.median(each[arm][4] for each in found if arm in each) for arm in ["update", "control"]}
    limit, holds = times(tail["update"], tail["control"], 1.0)
    peer = f"multiplications: {tail['control']:.0f} ns"
    n = f"{rounds} rounds of {updates}"
    what, figure = "guard `update`, p99.99", f"{tail['update']:.0f} ns"
    most_ns = 1000
    return [
        Row(what, figure, "", f"≤ {most_ns} ns", tail["update"] <= most_ns, n),
        Row(what, figure, peer, limit, holds, n),
    ]


def telemetry(quick: bool) -> list[Row]:
    seconds = 3 if quick else 60
    with tempfile.TemporaryDirectory() as folder:
        record = [TAUT, "record", "-q", "--tier", "stamps", "-o", f"{folder}/telemetry.mcap", "--"]
        found = json.loads(run(*record, example("log_bench"), "produce", seconds, 2000, 400))
    [row] = found["rows"]
    ours, peer = row["write"][2], row["cold"][2]
    limit, holds = times(ours, peer, 1.2)
    what, n, most_ns = "telemetry, 2000 doubles at 400 Hz, p99.9", f"{row['n']} calls", 250
    return [
        Row(what, f"{ours} ns", "", f"≤ {most_ns} ns", ours <= most_ns and row["lost"] == 0, n),
        Row(what, f"{ours} ns", f"memcpy: {peer} ns", limit, holds and row["lost"] == 0, n),
    ]


def top(quick: bool) -> list[Row]:
    rounds, seconds = (1, 9) if quick else (3, 50)
    words = ["--rounds", rounds, "--seconds", seconds, "--json", "--taut", TAUT, "--loop", example("overhead_loop")]
    found = json.loads(run(sys.executable, "bench/top/measure.py", *words))
    share = 100 * statistics.median(trial["top"] for trial in found)
    memory = max(trial["top_kib"] for trial in found) / MIB
    n = f"{rounds} runs of {seconds} s"
    return [
        Row("`taut top` beside a recording", f"{share:.1f} % of a core", "", "≤ 1 %", share <= 1, n),
        Row("… memory", f"{memory:.0f} MiB", "", "≤ 100 MiB", memory <= 100, n),
    ]


def binary(_: bool) -> list[Row]:
    with tempfile.NamedTemporaryFile() as file:
        run("strip", "-o", file.name, TAUT)
        size = os.stat(file.name).st_size / 1e6
    return [Row("binary, stripped", f"{size:.1f} MB", "", "≤ 15 MB", size <= 15, "")]


ALL: dict[str, Callable[[bool], list[Row]]] = {
    "stamps": stamps,
    "analysis": analysis,
    "recorder": recorder,
    "guard": guard,
    "telemetry": telemetry,
    "top": top,
    "binary": binary,
}
