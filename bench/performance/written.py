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
Each figure stands beside its peer of the same run, or beside its limit.

Machine: {machine()}.
The programs are those that `make dist` lays out: `make setup` builds them without link-time optimisation.
Load average {min(loads):.1f} to {max(loads):.1f}: what it is above 1 is other work on the machine, which lengthens times and tails.

{table(["", "taut", "peer of this run", "limit", "of", ""], cells)}

- **Stamps**: `bench/stamp`, batches in turn on one CPU in thread CPU time; Python with its `for` loop.
- **Analysis**: `bench/analysis`, synthetic recordings. Times are CPU time, user and system, of a program with one thread: on an idle
  machine it takes as long. The peer reads and decompresses the same file. Memory is the largest resident set. Why it is more than the
  limit: no part is large. Most instructions (`valgrind --tool=callgrind`) are spent on the ways of messages and on replaying switches; a
  second thread that reads and decodes could save a tenth. Huge pages made it slower. 100 million events keep as much an event as 10
  million: their timelines and each message's causes.
- **Recorder**: `bench/record`. A 1 kHz loop with 12 stamps a cycle, recorded and bare in turn; ratios of pairs with 95 % bootstrap
  intervals; the recorder's start and end are in its share. Bytes: a whole file without stamps by its kernel events. The events' cost is that of two threads that pass a byte to each other;
  *unread* is an ftrace buffer with the same events that is not read.
- **Guard**: `bench/guard`, under SCHED_FIFO; the median of the rounds' p99.99. The peer is a chain of multiplications of the same
  median length.
- **Telemetry**: `bench/telemetry`, 2000 doubles at 400 Hz under `taut record`; the peer copies as many bytes to memory that was used
  as long ago.
- **ROS 2**: `bench/ros2`, a tracepoint of `libtaut_ros2.so` in a session, beside LTTng-UST's tracepoint with three fields in the run of
  the stamps: the wheels of ROS 2 have an older `liblttng-ust.so.0`.
- **`taut top`**: `bench/top`, on a recording of the loop above at its full rate. An hour is longer than this run. Why it is more than the
  limit: the analysis of the last seconds may take 1 % of a CPU, and following the file and drawing come on top.
- **Binary**: why it is larger than the limit: most of the code is taut's own, and no part is of no use. Tables for unwinding stay: a panic
  must put back what `taut tune` and `taut lab` changed, and a hostile file must not end the program.

The folders' own commands measure more, and for longer: [how we know](proof/README.md#cost-and-robustness).
"""
