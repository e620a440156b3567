"""A recording, opened: what `taut report` finds in it, and its rows as Arrow tables.

>>> import taut
>>> run = taut.open("run.mcap")
>>> run.chains[0].end_to_end.p99_ns
>>> import polars as pl
>>> hops = pl.DataFrame(run.hops)          # nothing is copied; so with pyarrow.table(…) and DuckDB
>>> run.plot()
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taut import _taut

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Table:
    """Rows by columns, as docs/reference/export.md describes them. Data frames take it as it is, by Arrow's PyCapsule interface.

    Without a data frame library `table["duration_ns"]` gives a column as a numpy array.
    """

    __slots__ = ("_table",)

    def __init__(self, table: _taut.Table) -> None:
        self._table = table

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def columns(self) -> list[str]:
        """Their names, in order."""
        return self._table.columns

    @property
    def descriptions(self) -> dict[str, str]:
        """The meaning of each column."""
        return self._table.descriptions

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: str) -> "npt.NDArray[Any]":
        """A copy of a column. Texts are objects, None where missing; missing numbers are NaN."""
        import numpy as np

        kind, data, words = self._table.buffer(column)
        values = np.frombuffer(data, kind)
        if words is not None:
            # The last one is at −1, too.
            values = np.array([*words, None], dtype=object)[values]
        return values


@dataclass(frozen=True, slots=True)
class Figures:
    """A distribution, in nanoseconds. Quantiles are None where too few messages lie beyond them."""

    n: int
    min_ns: int | None
    p50_ns: int | None
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int | None
    mean_ns: float | None
    sd_ns: float | None
    percentiles: tuple[tuple[float, int], ...]
    """(quantile from 0 to 1, ns), dense towards 1, as far as the messages carry."""

    @staticmethod
    def of(found: Mapping[str, Any]) -> "Figures":
        percentiles = tuple((float(quantile), int(ns)) for quantile, ns in found["percentiles"])
        names = {field.name for field in fields(Figures)} - {"percentiles"}
        return Figures(**{name: found[name] for name in names}, percentiles=percentiles)


@dataclass(frozen=True, slots=True)
class Hop:
    """From one point of a chain to the next."""

    source: str
    to: str
    delay: Figures
    tail_share: float | None
    """Its share of the excess of tail messages over the median one."""

    def __str__(self) -> str:
        return f"{self.source} → {self.to}"


class Chain:
    """A chain with its figures, start-up apart, as `taut report` has them. Times are in nanoseconds."""

    def __init__(self, run: "Run", found: Mapping[str, Any]) -> None:
        self.run = run
        self.report = found
        """The whole result, as in docs/report.schema.json."""
        self.name: str = found["name"]
        self.points: list[str] = [point["name"] for point in found["points"]]
        self.messages: int = found["messages"]
        self.deadline_ns: int | None = found["deadline_ns"]
        self.missed: int | None = found["missed"]
        """Messages over the deadline; None without one."""
        self.end_to_end = Figures.of(found["end_to_end"])
        self.hops = [Hop(hop["from"], hop["to"], Figures.of(hop), hop["tail_share"]) for hop in found["hops"]]
        outcomes = found["outcomes"]
        self.outcomes: dict[str, int] = {
            "applied": outcomes["applied"],
            "ended_early": outcomes["ended_early"],
            **outcomes["dropped"],
            "in_flight": outcomes["in_flight"],
            "unexplained": outcomes["unexplained"],
        }
        """Number of messages by outcome; they sum to `messages`."""

    def __repr__(self) -> str:
        late = self.end_to_end.p99_ns or self.end_to_end.max_ns
        word = "p99" if self.end_to_end.p99_ns else "max"
        figure = f", {word} {_time(late)}" if late else ""
        return f"<chain {self.name!r}: {self.messages} messages, {len(self.hops)} hops{figure}>"

    def plot(self) -> "Figure":
        """Percentiles, latency over time, and causes in one figure. Needs matplotlib (`pip install 'matplotlib>=3.8'`)."""
        from taut import plots

        return plots.chain(self)

    def plot_percentiles(self, axes: "Axes | None" = None) -> "Axes":
        """The percentile curve, of the chain and of each hop."""
        from taut import plots

        return plots.percentiles(self, axes)

    def plot_latency(self, axes: "Axes | None" = None) -> "Axes":
        """Each message's latency over the recording, by hop."""
        from taut import plots

        return plots.latency(self, axes)

    def plot_causes(self, axes: "Axes | None" = None) -> "Axes":
        """Time by cause, of typical and late messages."""
        from taut import plots

        return plots.causes(self, axes)

    def rows(self, table: Table) -> "npt.NDArray[np.bool_]":
        """Which rows of a table are of this chain's messages, start-up apart: a mask over its columns."""
        kept: npt.NDArray[np.bool_] = (table["chain"] == self.name) & ~table["startup"]
        return kept


