"""The peer `cyclictest` of rt-tests: its command line, its histogram, and what that says."""

import re
from dataclasses import dataclass

# As many as it allows; later wakes are counted as overflow.
ROWS = 1_000_000


@dataclass(frozen=True)
class Histogram:
    # Wakes by rows, each of `unit_ns`, cut off.
    counts: dict[int, int]
    overflow: int
    max_ns: int
    unit_ns: int

    @property
    def n(self) -> int:
        return sum(self.counts.values()) + self.overflow

    def quantile_ns(self, q: float) -> int | None:
        """A quantile (0..1); `None` where it lies in the overflow."""
        rank, below = q * self.n, 0
        for row, count in sorted(self.counts.items()):
            below += count
            if below >= rank:
                return row * self.unit_ns
        return None


def command(
    policy: str, priority: int, cpu: int, seconds: float, *, unit_ns: int | None, holds_latency: bool
) -> list[str]:
    """CLOCK_MONOTONIC, absolute deadlines 1 ms apart; with rows of 1 or 1000 ns, or without a histogram.

    Whole microseconds are 7 % of a real-time wake, and rows of 1 ns end at 1 ms: the unit goes with what is measured.
    """
    words = ["cyclictest", "--quiet", "--mlockall", "--threads=1", f"--affinity={cpu}", "--interval=1000"]
    words += [f"--duration={seconds:g}", f"--policy={policy}"]
    words += [f"--priority={priority}"] if policy == "fifo" else []
    words += [f"--histogram={ROWS}"] if unit_ns else []
    words += ["--nsecs"] if unit_ns == 1 else []
    words += [] if holds_latency else ["--default-system"]
    return words


def read(stdout: str, unit_ns: int) -> Histogram:
    """What `cyclictest -h` printed, one thread."""
    rows = (line.split() for line in stdout.splitlines() if line[:1].isdigit() and not line.endswith(" 000000"))
    counts = {int(row): int(count) for row, count in rows}
    return Histogram(
        counts, last_of(stdout, "Histogram Overflows"), last_of(stdout, "Max Latencies") * unit_ns, unit_ns
    )


def last_of(stdout: str, title: str) -> int:
    found = re.search(rf"^# {title}:\s*(\d+)\s*$", stdout, re.MULTILINE)
    if not found:
        raise SystemExit(f"cyclictest printed no `# {title}:`; is it rt-tests 2.x?")
    return int(found[1])
