"""What the trials say: `docs/proof/teleop.md` has the targets, `bench/teleop/results.md` all figures and causes."""

from __future__ import annotations

import datetime
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import conditions
from trial import Trial

from bench.proof import rounds
from bench.proof.page import Check, held, machine, table
from workloads.teleop.safety import Limits

RATIO_MAX = 1 / 5
DELIVERED_MIN = 0.999
CAUSES_SHOWN = 5
ROUNDS_MIN = 5
"""Fewer carry no interval of 90 %."""
SLACK = 1e-6
"""Of a limit: XML-RPC carries decimal digits."""

Figure = Callable[[Trial], float]


@dataclass
class Found:
    """What the rounds until now brought."""

    rounds: int
    """That were asked for."""
    command: str
    done: int = 0
    trials: list[Trial] = field(default_factory=list)
    """Both sides of each round under each condition, in their order."""
    left: list[tuple[str, str]] = field(default_factory=list)
    """Rounds that were left out under a condition: the arrangement without a result, and why."""


def checks(found: Found) -> list[Check]:
    """The targets, each under each condition."""
    limits, trials, checked = Limits(), found.trials, []
    for condition in under(trials):
        right = of(trials, "right", condition)
        where = f"under {condition.name}"
        silent, false = sum(t.silent for t in right), sum(t.false_trips for t in right)
        stops = [stop for t in right for stop in t.result["stops"]]
        least = min(t.delivered for t in right)
        step, turn = max(t.motion.step_m_s for t in right), max(t.motion.step_deg_s for t in right)
        unexplained = sum(t.setpoints["unexplained"] for t in right)
        p99 = compared(trials, condition, lambda t: t.quantile_ms(0.99))
        longest = compared(trials, condition, lambda t: t.quantile_ms(1.0))
        holds = sum(t.result["holds"] for t in right)
        is_within = step <= limits.tool_speed_m_s * (1 + SLACK) and turn <= limits.joint_speed_deg_s * (1 + SLACK)
        rows = [
            (f"setpoints unexplained, {where}", str(unexplained), "0", unexplained == 0),
            (f"silent drops, {where}", str(silent), "0", silent == 0),
            (f"delivered or modified, least run, {where}", percent(least), "≥ 99.9 %", least >= DELIVERED_MIN),
            (
                f"false trips, latched stops and others, {where}",
                f"{false}, {len(stops)} and {holds}",
                "0",
                false == 0 and not stops and not holds,
            ),
            (
                f"longest commanded step, {where}",
                f"{step:.3f} m/s, {turn:.1f} °/s",
                f"{limits.tool_speed_m_s:g} m/s, {limits.joint_speed_deg_s:g} °/s",
                is_within,
            ),
            (
                f"p99, fixed by original, {where}",
                times(p99),
                "×0.2",
                p99 is not None and p99.high <= RATIO_MAX,
            ),
            (
                f"max, fixed by original, {where}",
                times(longest),
                "×1",
                longest is not None and longest.high < 1,
            ),
        ]
        checked += [Check(*row, condition=condition.name) for row in rows]
    lost = sum(arrangement == "right" for arrangement, _ in found.left)
    return [*checked, Check("runs of the fixed loop without a result", str(lost), "0", lost == 0)]


def page(found: Found, minutes: float) -> str:
    trials, checked = found.trials, checks(found)
    first = trials[0]
    shown = [figure for figure in FIGURES if figure[0] in SHOWN]
    parts = [
        "# The teleoperation loop, before and after its fixes",
        "Does the fixed loop lose no setpoint, never stop for jitter, and cut the latency of the original one to a fifth at p99? "
        + held(checked),
        made_by(found, minutes) + " All figures: [results](../../bench/teleop/results.md).",
        "\n".join(
            f"- **Under {condition.name}**: {condition.says}. {worse(trials, condition)}" for condition in under(trials)
        ),
        by_condition(checked, under(trials)),
        "Medians over runs, *original* → *fixed*:",
        table(
            ["", *(f"under {condition.name}" for condition in under(trials))],
            [
                [name, *(change(trials, condition, figure, show) for condition in under(trials))]
                for name, figure, show in shown
            ],
        ),
        *unlike(trials),
        "- **Original**: one process, one interpreter, the SDK's receiver, setpoints rejected by the time between their arrivals, the naive "
        "guard.\n"
        "- **Fixed**: `--arrangement split --receiver framed --validator clamp --guard taut`.\n"
        f"- **Order**: original, fixed, fixed, original; {len(of(trials, 'right', under(trials)[0]))} runs of "
        f"{first.result['duration_s']:g} s each and condition. Ratios are within a round, {intervals(trials)}.\n"
        f"- **Left out**: {'; '.join(why for _, why in found.left) or 'no round'}.\n"
        f"- **End to end**: from the leader's read to the servo's answer, over the setpoints that arrived; {first.tier} tier, {sum(t.lost_stamps for t in trials)} stamps lost. The arms run "
        f"under SCHED_FIFO on a simulated clock; {sum(t.invalid for t in trials)} runs in which the machine did not run them for more than a tenth were repeated.\n"
        "- **Silent** drops are reported to no part of the robot.",
    ]
    return "\n\n".join(parts) + "\n"


