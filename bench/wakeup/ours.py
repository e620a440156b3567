"""`taut wakeup` as one of the measured programs: its command line, its interval log, its recording."""

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hdrh.log import HistogramLogReader  # type: ignore[import-untyped]
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

DUE, WOKE = "probe.due", "probe.woke"
HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True)
class Lateness:
    """One tag of an interval log."""

    histogram: HdrHistogram

    @property
    def n(self) -> int:
        return int(self.histogram.get_total_count())

    @property
    def max_ns(self) -> int:
        return int(self.histogram.get_max_value())

    def quantile_ns(self, q: float) -> int:
        """To 0.1 %: the top of a bucket. The rank is rounded up, as Java's and everybody's is; this package rounds it to the nearest."""
        return int(self.histogram.get_value_at_percentile(100 * math.ceil(q * self.n) / self.n))


def command(taut: str, cpu: int, seconds: float, *words: str) -> list[str]:
    """One CPU's wakes, figures as JSON."""
    fixed = ["wakeup", "--quiet", "--format", "json", "--cpus", str(cpu), "--duration", f"{round(1000 * seconds)}ms"]
    return [taut, *fixed, *words]


def read_log(path: Path) -> dict[str, Lateness]:
    """Each tag's intervals together, as PyPI's `hdrhistogram` reads them."""
    tags: dict[str, HdrHistogram] = {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, HOUR_NS, 3))
    while interval := reader.get_next_interval_histogram():
        tags.setdefault(interval.get_tag() or "", HdrHistogram(1, HOUR_NS, 3)).add(interval)
    reader.close()
    return {tag: Lateness(histogram) for tag, histogram in tags.items()}


def only_series(stdout: str) -> dict[str, Any]:
    """The one CPU's series in the JSON of one variant."""
    (variant,) = json.loads(stdout)["variants"]
    (series,) = variant["cpus"]
    found: dict[str, Any] = series
    return found


def read_wakes(recording: Path) -> dict[int, tuple[int, int]]:
    """Due and woke by message id, ns of CLOCK_MONOTONIC, in order of time. As docs/reference/recording.md reads stamps."""
    names: dict[int, str] = {}
    pairs: list[tuple[int, int]] = []
    stamps: list[tuple[int, int, int]] = []
    with recording.open("rb") as file:
        for _, channel, _, message in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            if channel.topic == "/taut/raw/names":
                names[message.id] = message.name
            elif channel.topic == "/taut/raw/clock":
                pairs.append((message.ticks, message.monotonic_ns))
            elif channel.topic == "/taut/raw/stamps":
                stamps += stamps_of(message)
    (first_ticks, first_ns), (last_ticks, last_ns) = pairs[0], pairs[-1]
    ns_per_tick = (last_ns - first_ns) / (last_ticks - first_ticks)
    moments: dict[str, dict[int, int]] = {DUE: {}, WOKE: {}}
    for ticks, id_, point in sorted(stamps):
        if (name := names.get(point, "")) in moments:
            moments[name][id_] = first_ns + round((ticks - first_ticks) * ns_per_tick)
    return {id_: (due, moments[WOKE][id_]) for id_, due in moments[DUE].items() if id_ in moments[WOKE]}


def stamps_of(message: Any) -> Iterator[tuple[int, int, int]]:
    """Ticks, message id, point of each stamp of a batch."""
    ticks = itertools.accumulate(message.delta_ticks, initial=message.first_ticks)
    deltas = message.delta_message_id or message.wide_delta_message_id
    ids = itertools.accumulate(deltas, initial=message.first_message_id)
    # The first delta is of the first stamp.
    next(ticks)
    next(ids)
    return zip(ticks, ids, message.point, strict=True)
