"""What a full-tier recording does to a 1 kHz loop: recorded and bare runs in turn, as ratios.

python3 bench/record/overhead.py [--pairs 20] [--cycles 2000] [--taut target/release/taut]
Build first: cargo build --release -p taut && cargo build --release -p taut-capture --example overhead_loop
"""

import argparse
import os
import random
import re
import resource
import statistics
import subprocess
import tempfile

NAMES = ["wakeup p50", "wakeup p99", "cycle p50", "cycle p99"]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    line = [line for line in done.stdout.splitlines() if re.fullmatch(r"\d+( \d+){3}", line)][0]
    return [int(word) for word in line.split()], done.stderr


def interval(ratios):
    """Median with a 95 % bootstrap interval; the pair is the unit."""
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--taut", default="target/release/taut")
    parser.add_argument("--loop", default="target/release/examples/overhead_loop")
    options = parser.parse_args()
    loop = [options.loop, str(options.cycles)]
    bare, recorded, cpu_s, file_bytes = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "run.mcap")
        record = [options.taut, "record", "--quiet", "--tier", "full", "-o", output, "--"]
        for pair in range(options.pairs):
            # Which comes first changes, so that what a run leaves behind falls on both.
            for is_recorded in [pair % 2 == 0, pair % 2 == 1]:
                if not is_recorded:
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    bare.append(run(loop)[0])
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    loop_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    cpu_s.append(-loop_cpu)
                else:
                    before = resource.getrusage(resource.RUSAGE_CHILDREN)
                    figures, talk = run(record + loop)
                    after = resource.getrusage(resource.RUSAGE_CHILDREN)
                    recorded.append(figures)
                    cpu_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
                    file_bytes.append(os.path.getsize(output))
    duration_s = options.cycles / 1000
    print(f"{options.pairs} pairs of {options.cycles} cycles; ratio recorded/bare, median [95 %]")
    for column, name in enumerate(NAMES):
        median, low, high = interval([r[column] / b[column] for r, b in zip(recorded, bare)])
        typical = statistics.median(b[column] for b in bare)
        print(f"{name:11} bare {typical / 1000:8.2f} us   ratio {median:.3f} [{low:.3f}, {high:.3f}]")
    # Start and end of the recorder included: over a short run that is most of it.
    print(f"recorder CPU (whole command less the bare loop): {sum(cpu_s) / options.pairs / duration_s:.1%} of one core")
    print(f"file: {statistics.median(file_bytes)} bytes a run of {duration_s:g} s")
    print("last recording said:", " ".join(talk.split()) or "(nothing)")


if __name__ == "__main__":
    main()