class Run:
    """A recording, analysed."""

    def __init__(
        self, path: Path, report: Mapping[str, Any], tables: list[_taut.Table], start_monotonic_ns: int
    ) -> None:
        self.path = path
        self.start_monotonic_ns = start_monotonic_ns
        """The recording's start by CLOCK_MONOTONIC, as the tables have it; `start_realtime_ns` is the same moment."""
        self.report = report
        """The whole result, as in docs/report.schema.json."""
        self.messages, self.hops, self.causes, self.thread_states = (Table(table) for table in tables)
        self.chains = [Chain(self, found) for found in report["chains"]]
        """Most messages first."""

    @property
    def headline(self) -> str:
        """The finding in a few sentences."""
        return str(self.report["headline"])

    @property
    def notes(self) -> list[str]:
        """Limits of the figures: losses, the tier, the clock."""
        return list(self.report["notes"])

    @property
    def start_realtime_ns(self) -> int:
        """The recording's start, in nanoseconds since 1970."""
        return int(self.report["recording"]["start_realtime_ns"])

    @property
    def topics(self) -> list[str]:
        """Channels of plain messages: telemetry, and what was imported. Values have one each, /value/NAME."""
        return [str(channel["topic"]) for channel in self.report["telemetry"]]

    def telemetry(self, topic: str) -> Table:
        """A channel as a table: `time_ns` by CLOCK_MONOTONIC, and each number of its messages by its path, `joint[2].position`.

        Bools are 0 and 1, texts are left out; of an array without a fixed length the first element counts. KeyError, with
        the names that there are, for a channel that is not there.
        """
        return Table(_taut.telemetry(self.path, topic))

    def chain(self, name: str) -> Chain:
        """The chain of that name, or KeyError."""
        for chain in self.chains:
            if chain.name == name:
                return chain
        raise KeyError(f"no chain {name!r}; there are {', '.join(repr(chain.name) for chain in self.chains) or 'none'}")

    def plot(self) -> "Figure":
        """The first chain's percentiles, latency over time, and causes in one figure."""
        if not self.chains:
            raise ValueError(f"{self.path}: no chain to plot: no message passed two points")
        return self.chains[0].plot()

    def __repr__(self) -> str:
        chains = "".join(f"\n  {chain!r}" for chain in self.chains)
        return f"<{self.path}: {self.headline}{chains}>"


def open(path: str | PathLike[str], *, config: str | PathLike[str] | None = None) -> Run:
    """Reads and analyses a recording. Takes about as long as `taut report`; other threads run meanwhile.

    `config` declares chains and deadlines, as with the command: ./taut.toml is used when it exists. OSError when
    the file cannot be read, ValueError when it is no recording; damage is a warning.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a folder; name a recording (.mcap)")
    path.stat()  # So that the error has the file's name.
    report, tables, start_monotonic_ns = _taut.analyse(path, _declared(config))
    run = Run(path, json.loads(report), tables, start_monotonic_ns)
    for damage in run.report["damage"]:
        warnings.warn(f"{path}: {damage}", stacklevel=2)
    return run


def _declared(config: str | PathLike[str] | None) -> list[tuple[str, list[str], int | None]]:
    """The chains of a taut.toml: name, points, deadline in nanoseconds."""
    path = Path("taut.toml" if config is None else config)
    if config is None and not path.exists():
        return []
    import tomllib

    try:
        return [_chain(chain) for chain in tomllib.loads(path.read_text()).get("chain", [])]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _chain(chain: Mapping[str, Any]) -> tuple[str, list[str], int | None]:
    points = chain.get("points", [])
    if len(points) < 2:
        raise ValueError(f"a chain needs at least two points, this has {len(points)}")
    deadline_ms = chain.get("deadline_ms")
    if deadline_ms is not None and not 0 < deadline_ms < 1e9:
        raise ValueError(f"deadline_ms = {deadline_ms} is not a positive time")
    deadline_ns = None if deadline_ms is None else round(deadline_ms * 1e6)
    return chain.get("name", f"{points[0]} → {points[-1]}"), points, deadline_ns


def _time(ns: int) -> str:
    """In the unit that suits it, as in a report."""
    size, unit = next((of for of in ((1.0, "ns"), (1e3, "µs"), (1e6, "ms")) if ns < 999.5 * of[0]), (1e9, "s"))
    return f"{ns / size:.3g} {unit}"
