"""A chain's plots, with matplotlib (`pip install 'matplotlib>=3.8'`): what `Run.plot()` and `Chain.plot_…()` draw."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

try:
    from matplotlib import pyplot
except ImportError:
    raise ImportError("plots need matplotlib; run: pip install 'matplotlib>=3.8'") from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from taut.recording import Chain, Figures

# The report's colours. A hop keeps its colour in all plots of a chain.
LINES = ["#1f5fae", "#b35400", "#4d7c0f", "#8b3a8f", "#0e7c86", "#b3382c", "#6b5b00", "#5b6168"]
INK = "#1c1e21"
# Causes of one family share a hue, as in the report: own doing, taken by others, locks, the way to the CPU, waits.
CAUSES = {
    "cpu": "#8fa3b8",
    "syscall": "#6d849c",
    "page_fault": "#f0cd8a",
    "wakeup": "#e0ad4a",
    "timer_slack": "#b98629",
    "preempted": "#d9705f",
    "throttled": "#b84a39",
    "irq": "#eda193",
    "stopped": "#8f3527",
    "hypervisor": "#f4c4bb",
    "lock": "#b07cc6",
    "gil": "#8a52a3",
    "partner": "#cfa8de",
    "queued": "#3d8b83",
    "executor": "#357a73",
    "io": "#58a8a0",
    "network": "#78bfb8",
    "sleep": "#9bcfc9",
    "disk": "#2a6660",
    "unknown": "#d3d5d7",
}
# More messages than this are drawn by their worst in each of so many stretches of time.
MOST_STEPS = 1500
# By rank among all messages; the last band is the tail.
BANDS = [(0.0, 0.5), (0.5, 0.9), (0.9, 0.99), (0.99, 1.0)]
# Fewer messages make no band.
BAND_MIN = 5


def chain(chain: "Chain") -> "Figure":
    """All plots of a chain in one figure."""
    figure, axes = pyplot.subplot_mosaic(
        [["latency", "latency"], ["percentiles", "causes"]], figsize=(11, 8), layout="constrained"
    )
    latency(chain, axes["latency"])
    percentiles(chain, axes["percentiles"])
    causes(chain, axes["causes"])
    # The hops have the same colours above and below.
    handles, labels = axes["percentiles"].get_legend_handles_labels()
    for name in ("latency", "percentiles"):
        legend = axes[name].get_legend()
        if legend is not None:
            legend.remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
    figure.suptitle(_text(f"{chain.name} · {chain.run.path.name}"))
    return figure


def percentiles(chain: "Chain", axes: "Axes | None" = None) -> "Axes":
    """Time over quantile, the nines at equal distances; a curve ends where the messages do."""
    axes = axes or _axes()
    for hop, colour in zip(chain.hops, _colours(chain), strict=True):
        axes.plot(*_curve(hop.delay), color=colour, linewidth=1.2, label=_text(str(hop)))
    axes.plot(*_curve(chain.end_to_end), color=INK, linewidth=2.2, label="end to end")
    if chain.deadline_ns is not None:
        axes.axhline(chain.deadline_ns / 1e6, color=LINES[5], linestyle="--", linewidth=1, label="deadline")
    nines = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
    shown = [nine for nine in nines if nine <= _last_quantile(chain.end_to_end)]
    axes.set_xticks([_place(nine) for nine in shown], [f"{100 * nine:g}" for nine in shown])
    axes.set(title="Percentiles", xlabel="percentile of the messages", ylabel="ms", yscale="log")
    return _finish(axes, below=True)


def latency(chain: "Chain", axes: "Axes | None" = None) -> "Axes":
    """Each message's hops upon each other, over the seconds since the recording's start; start-up included."""
    axes = axes or _axes()
    hops = chain.run.hops
    of_chain = hops["chain"] == chain.name
    nth, hop = hops["nth"][of_chain], hops["hop"][of_chain]
    messages = int(nth.max()) + 1 if len(nth) else 0
    spent = np.zeros((messages, len(chain.hops)))
    np.add.at(spent, (nth, hop - 1), hops["duration_ns"][of_chain] / 1e6)
    table = chain.run.messages
    started = (table["start_ns"][table["chain"] == chain.name][:messages] - chain.run.start_monotonic_ns) / 1e9
    seconds, spent = _worst(started, spent)
    labels = [_text(str(hop)) for hop in chain.hops]
    axes.stackplot(seconds, spent.T, colors=_colours(chain), labels=labels, step="post", linewidth=0)
    # One message is thinner than a pixel: without a line the worst would not be seen.
    axes.plot(seconds, spent.sum(axis=1), color=INK, linewidth=0.6, drawstyle="steps-post")
    if chain.deadline_ns is not None:
        axes.axhline(chain.deadline_ns / 1e6, color=LINES[5], linestyle="--", linewidth=1, label="deadline")
    thinned = f", the slowest of every {-(-messages // MOST_STEPS)}" if messages > MOST_STEPS else ""
    axes.set(title=f"Latency by hop{thinned}", xlabel="s since the recording's start", ylabel="ms")
    axes.margins(x=0.01)
    return _finish(axes, below=True)


def causes(chain: "Chain", axes: "Axes | None" = None) -> "Axes":
    """What messages' time was spent on, on the average, from typical ones to the latest."""
    axes = axes or _axes()
    table = chain.run.messages
    rows = chain.rows(table)
    ways = table["way_ns"][rows].astype(float)
    order = np.argsort(ways[~np.isnan(ways)], kind="stable")
    nth = table["nth"][rows][~np.isnan(ways)][order]
    bands, labels = [], []
    for low, high in BANDS:
        band = nth[int(low * len(nth)) : int(high * len(nth))]
        if len(band) >= BAND_MIN:
            bands.append(band)
            labels.append(f"{100 * low:g}–{100 * high:g} %\n{len(band)}")
    pieces = chain.run.causes
    of_chain = chain.rows(pieces)
    message, cause, spent_ns = (pieces[name][of_chain] for name in ("nth", "cause", "duration_ns"))
    below = np.zeros(len(bands))
    for word, colour in CAUSES.items():
        of_cause = cause == word
        by_message = np.bincount(
            message[of_cause], weights=spent_ns[of_cause], minlength=int(nth.max()) + 1 if len(nth) else 0
        )
        means = np.array([by_message[band].mean() / 1e6 for band in bands])
        if means.any():
            axes.bar(labels, means, bottom=below, color=colour, label=word, width=0.7)
            below += means
    axes.set(
        title="What the time was spent on",
        xlabel="messages, from the fastest to the latest, and how many",
        ylabel="ms, mean",
    )
    return _finish(axes, below=False)


