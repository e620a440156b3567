"""What joining costs: CPU time of a report of two hosts' kernel events, against one of one host's."""

import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from net import ROOT

RUNS = 3
# Times that of one recording, with so many kernel events of each host.
LIMIT = 2.5
LIMIT_EVENTS = 5_000_000


@dataclass(frozen=True)
class Cost:
    events: int
    one_s: float
    joined_s: float

    @property
    def ratio(self) -> float:
        return self.joined_s / self.one_s


def measured(taut: str, folder: Path, events: int) -> Cost:
    """Medians of user CPU time; the recordings are those of bench/analysis."""
    build = ["cargo", "build", "--quiet", "--workspace", "--exclude", "taut-python", "--locked"]
    subprocess.run([*build, "--example", "analysis_bench"], cwd=ROOT, check=True)
    generate = str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/examples/analysis_bench")
    files = [str(folder / f"{host}.mcap") for host in range(2)]
    for host, file in enumerate(files):
        words = [generate, "generate-kernel", file, str(events), str(host)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def user_s(*words: str) -> float:
        process = subprocess.Popen([taut, "report", *words], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, words
        return used.ru_utime

    one, joined = zip(*((user_s(files[0]), user_s(*files, "--join")) for _ in range(RUNS)), strict=True)
    return Cost(events, statistics.median(one), statistics.median(joined))
