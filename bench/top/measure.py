"""What looking on costs: processor time of a recorder alone, of one that serves and is scraped, and of `taut top`.

python3 bench/top/measure.py [--quick] [--rounds 6] [--seconds 50] [--page docs/proof/live.md]
Build first: cargo build --release -p taut && cargo build --release -p taut-capture --example overhead_loop
"""

import argparse
import fcntl
import json
import os
import platform
import pty
import random
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request

ARMS = ["record", "serve", "top"]
SCRAPE_S = 5
# Of a core, for `taut top`; docs/performance.md has the same limit.
MOST_PERCENT = 1
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"


class Scraper(threading.Thread):
    """Scrapes as Prometheus does, until the recorder is gone."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url = url
        self.answers = []
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(SCRAPE_S):
            request = urllib.request.Request(self.url, headers={"Accept": PROTOBUF})
            began = time.perf_counter()
            with urllib.request.urlopen(request, timeout=10) as answer:
                size = len(answer.read())
            self.answers.append((size, time.perf_counter() - began))


class Terminal(threading.Thread):
    """`taut top` on a terminal of 80 × 24 whose other end reads everything, until `end`."""

    def __init__(self, taut, recording):
        super().__init__(daemon=True)
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(taut, [taut, "top", recording])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.began = time.monotonic()

    def run(self):
        while True:
            try:
                if select.select([self.terminal], [], [], 0.5)[0]:
                    os.read(self.terminal, 65536)
            except OSError:
                return

    def end(self):
        """Processor seconds a second, and the most memory in KiB."""
        os.write(self.terminal, b"q")
        _, status, used = os.wait4(self.pid, 0)
        seconds = time.monotonic() - self.began
        assert status == 0, f"taut top ended with {status}"
        return (used.ru_utime + used.ru_stime) / seconds, used.ru_maxrss


def trial(arm, options, folder):
    """One recording; returns what it cost."""
    output = os.path.join(folder, "run.mcap")
    serve = ["--serve", "127.0.0.1:0"] if arm == "serve" else []
    loop = [options.loop, str(options.seconds * 1000), "0"]
    command = [options.taut, "record", "--tier", "full", "-o", output, *serve, "--", *loop]
    result = {"arm": arm}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        if arm == "serve":
            url = next(found[1] for line in process.stderr if (found := re.search(r"metrics at (http\S+)", line)))
            scraper = Scraper(url)
            scraper.start()
        if arm == "top":
            while not (os.path.exists(output) and os.path.getsize(output) > 4096):
                time.sleep(0.05)
            terminal = Terminal(options.taut, output)
            terminal.start()
            time.sleep(options.seconds - 2)
            result["top"], result["top_kib"] = terminal.end()
        process.stderr.read()
        if process.wait() != 0:
            sys.exit(f"the recorder ended with {process.returncode}")
        if arm == "serve":
            scraper.over.set()
            result["scrapes"] = scraper.answers
    report = subprocess.run([options.taut, "report", output, "--format", "json"], capture_output=True, check=True)
    facts = json.loads(report.stdout)["recording"]
    seconds = facts["duration_s"]
    result["recorder"] = facts["recorder_cpu_ns"] / 1e9 / seconds
    result["stamps_per_s"] = facts["stamps"] / seconds
    result["events_per_s"] = facts["kernel_events"] / seconds
    result["lost"] = facts["lost_stamps"] + facts["lost_kernel_events"]
    os.unlink(output)
    return result


def spread(values, digits=2):
    """Median, and the range of all trials."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} … {max(values):.{digits}f})"


def page(results, options, command):
    of = {arm: [result for result in results if result["arm"] == arm] for arm in ARMS}
    share = {arm: [100 * result["recorder"] for result in of[arm]] for arm in ARMS}
    # Rounds are pairs: what serving adds is computed round by round.
    added = [serve - alone for serve, alone in zip(share["serve"], share["record"], strict=True)]
    top = [100 * result["top"] for result in of["top"]]
    scrapes = [scrape for result in of["serve"] for scrape in result["scrapes"]]
    sizes, times = zip(*scrapes, strict=True) if scrapes else ([0], [0])
    stamps = spread([result["stamps_per_s"] for result in results], 0)
    events = spread([result["events_per_s"] for result in results], 0)
    return f"""# What live views cost

`{command}` on {time.strftime("%Y-%m-%d")}, {os.cpu_count()} CPUs, Linux {platform.release()}: {len(of["record"])} rounds of three recordings
of {options.seconds} s each, in random order: alone, served and scraped (protobuf, each {SCRAPE_S} s), and with `taut top`.
{stamps} stamps and {events} kernel events a second, full tier;
lost: {sum(result["lost"] for result in results)}. Medians, and the range of all trials.

| | % of a core |
|---|---|
| `taut record` | {spread(share["record"])} |
| `taut record --serve` | {spread(share["serve"])} |
| … what serving adds, round by round | {spread(added)} |
| `taut top` | {spread(top)}, limit: ≤ {MOST_PERCENT}{"" if statistics.median(top) <= MOST_PERCENT else ": **missed**"} |

A scrape takes {spread([1e3 * t for t in times])} ms and {spread([size / 1e3 for size in sizes], 1)} kB.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one round of 9 s, and no page")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=50)
    parser.add_argument("--page", default="docs/proof/live.md")
    parser.add_argument(
        "--json", action="store_true", help="the trials with `taut top` alone, for other programs; no page"
    )
    parser.add_argument("--taut", default="target/shipped/taut")
    parser.add_argument("--loop", default="target/shipped/examples/overhead_loop")
    options = parser.parse_args()
    command = " ".join(["bench/top/run", *sys.argv[1:]])
    if options.quick:
        options.rounds, options.seconds = 1, 9
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for arm in ["top"] if options.json else random.sample(ARMS, len(ARMS)):
                results.append(trial(arm, options, folder))
                words = (
                    f"round {number + 1} of {options.rounds}, {arm}: recorder {results[-1]['recorder']:.2%} of a core"
                )
                top = f", top {results[-1]['top']:.2%}" if arm == "top" else ""
                print(words + top, file=sys.stderr, flush=True)
    if options.json:
        json.dump(results, sys.stdout)
        return
    text = page(results, options, command)
    print(text)
    if not options.quick:
        with open(options.page, "w") as file:
            file.write(text)
        print(f"wrote {options.page}", file=sys.stderr)


if __name__ == "__main__":
    main()
