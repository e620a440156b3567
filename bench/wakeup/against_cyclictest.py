"""The probe and cyclictest in turn, at the same settings: quantiles of lateness, and own CPU time."""

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cyclictest
import ours
from children import CPU, load, run
from page import Section, microseconds

from bench.proof import rounds
from bench.proof.page import Check, table

PRIORITY = 80
EQUAL = 0.10
# The witness on the other CPU sleeps 10 ms at a time.
STALL_NS = 50_000_000
SHOWN = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
CLAIMED = ("p50", "p90")


@dataclass(frozen=True)
class Setting:
    policy: str
    load: str
    holds_latency: bool

    @property
    def unit_ns(self) -> int:
        """cyclictest's rows of 1 ns end at 1 ms, which an ordinary thread may pass more than once in a hundred wakes."""
        return 1000 if self.policy == "other" else 1

    def __str__(self) -> str:
        policy = f"FIFO {PRIORITY}" if self.policy == "fifo" else "OTHER"
        return f"{policy}, {self.load}, {'hold 0' if self.holds_latency else 'no hold'}"


# Beside a load no CPU is idle, so that a hold changes nothing.
SETTINGS = [
    *(Setting(policy, "idle", holds) for policy in ("other", "fifo") for holds in (True, False)),
    *(Setting(policy, "stress", True) for policy in ("other", "fifo")),
]


@dataclass
class Runs:
    """One tool at one setting, round by round."""

    # ns by name; the histogram's end where cyclictest's ends below.
    quantiles: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in SHOWN})
    max_ns: list[int] = field(default_factory=list)
    n: int = 0
    # Missed by its own account: wakes beyond cyclictest's histogram, or lost before our collector.
    beyond: int = 0
    stalled: list[int] = field(default_factory=list)


TOOLS = ("cyclictest", "taut", "cyclictest again")


def measure(taut: str, count: int, seconds: float, settings: Sequence[Setting] = SETTINGS) -> Section:
    found = {setting: {tool: Runs() for tool in TOOLS} for setting in settings}
    for round_ in range(count):
        for setting in settings:
            with load(setting.load):
                for turn in range(len(TOOLS)):
                    tool = TOOLS[(turn + round_) % len(TOOLS)]
                    probe_once(taut, tool, setting, seconds, round_, found[setting][tool])
        print(f"cyclictest: round {round_ + 1} of {count}", flush=True)
    return section(found, count, seconds)


def probe_once(taut: str, tool: str, setting: Setting, seconds: float, round_: int, into: Runs) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "wakes.hlog"
        if tool == "taut":
            ended = run([*our_command(taut, setting, seconds), "--hlog", str(log)])
            (lateness,) = ours.read_log(log).values()
            into.beyond += int(ours.only_series(ended.stdout)["lost"])
            # As cyclictest cuts off.
            quantiles: dict[str, float] = {
                name: lateness.quantile_ns(q) // setting.unit_ns * setting.unit_ns for name, q in SHOWN.items()
            }
            into.n, max_ns = into.n + lateness.n, lateness.max_ns
        else:
            ended = run(their_command(setting, seconds, setting.unit_ns))
            histogram = cyclictest.read(ended.stdout, setting.unit_ns)
            into.beyond += histogram.overflow
            end_ns = cyclictest.ROWS * setting.unit_ns
            quantiles = {name: histogram.quantile_ns(q) or end_ns for name, q in SHOWN.items()}
            into.n, max_ns = into.n + histogram.n, histogram.max_ns
    for name, ns in quantiles.items():
        into.quantiles[name].append(ns)
    into.max_ns.append(max_ns)
    if ended.other_cpu_away_ns > STALL_NS:
        into.stalled.append(round_ + 1)


def our_command(taut: str, setting: Setting, seconds: float) -> list[str]:
    words = ["--policy", setting.policy, "--priority", str(PRIORITY)]
    return ours.command(taut, CPU, seconds, *words, *(["--dma-latency", "0"] if setting.holds_latency else []))


def their_command(setting: Setting, seconds: float, unit_ns: int | None) -> list[str]:
    return cyclictest.command(
        setting.policy, PRIORITY, CPU, seconds, unit_ns=unit_ns, holds_latency=setting.holds_latency
    )