def _axes() -> "Axes":
    _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    return axes


def _text(name: str) -> str:
    """A name as it stands: matplotlib takes $…$ for mathematics, and leaves a label that begins with _ out of a legend."""
    text = name.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _colours(chain: "Chain") -> list[str]:
    return [LINES[at % len(LINES)] for at in range(len(chain.hops))]


def _place(quantile: float) -> float:
    """As HdrHistogram's plots: each nine as wide as the last."""
    return float(-np.log10(1 - quantile))


def _curve(figures: "Figures") -> tuple[list[float], list[float]]:
    shown = [(quantile, ns) for quantile, ns in figures.percentiles if quantile < 1]
    return [_place(quantile) for quantile, _ in shown], [max(ns, 1) / 1e6 for _, ns in shown]


def _last_quantile(figures: "Figures") -> float:
    return max((quantile for quantile, _ in figures.percentiles if quantile < 1), default=0.0)


def _worst(
    seconds: npt.NDArray[np.float64], spent: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Of many messages the slowest of each stretch: what a plot of this width could show of them."""
    if len(seconds) <= MOST_STEPS:
        return seconds, spent
    size = -(-len(seconds) // MOST_STEPS)
    totals = spent.sum(axis=1)
    kept = np.array([at + int(totals[at : at + size].argmax()) for at in range(0, len(seconds), size)])
    return seconds[kept], spent[kept]


def _finish(axes: "Axes", below: bool) -> "Axes":
    """A quiet grid, and a legend outside: below, where names are long, else beside, in the order of the stack."""
    axes.grid(axis="y", color="#e9e9e4")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    if handles and below:
        axes.legend(
            handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, fontsize="small", frameon=False
        )
    elif handles:
        axes.legend(
            handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False
        )
    return axes