def results(found: Found, minutes: float) -> str:
    """All figures."""
    trials, checked = found.trials, checks(found)
    parts = [
        "# Figures of the teleoperation loop, before and after its fixes",
        made_by(found, minutes) + " The page: [teleoperation](../../docs/proof/teleop.md).",
        *symptoms(trials),
    ]
    for condition in under(trials):
        parts += section(trials, condition, [check for check in checked if check.condition == condition.name])
    return "\n\n".join([*parts, TERMS]) + "\n"


def made_by(found: Found, minutes: float) -> str:
    of_rounds = "" if found.done == found.rounds else f", {found.done} of {found.rounds} rounds,"
    return f"Made by `{found.command}`{of_rounds} on {datetime.date.today()} in {minutes:.0f} minutes: {machine()}. Do not edit."


def by_condition(checked: Sequence[Check], conditions_: Sequence[conditions.Condition]) -> str:
    """The checks of all conditions, a row each, and what is checked over all of them."""
    rows: dict[str, list[str]] = {}
    for check in checked:
        row = rows.setdefault(check.what.removesuffix(f", under {check.condition}"), [check.limit])
        row.append(check.figure if check.holds else f"{check.figure}, **missed**")
    head = ["", "limit", *(f"under {condition.name}" for condition in conditions_)]
    return table(head, [[what, *row, *[""] * (len(head) - 1 - len(row))] for what, row in rows.items()])


def change(
    trials: Sequence[Trial], condition: conditions.Condition, figure: Figure, show: Callable[[float], str]
) -> str:
    return " → ".join(show(statistics.median(map(figure, of(trials, side, condition)))) for side in ("source", "right"))


def symptoms(trials: Sequence[Trial]) -> list[str]:
    """What the makers of the original published of it, and what of that is seen here, under their own conditions."""
    source, right = (of(trials, side, conditions.SOURCE) for side in ("source", "right"))
    if not source:
        return []
    rows = [
        [name, published, *(show(statistics.median(map(figure, side))) for side in (source, right))]
        for name, published, figure, show in PUBLISHED
    ]
    rows.append(
        ["false trips of the guard, all runs", "yes", *(str(sum(t.false_trips for t in s)) for s in (source, right))]
    )
    return [
        "## The source's symptoms",
        "What the makers of the original published, on another machine; and both arrangements under its own conditions here. Medians over runs.",
        table(["", "published", "original", "fixed"], rows),
    ]


def unlike(trials: Sequence[Trial]) -> list[str]:
    """What the makers of the original published and is not seen here, or not as they saw it: drops, and stops by the guard."""
    source = of(trials, "source", conditions.SOURCE)
    if not source:
        return []
    said = []
    dropped = statistics.median(1 - t.delivered for t in source)
    if dropped < DROPPED / 2:
        said.append(
            f"**Not reproduced**: the drops of the original's makers, {percent(dropped)} here against 71 %. Speed by times of arrival needs "
            "jitter, and what jitter their machine had is not published ([more](teleop-report.md))."
        )
    trips, runs = sum(len(t.trips) for t in source), sum(bool(t.trips) for t in source)
    if trips:
        said.append(
            f"**Stops by the guard** are counted here, without effect, since the first would end a run: {trips} trips, "
            f"{sum(t.false_trips for t in source)} of them false, in {runs} of {len(source)} runs of the original under source."
        )
    else:
        said.append(f"**Not reproduced**: stops by the guard, which did not trip in {len(source)} runs under source.")
    return [" ".join(said)]