def section(found: dict[Setting, dict[str, Runs]], count: int, seconds: float) -> Section:
    text = (
        f"{count} rounds of {seconds:g} s each: cyclictest, `taut wakeup`, cyclictest again, in an order that rotates. All have the same policy, "
        f"CPU {CPU}, 1 ms on CLOCK_MONOTONIC and locked memory; /dev/cpu_dma_latency is held at 0 by both or by neither. "
        "Stress: `stress-ng --cpu 2`. Compared is taut's *wakeups* series, which counts as cyclictest does. cyclictest runs in ns (`--nsecs`) for "
        "FIFO. For OTHER it runs in µs, and taut's figures are truncated to µs. "
        "A ratio is taut's figure over the geometric mean of cyclictest's two runs of the same round. "
        "*Itself* is the factor between those two runs, typical (median) and worst."
    )
    result = Section("Against cyclictest", text)
    ratios, figures, checks, apart, wide = [], [], [], [], []
    medians: dict[str, list[float]] = {name: [] for name in SHOWN}
    for setting, tools in found.items():
        a, b, us = tools[TOOLS[0]], tools[TOOLS[2]], tools[TOOLS[1]]
        cells = [str(setting)]
        for name in SHOWN:
            ratio = rounds.estimate(
                rounds.ratios(us.quantiles[name], rounds.middle(a.quantiles[name], b.quantiles[name]))
            )
            band = rounds.against_itself(a.quantiles[name], b.quantiles[name])
            cells.append(f"{ratio}; itself ×{band.typical:.2f}, ×{band.worst:.2f}")
            if name == "p99.9" and not ratio.low <= 1 <= ratio.high:
                apart.append(f"{setting}, {ratio}")
            if name in CLAIMED:
                control = rounds.estimate(rounds.ratios(a.quantiles[name], b.quantiles[name]))
                checks.append(
                    Check(
                        f"{name} ÷ cyclictest's, {setting}",
                        f"{ratio}{'' if ratio.is_within(EQUAL) else ', a wider interval than the limit: equality is not shown'}; cyclictest ÷ itself {control}",
                        f"estimate within {100 * EQUAL:.0f} %",
                        abs(ratio.median - 1) <= EQUAL,
                    )
                )
                wide += [] if ratio.is_within(EQUAL) else [f"{name} of {setting}"]
            elif name == "p99":
                checks.append(
                    Check(
                        f"p99 ÷ cyclictest's, {setting}",
                        str(ratio),
                        f"median within ×÷ {band.typical:.2f}, as cyclictest from itself",
                        band.holds(ratio.median),
                    )
                )
            medians[name].append(ratio.median)
        ratios.append(cells)
        figures += [[str(setting), tool, *figures_of(runs)] for tool, runs in tools.items()]
    checks.append(Check("rounds against cyclictest", str(count), "≥ 15", count >= 15))
    not_one = f"Of p99.9 the interval does not include 1 in {len(apart)} of {len(found)} settings{': ' if apart else ''}{'; '.join(apart)}."
    result.body = [
        "Ratios, taut ÷ cyclictest; p99.9 is shown without a claim:",
        table(["", *SHOWN], ratios),
        not_one,
        "Figures in µs, median over the rounds; max is the largest of all. *Beyond*: wakes past the end of cyclictest's histogram (they "
        "count in its quantiles), or lost before taut's collector. *Stalled*: rounds in which the other CPU was also away for "
        f"more than {STALL_NS // 1_000_000} ms, so that the machine stalled; they count as all others.",
        table(["", "", *SHOWN, "max", "wakes", "beyond", "stalled"], figures),
    ]
    result.checks = checks
    missed = [check.what for check in checks if not check.holds]
    result.brief = [
        f"taut's figure ÷ cyclictest's at the same settings, {count} rounds of {seconds:g} s (limit: 15 rounds{'' if count >= 15 else ', **missed**'}). Limits: p50 and p90 within "
        f"{100 * EQUAL:.0f} %; p99 within the factor by which cyclictest typically differs from itself. "
        "*hold 0*: both hold /dev/cpu_dma_latency at 0.",
        table(
            ["", *CLAIMED, "p99"],
            [
                [
                    f"median of the ratios, {len(found)} settings",
                    *(f"{min(medians[name]):.3f} to {max(medians[name]):.3f}" for name in (*CLAIMED, "p99")),
                ]
            ],
        ),
        *([f"**Missed**: {'; '.join(missed)}."] if missed else []),
        (f"**Not shown**: equality for {'; '.join(wide)}, where the interval is wider than the limit. " if wide else "")
        + f"Nothing is claimed of p99.9: its interval does not include 1 in {len(apart)} of {len(found)} settings.",
    ]
    return result


def figures_of(runs: Runs) -> list[str]:
    quantiles = [microseconds(statistics.median(runs.quantiles[name])) for name in SHOWN]
    stalled = ", ".join(map(str, runs.stalled)) or "none"
    return [*quantiles, microseconds(max(runs.max_ns)), str(runs.n), str(runs.beyond), stalled]


def measure_cpu(taut: str, count: int, seconds: float) -> Section:
    """Own CPU time: each tool as one would call it, cyclictest without a histogram, which costs it time to print."""
    setting = Setting("fifo", "idle", True)
    commands = {"cyclictest": their_command(setting, seconds, None), "taut": our_command(taut, setting, seconds)}
    # In ms.
    took: dict[str, list[float]] = {tool: [] for tool in commands}
    for round_ in range(count):
        for tool in list(commands)[:: 1 if round_ % 2 else -1]:
            took[tool].append(1000 * run(commands[tool]).cpu_s)
        print(f"CPU time: round {round_ + 1} of {count}", flush=True)
    ratio = rounds.estimate(rounds.ratios(took["taut"], took["cyclictest"]))
    usual = {tool: statistics.median(ms) for tool, ms in took.items()}
    result = Section(
        "Own CPU time",
        f"{count} rounds of {seconds:g} s, {setting}: user and system time of the whole process, its start and end included "
        "(`wait4`). cyclictest prints its summary only; `taut wakeup` keeps histograms and writes JSON.",
    )
    rows = [[f"`{tool}`", f"{ms:.0f} ms", f"{ms / seconds / 10:.1f} %"] for tool, ms in usual.items()]
    result.body = [table(["", "CPU time of a run", "of a core"], rows)]
    result.checks = [Check("own CPU time ÷ cyclictest's", str(ratio), "median ≤ 1", ratio.median <= 1)]
    return result
