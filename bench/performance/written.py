"""docs/performance.md."""

from dataclasses import dataclass
from datetime import date

from bench.proof.page import machine, table


@dataclass(frozen=True)
class Row:
    """A figure beside its peer or limit."""

    what: str
    figure: str
    # What stands beside it in the same run.
    peer: str
    limit: str
    holds: bool
    # What it is the median or quantile of.
    n: str


def page(rows: list[Row], loads: list[float], seconds: float, command: str) -> str:
    missed = sum(not row.holds for row in rows)
    cells = [[row.what, row.figure, row.peer, row.limit, row.n, "holds" if row.holds else "**missed**"] for row in rows]
    return f"""# Performance

{len(rows) - missed} of {len(rows)} limits hold in this run. Made by `{command}` on {date.today()} in {seconds / 60:.0f} minutes.

Machine: {machine()}.
Load average {min(loads):.1f} to {max(loads):.1f}: above 1 it is other work, which lengthens times and tails.

{table(["", "taut", "peer of this run", "limit", "of", ""], cells)}

- **Stamps**: `bench/stamp`, batches in turn on one CPU in thread CPU time; Python with its `for` loop.
- **Analysis**: `bench/analysis`, synthetic recordings; CPU time of one thread. The peer reads and decompresses the same file. Memory is the
  largest resident set.
- **Recorder**: `bench/record`, a 1 kHz loop with 12 stamps a cycle, recorded and bare in turn; ratios of pairs with 95 % bootstrap intervals.
  The whole file is charged to its kernel events. The events' cost is that of two threads that pass a byte to each other; *unread* is an ftrace
  buffer that is not read.
- **Guard**: `bench/guard`, under SCHED_FIFO; median of the rounds' p99.99. The peer is a chain of multiplications of the same median length.
- **Telemetry**: `bench/telemetry`, under `taut record`; the peer copies as many bytes to memory that was used as long ago.
- **ROS 2**: `bench/ros2`, a tracepoint of `libtaut_ros2.so` in a session, beside LTTng-UST's with three fields in the run of the stamps.
- **`taut top`**: `bench/top`, on a recording of the loop above at its full rate; an hour was not tried.

The folders' own commands measure more, and for longer: [how we know](proof/README.md#cost-and-robustness).
"""