def intervals(trials: Sequence[Trial]) -> str:
    """What the brackets behind ratios are: so few rounds carry no interval."""
    count = len(of(trials, "right", under(trials)[0]))
    return (
        "with 90 % intervals over rounds"
        if count >= ROUNDS_MIN
        else f"and brackets are the least and the most of {count} rounds, no interval"
    )


def section(trials: Sequence[Trial], condition: conditions.Condition, found: Sequence[Check]) -> list[str]:
    source, right = of(trials, "source", condition), of(trials, "right", condition)
    rows = []
    for name, figure, show in FIGURES:
        both = [show(statistics.median(map(figure, side))) for side in (source, right)]
        rows.append([name, *both, times(compared(trials, condition, figure))])
    for name, count in COUNTS:
        rows.append([name, *(f"{sum(map(count, side)):g}" for side in (source, right)), "–"])
    parts = [
        f"## Under {condition.name}",
        f"{condition.says[0].upper()}{condition.says[1:]}.",
        table(["median over runs", "original", "fixed", "fixed by original"], rows),
        table(["how setpoints ended", "original", "fixed"], ends(source, right)),
        "Causes of the tails by `taut explain`, over all recordings, as shares of the excess over typical messages:",
        table(["original", "share", "fixed", "share"], side_by_side(causes(source), causes(right))),
    ]
    parts.append(worse(trials, condition))
    missed = [check for check in found if not check.holds]
    if missed:
        evidence = [f"- {text}" for text in dict.fromkeys(one for t in right for one in t.advice)]
        parts.append(
            f"Missed here: {'; '.join(check.what for check in missed)}. The evidence, from the recordings of *fixed*:"
        )
        parts.append("\n".join(evidence[:CAUSES_SHOWN]) or "- none: no message is far from the typical one")
    return parts


def worse(trials: Sequence[Trial], condition: conditions.Condition) -> str:
    """What *right* makes worse: figures whose median ratio is on the bad side."""
    found = []
    for name, figure, show in FIGURES:
        ratio = compared(trials, condition, figure)
        is_share = name == "delivered or modified"
        if ratio and (ratio.median < 1 if is_share else ratio.median > 1):
            both = [show(statistics.median(map(figure, of(trials, side, condition)))) for side in ("source", "right")]
            found.append(f"{name}: {both[0]} → {both[1]} ({times(ratio)})")
    return f"Worse in *fixed* than in *original*: {'; '.join(found) or 'nothing of the table'}."


def milliseconds(value: float) -> str:
    return f"{value:.2f} ms"


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


FIGURES: list[tuple[str, Figure, Callable[[float], str]]] = [
    ("end to end, p50", lambda t: t.quantile_ms(0.5), milliseconds),
    ("end to end, p99", lambda t: t.quantile_ms(0.99), milliseconds),
    ("end to end, max", lambda t: t.quantile_ms(1.0), milliseconds),
    ("PDV p99 (p99 less the least)", lambda t: t.quantile_ms(0.99) - t.quantile_ms(0.0), milliseconds),
    ("delivered or modified", lambda t: t.delivered, percent),
    ("tracking: RMS to where the hand is", lambda t: t.motion.tracking_mm, lambda v: f"{v:.1f} mm"),
    ("path: RMS at the best constant delay", lambda t: t.motion.path_mm, lambda v: f"{v:.2f} mm"),
    ("that delay", lambda t: t.motion.delay_ms, lambda v: f"{v:.0f} ms"),
    ("peak acceleration", lambda t: t.motion.acceleration_m_s2, lambda v: f"{v:.1f} m/s²"),
    ("peak jerk", lambda t: t.motion.jerk_m_s3, lambda v: f"{v:.0f} m/s³"),
    ("RMS jerk", lambda t: t.motion.jerk_rms_m_s3, lambda v: f"{v:.0f} m/s³"),
    ("longest commanded step", lambda t: t.motion.step_m_s, lambda v: f"{v:.2f} m/s"),
]
DROPPED = 0.71
SHOWN = ["end to end, p50", "end to end, p99", "end to end, max", "delivered or modified"]
"""On the page; the others are among the results."""
PUBLISHED: list[tuple[str, str, Figure, Callable[[float], str]]] = [
    ("end to end, p50", "2.43 ms", lambda t: t.quantile_ms(0.5), milliseconds),
    ("end to end, p99", "10.98 ms", lambda t: t.quantile_ms(0.99), milliseconds),
    ("setpoints dropped", f"{100 * DROPPED:.0f} %", lambda t: 1 - t.delivered, percent),
]
COUNTS: list[tuple[str, Figure]] = [
    ("setpoints, all runs", lambda t: t.setpoints["produced"]),
    ("silent drops", lambda t: t.silent),
    ("trips of its guard", lambda t: len(t.trips)),
    ("… of them false", lambda t: t.false_trips),
    ("trips of the naive guard on the same frames", lambda t: t.result["guard"].get("naive_trips", len(t.trips))),
]

