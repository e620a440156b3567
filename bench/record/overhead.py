"""What a full-tier recording does to a 1 kHz loop: recorded and bare runs in turn, as ratios. With --profile what
sampling stacks adds, and with --flight what a flight recorder changes: recorded with it and without in turn.

python3 bench/record/overhead.py [--pairs 20] [--cycles 2000] [--load 1] [--profile 99 | --flight]
Build first: cargo build --release -p taut && cargo build --release -p taut-capture --examples
"""

import argparse
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile

NAMES = ["wakeup p50", "wakeup p99", "cycle p50", "cycle p99"]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if re.fullmatch(r"\d+( \d+){3}", line))
    return [int(word) for word in line.split()]


def cpu_s():
    """CPU time of all commands so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cost(taut, recording):
    """What the recording itself says that it cost."""
    report = subprocess.run([taut, "report", recording, "--format", "json"], capture_output=True, check=True)
    report = json.loads(report.stdout)
    facts, profile = report["recording"], report["profile"] or {"samples": 0, "lost_samples": 0}
    lost = facts["lost_kernel_events"] + facts["lost_stamps"]
    figures = {key: facts[key] for key in ["recorder_cpu_ns", "kernel_events", "stamps", "file_bytes"]}
    return figures | {"lost": lost} | {key: profile[key] for key in ["samples", "lost_samples"]}


def interval(ratios):
    """Median with a 95 % bootstrap interval; the pair is the unit."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--load", type=int, default=1, help="times 50 us of work in a cycle")
    parser.add_argument("--profile", type=int, metavar="HZ", help="what sampling so often adds to a recording")
    parser.add_argument("--flight", action="store_true", help="what a flight recorder changes of a recording")
    parser.add_argument("--json", action="store_true", help="the figures for other programs")
    parser.add_argument("--taut", default="target/shipped/taut")
    parser.add_argument("--loop", default="target/shipped/examples/overhead_loop")
    options = parser.parse_args()
    loop = [options.loop, str(options.cycles), str(options.load)]
    without, with_it, costs, used_s = [], [], [], {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "run.mcap")
        record = [options.taut, "record", "-q", "--tier", "full", "-o", output]
        more = ["--profile", str(options.profile)] if options.profile else []
        more += ["--flight-recorder"] if options.flight else []
        bare = [*record, "--", *loop] if more else loop
        for pair in range(options.pairs):
            # Which comes first changes, so that what a run leaves behind falls on both.
            for has_it in [pair % 2 == 0, pair % 2 == 1]:
                before_s = cpu_s()
                if has_it:
                    with_it.append(run([*record, *more, "--", *loop]))
                else:
                    without.append(run(bare))
                used_s[has_it].append(cpu_s() - before_s)
                # A flight recorder that is not made to save leaves no file.
                if has_it != options.flight and os.path.exists(output):
                    costs.append(cost(options.taut, output))
        # Without stamps the file is its kernel events: the session's name is what a program stamps by.
        run([*record, "--", "env", "-u", "TAUT_SESSION", *loop])
        kernel_alone = cost(options.taut, output)
    bytes_an_event = kernel_alone["file_bytes"] / kernel_alone["kernel_events"]
    duration_s = options.cycles / 1000
    names = ("recorded", "bare")
    if more:
        names = ("flight" if options.flight else "profiled", "recorded")
    ratios = {
        name: interval([r[column] / b[column] for r, b in zip(with_it, without, strict=True)])
        for column, name in enumerate(NAMES)
    }
    usual = {key: statistics.median(run[key] for run in costs) for key in costs[0]}
    if options.json:
        lost = sum(run["lost"] for run in costs)
        found = {"ratios": ratios, "usual": usual, "duration_s": duration_s, "lost": lost}
        json.dump(found | {"bytes_an_event": bytes_an_event}, sys.stdout)
        return
    print(f"{options.pairs} pairs of {options.cycles} cycles; ratio {names[0]}/{names[1]}, median [95 %]")
    for column, (name, (median, low, high)) in enumerate(ratios.items()):
        typical = statistics.median(b[column] for b in without)
        print(f"{name:11} {names[1]} {typical / 1000:8.2f} us   ratio {median:.3f} [{low:.3f}, {high:.3f}]")
    print(f"recorder CPU {usual['recorder_cpu_ns'] / 1e9 / duration_s:.1%} of one core, start and end included")
    print(
        f"{usual['kernel_events']:.0f} kernel events, {usual['stamps']:.0f} stamps, {usual['file_bytes']:.0f} bytes "
        f"a run of {duration_s:g} s; lost {sum(run['lost'] for run in costs)}"
    )
    if options.flight:
        median, low, high = interval([f / r for f, r in zip(used_s[True], used_s[False], strict=True)])
        print(f"CPU of recorder and loop together: ratio {median:.3f} [{low:.3f}, {high:.3f}]")
    if options.profile:
        print(f"{usual['samples']:.0f} samples of stacks a run; lost {sum(run['lost_samples'] for run in costs)}")
        return
    print(f"{bytes_an_event:.1f} bytes a kernel event in a recording without stamps")


if __name__ == "__main__":
    main()