TERMS = """## Terms

- **Silent** are the ledger's reasons 5, 11 and 20: a full queue, a validator that takes speed from arrival times, a
  command that was not executed. They are reported to no part of the robot.
- **A trip is false** if the robot's own stamps and positions, which a simulation gives without error, show no speed above
  the limit in the last 200 ms. The naive guard's trips are counted, at most one a second, without effect; the taut guard's stop the robot.
- **Tracking** holds the arm against the hand at the same time, so it contains every delay: *fixed* plays the path one
  setpoint's period behind, to have both ends of each stretch. **Path** is without the best constant delay: what is left is
  the effect of jitter and drops on the shape.
- **Acceleration and jerk** are of the tool, by differences over 10 ms. The simulated servo has assumed limits."""


def under(trials: Sequence[Trial]) -> list[conditions.Condition]:
    return [c for c in conditions.CONDITIONS if any(t.condition == c.name for t in trials)]


def of(trials: Iterable[Trial], arrangement: str, condition: conditions.Condition) -> list[Trial]:
    return [t for t in trials if t.arrangement == arrangement and t.condition == condition.name]


def compared(trials: Sequence[Trial], condition: conditions.Condition, figure: Figure) -> rounds.Estimate | None:
    """Right by source, within rounds. Nothing where a figure is zero."""
    right, source = ([figure(t) for t in of(trials, name, condition)] for name in ("right", "source"))
    return rounds.estimate(rounds.ratios(right, source)) if min(*right, *source) > 0 else None


def times(ratio: rounds.Estimate | None) -> str:
    def digits(value: float) -> str:
        return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"

    return f"×{digits(ratio.median)} ({digits(ratio.low)} to {digits(ratio.high)})" if ratio else "–"


def ends(source: Sequence[Trial], right: Sequence[Trial]) -> list[list[str]]:
    def counts(side: Sequence[Trial]) -> Counter[str]:
        found: Counter[str] = Counter()
        for t in side:
            s = t.setpoints
            found["delivered"] += s["applied"]
            found["in flight at start or end"] += s["in_flight"]
            found["unexplained"] += s["unexplained"]
            found.update({f"dropped: {reason}": n for reason, n in s["dropped"].items()})
            found.update({f"(of the delivered) modified: {reason}": n for reason, n in s["modified"].items()})
        return found

    ours, theirs = counts(right), counts(source)
    totals = [max(1, sum(t.setpoints["produced"] for t in side)) for side in (source, right)]
    names = sorted({*ours, *theirs}, key=lambda name: (name.startswith("("), -theirs[name] - ours[name]))
    both = [(name, theirs[name], ours[name]) for name in names]
    return [[name, *(f"{n} ({percent(n / all_)})" for n, all_ in zip(ns, totals, strict=True))] for name, *ns in both]


def causes(side: Sequence[Trial]) -> list[tuple[str, float]]:
    """Shares of the tails' excess, over all recordings; most first."""
    sums: Counter[str] = Counter()
    for t in side:
        for share in t.causes:
            sums[f"{share['cause']} {share['detail']}".strip()] += share["tail_share"] / len(side)
    return sums.most_common(CAUSES_SHOWN)


def side_by_side(left: list[tuple[str, float]], right: list[tuple[str, float]]) -> list[list[str]]:
    def cells(side: list[tuple[str, float]], at: int) -> list[str]:
        return [f"`{side[at][0]}`", percent(side[at][1])] if at < len(side) else ["", ""]

    return [cells(left, at) + cells(right, at) for at in range(max(len(left), len(right)))]
