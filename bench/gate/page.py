"""The page, and what must hold. Numbers come in; words and tables go out."""

import platform
from dataclasses import dataclass

import numpy as np
from collect import SECONDS, SLOWED, slowed_work_ns
from noise import SAME, Hypothesis, Noise
from peers import CRITERION_NOISE, WAYS
from plan import KINDS, SYSTEMS
from scipy import stats

FOUND = {"slower by 10 %": 0.60, "slower by 25 %": 0.90, "slower by 50 %": 0.99, "tail": 0.80}
FALSE, BY_MACHINE, RIGHT_HOP = 0.01, 0.02, 0.95
SOON = {"slower by 25 %": (60.0, 0.80), "slower by 10 %": (120.0, 0.60)}
"""Within so many seconds, so often."""
SETTLED = 0.50
"""Of gates whose B is A, the share that is to say so."""
MEANS = {
    "same": "B is A",
    "slower by 10 %": "B has 10 % more work in one hop",
    "slower by 25 %": "25 % more",
    "slower by 50 %": "50 % more",
    "tail": "one message in 200 has five times the work there",
    "hog": "B is A, with another program on its core",
}


@dataclass(frozen=True)
class Limit:
    what: str
    hits: int
    of: int
    limit: float
    at_least: bool

    @property
    def holds(self) -> bool:
        share = self.hits / max(self.of, 1)
        return self.of > 0 and (share >= self.limit if self.at_least else share <= self.limit)


def limits(results: dict) -> list[Limit]:
    rows = []
    for system in SYSTEMS:
        gates = results["replayed"][system]
        worse = {kind: [gate for gate in gates[kind] if gate["verdict"] == "worse"] for kind in KINDS}

        def limit(what: str, kind: str, share: float, at_least: bool) -> Limit:
            return Limit(f"{system}: {what}", len(worse[kind]), len(gates[kind]), share, at_least)  # noqa: B023

        rows.append(limit("`worse`, B is A", "same", FALSE, False))
        rows += [limit(f"`worse`, {kind}", kind, share, True) for kind, share in FOUND.items()]
        for kind, (within_s, share) in SOON.items():
            soon = [gate for gate in worse[kind] if gate["seconds"] <= within_s]
            what = f"{system}: `worse` within {within_s:.0f} s, {kind}"
            rows.append(Limit(what, len(soon), len(gates[kind]), share, True))
        same = [gate for gate in gates["same"] if gate["verdict"] == "no_relevant_difference"]
        rows.append(Limit(f"{system}: no relevant difference, B is A", len(same), len(gates["same"]), SETTLED, True))
        found = [gate for kind in FOUND for gate in worse[kind]]
        right = [gate for gate in found if gate["blamed"] == SLOWED[system]]
        rows.append(Limit(f"{system}: the right hop named, of these", len(right), len(found), RIGHT_HOP, True))
        rows.append(limit("`worse`, only the machine was", "hog", BY_MACHINE, False))
    return rows


def holds(results: dict) -> bool:
    return all(limit.holds for limit in limits(results))


def summary(results: dict) -> str:
    return "\n".join(
        f"{'holds ' if one.holds else 'MISSED'} {one.what}: {rate(one.hits, one.of)}" for one in limits(results)
    )


def page(results: dict) -> str:
    """What holds and what was missed: docs/proof/gate.md."""
    return "\n\n".join([head(results), limit_table(results), tails(results), how(results)]) + "\n"


def figures(results: dict) -> str:
    """All of it: bench/gate/results.md."""
    parts = [figures_head(results), gate_table(results), sees_table(results), peer_table(results)]
    parts += [hypothesis(results), noise_table(results), costs(results), how_in_full(results)]
    return "\n\n".join(parts) + "\n"


def head(results: dict) -> str:
    return f"""# Error rates of the gate

How often does `taut gate` call an unchanged program worse, and how often does it find a change? {results["gates"]} gates of each kind were replayed over
recorded pairs of two systems. Made by `bench/gate/run` (seed {results["seed"]}). Do not edit. All figures:
[results](../../bench/gate/results.md). [The statistics](../explanation/statistics.md).{settings(results)}

- *native*: four pieces of work on four threads of two processes, 250 Hz, trials of {SECONDS["native"]} s.
- *teleop*: [the teleoperation workload](../../workloads/teleop/README.md) as shipped, 50 Hz, trials of {SECONDS["teleop"]} s."""


def figures_head(results: dict) -> str:
    return f"""# Error rates of the gate: results

Made by `bench/gate/run` (seed {results["seed"]}). Do not edit. [The page](../../docs/proof/gate.md) has the limits.{settings(results)}

One hop is slowed: `{SLOWED["native"]}`, and the validation, `{SLOWED["teleop"]}`."""


def settings(results: dict) -> str:
    return f" Settings: `{results['settings']}`." if results["settings"] else ""


def limit_table(results: dict) -> str:
    every = limits(results)
    rows: dict[str, list[str]] = {}
    for one in every:
        what = one.what.split(": ", 1)[1]
        row = rows.setdefault(what, [what, f"{'≥' if one.at_least else '≤'} {100 * one.limit:.0f} %"])
        row.append(rate(one.hits, one.of) + ("" if one.holds else ": **missed**"))
    of_hog = [np.mean([gate["machine_is_worse"] for gate in results["replayed"][s]["hog"]]) for s in SYSTEMS]
    return f"""## Limits

{sum(one.holds for one in every)} of {len(every)} hold. B is *slower* by work in one hop; in *tail* {MEANS["tail"]}.

{table(["", "limit", *SYSTEMS], list(rows.values()))}

Brackets are 95 % bounds (Clopper–Pearson) for independent gates; gates share pairs, so their rates are less certain. *Only the machine
was*: {MEANS["hog"]}. The gates reported then that the machine was worse in {" and ".join(map(percent, of_hog))}."""


def tails(results: dict) -> str:
    words = [
        f"{system}, {says} {word if word != 'refuted' else '**refuted**'}"
        for system in SYSTEMS
        for side, says in (("own", "own time"), ("work", "work"))
        for word in [results["hypothesis"][system].word(side)]
    ]
    return f"""Does p99 without the machine's part vary no more than p50? {"; ".join(words)}
([noise](../../bench/gate/results.md#does-own-time-vary-less-in-the-tail)). [Common methods](../../bench/gate/results.md#common-methods) judged
the same draws."""


VERDICTS = {
    "worse": "worse",
    "better": "better",
    "no_relevant_difference": "no relevant difference",
    "not_enough_evidence": "not enough evidence",
    "invalid": "invalid",
}


def gate_table(results: dict) -> str:
    rows = []
    for system in SYSTEMS:
        for kind in KINDS:
            gates = results["replayed"][system][kind]
            count = [sum(gate["verdict"] == word for gate in gates) for word in VERDICTS]
            rows.append(
                [system, MEANS[kind], str(len(results["pairs"][system][kind]))]
                + [measured(results["calibration"]["changes"][system].get(kind))]
                + [f"{100 * grown(results['pairs'][system][kind], system):+.1f} %"]
                + [percent(n / len(gates)) for n in count]
                + [percent(np.mean([gate["machine_is_worse"] for gate in gates]))]
                + [
                    f"{np.mean([gate['pairs'] for gate in gates]):.0f}",
                    f"{np.mean([gate['seconds'] for gate in gates]):.0f} s",
                    time_to_worse(gates),
                ]
            )
    heads = [
        "system",
        "",
        "recorded pairs",
        "change by the program's own clock",
        "the hop's median work",
        *VERDICTS.values(),
        "the machine was worse",
        "pairs, mean",
        "time, mean",
        "time to worse, median (90 %)",
    ]
    return "## Verdicts\n\n" + table(heads, rows) + "\n\n" + accused(results)


def measured(runs: list[dict] | None) -> str:
    """ "+10.3 % (9.8 to 11.2)": the median run and the extremes."""
    if not runs:
        return "–"
    changes = sorted(100 * (run["slowed_ns"] / run["plain_ns"] - 1) for run in runs)
    return f"{np.median(changes):+.1f} % ({changes[0]:.1f} to {changes[-1]:.1f})"


def time_to_worse(gates: list[dict]) -> str:
    """Of all gates; those that never say so are the slowest."""
    times = np.array([gate["seconds"] if gate["verdict"] == "worse" else np.inf for gate in gates])
    half, most = (np.quantile(times, q, method="inverted_cdf") for q in (0.5, 0.9))
    return " ".join([shown_s(half), f"({shown_s(most)})"])


def shown_s(seconds: float) -> str:
    return f"{seconds:.0f} s" if np.isfinite(seconds) else "–"


def grown(pairs: list[dict], system: str) -> float:
    """By how much the slowed hop's median work is longer in B, in the median pair."""
    works = [[slowed_work_ns(pair[side], system) or np.nan for side in "ab"] for pair in pairs]
    return float(np.nanmedian([b / a for a, b in works])) - 1


def accused(results: dict) -> str:
    """What was wrong, where anything was."""
    lines = []
    for system in SYSTEMS:
        for kind in ("same", "hog"):
            figures = [
                figure
                for gate in results["replayed"][system][kind]
                if gate["verdict"] == "worse"
                for figure in gate["worse"]
            ]
            if figures:
                lines.append(f"Wrongly called worse, {system}, {MEANS[kind]}: {counted(figures)}.")
    for system in SYSTEMS:
        gates = [gate for kind in FOUND for gate in results["replayed"][system][kind] if gate["verdict"] == "worse"]
        others = [gate["blamed"] or "no hop" for gate in gates if gate["blamed"] != SLOWED[system]]
        if others:
            lines.append(f"Wrong hops, {system}: {counted(others)}.")
    for system in SYSTEMS:
        for kind in FOUND:
            gates = [gate for gate in results["replayed"][system][kind] if gate["verdict"] != "worse"]
            said = [word for gate in gates for name, word, _ in gate["ballots"] if name.startswith(SLOWED[system])]
            if gates:
                lines.append(f"Missed, {system}, {kind}: the hop's own figures were {counted(said)}.")
    return "\n".join(lines) or "No change was found wrongly, missed, or assigned to a wrong hop."


def counted(words: list[str]) -> str:
    names, counts = np.unique(words, return_counts=True)
    often = sorted(zip(counts.tolist(), names.tolist(), strict=True), reverse=True)
    return ", ".join(f"{name.replace('_', ' ')} ({n})" for n, name in often)


def sees_table(results: dict) -> str:
    rows = []
    for system in SYSTEMS:
        sees = results["sees"][system]
        for seen in sees["figures"]:
            is_share = seen["figure"].endswith("slow") or " " not in seen["figure"]
            rows.append([system, seen["figure"], change(seen["noise"], is_share), change(seen["smallest"], is_share)])
    accuse, confirm = zip(*(results["sees"][system]["most"] for system in SYSTEMS), strict=True)
    return f"""## What {results["gate_s"] / 60:.2g} minutes can find

Computed, not replayed, from the noise of pairs of a program with itself. There is time for ({accuse[0]} to find and {confirm[0]} to
confirm of native, {accuse[1]} and {confirm[1]} of teleop, at most 40 of each) pairs. *Found with 90 %* is the smallest change for the worse that a gate finds with a chance of
9 in 10. Shares of messages are in ‰.

{table(["system", "figure", "noise of a pair", "found with 90 %"], rows)}"""


def change(value: float | None, is_share: bool) -> str:
    if value is None:
        return "–"
    return f"{1000 * value:.2g} ‰" if is_share else f"{100 * value:.1f} %"


def peer_table(results: dict) -> str:
    rows = []
    for system in SYSTEMS:
        gates = results["replayed"][system]
        said = {kind: sum(gate["verdict"] == "worse" for gate in gates[kind]) for kind in KINDS}
        rows.append([system, "**taut gate**", *(percent(said[kind] / len(gates[kind])) for kind in KINDS)])
        for at, way in enumerate(WAYS):
            share = [results["peers"][system][kind][at] / len(gates[kind]) for kind in KINDS]
            rows.append([system, way, *map(percent, share)])
    return f"""## Common methods

The same draws of pairs, all that {results["gate_s"] / 60:.2g} minutes hold, judged by common methods on end-to-end latencies. The table has how often each
reports a regression. Tests are at 5 %, one-sided; criterion with its threshold of {100 * CRITERION_NOISE:.0f} %. Pairs that ran back to back in random order are
in their favour, compared with all A, then all B. None of them separates the machine's part.

{table(["system", "", *(MEANS[kind] for kind in KINDS)], rows)}"""


def hypothesis(results: dict) -> str:
    rows = []
    sentences = []
    for system in SYSTEMS:
        one: Hypothesis = results["hypothesis"][system]
        for name, (sd, robust) in one.noise.items():
            rows.append([system, name, f"{sd:.3f}", f"{robust:.3f}"])
        merged = "" if one.merged == 1 else f" of {one.merged} trials merged, so that they carry a p99"
        for side, says in (("own", "own time"), ("work", "work, its time on a CPU")):
            sentences.append(
                f"- **{system}, {says}: {one.word(side)}.** {one.pairs} pairs{merged}: its p99 is {ratio(one.by_median[side])} times as noisy as its"
                f" p50, and the total p99 is {ratio(one.gained[side])} times as noisy as that."
            )
    return f"""## Does own time vary less in the tail?

The hypothesis: without the machine's part the noise of p99 is that of p50. It *holds* if the noise of p99 is at most {SAME} times that of p50 with
95 % (bootstrap over pairs), is *refuted* if it is more with 95 %, and is *open* else. Noise is the standard deviation of ln(B/A) over pairs of a
program with itself. *Typical noise* is that of the middle half of the pairs (median of absolute deviations / 0.6745); it decides here, since a
single stall changes the other.

{chr(10).join(sentences)}

{table(["system", "figure, end to end", "noise", "typical noise"], rows)}"""


def ratio(of: tuple[float, float, float]) -> str:
    return f"{of[0]:.2g} ({of[1]:.2g}–{of[2]:.2g})"


def noise_table(results: dict) -> str:
    parts = [
        "## Noise of each figure\n\nPairs of a program with itself. Times: noise of ln(B/A). `slow`, a share of messages: noise of B − A, in ‰."
    ]
    for system in SYSTEMS:
        rows = [noise_row(one) for one in results["noise"][system] if shown(one)]
        listed = table(["figure", "typical trial", "pairs", "noise", "typical noise"], rows)
        parts.append(f"<details>\n<summary>{system}: {len(rows)} figures</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(parts)


def shown(one: Noise) -> bool:
    """End to end all figures; of hops the medians of own time and work, and the share that votes; none of hops of some microseconds."""
    is_share = one.name.endswith("slow")
    way, side, statistic = one.name.split(" · ")
    if way == "end to end":
        return True
    return side == "work" if is_share else side != "total" and statistic == "p50" and one.typical >= 5.0


def noise_row(one: Noise) -> list[str]:
    unit = "‰" if one.name.endswith("slow") else "µs"
    return [one.name, f"{one.typical:.3g} {unit}", str(one.pairs), f"{one.sd:.3f}", f"{one.robust:.3f}"]


def costs(results: dict) -> str:
    rows = []
    for system in SYSTEMS:
        pairs = [pair for kind in results["pairs"][system].values() for pair in kind]
        trials = [pair[side] for pair in pairs for side in "ab"]
        pair_s = np.mean([pair["seconds"] for pair in pairs])
        rows.append(
            [
                system,
                f"{SECONDS[system]} s",
                f"{np.median([trial['trial']['messages'] for trial in trials]):.0f}",
                f"{np.mean([trial['record_s'] for trial in trials]) - SECONDS[system]:.2f} s",
                f"{np.mean([trial['analyse_s'] for trial in trials]):.2f} s",
                f"{pair_s:.1f} s",
                f"{results['gate_s'] / pair_s:.0f}",
                f"{np.mean([trial['recording_bytes'] for trial in trials]) / 1e6:.1f} MB",
            ]
        )
    heads = [
        "system",
        "trial",
        "messages",
        "starting and ending",
        "analysis",
        "pair, in all",
        "pairs in 3 minutes",
        "recording",
    ]
    return f"## Time for a pair\n\n{table(heads, rows)}\n\n{void(results)} All gates of this page were judged in {results['judged_s']:.0f} s."


def void(results: dict) -> str:
    failed = [pair[side]["void"].split(":")[0] for pair in results["void"] for side in "ab" if "void" in pair[side]]
    sound = [pair for system in results["pairs"].values() for kind in system.values() for pair in kind]
    void = [pair[side]["trial"]["void"]["why"] for pair in sound for side in "ab" if pair[side]["trial"]["void"]]
    return f"Sides of pairs that failed: {told(failed)}; that were void: {told(void)}."


def told(reasons: list[str]) -> str:
    return f"{len(reasons)} ({counted(reasons)})" if reasons else "none"


def how(results: dict) -> str:
    return f"{recording(results)}. [How](../../bench/gate/results.md#how)."


def recording(results: dict) -> str:
    pairs = sum(len(kind) for system in results["pairs"].values() for kind in system.values())
    cpu = next(iter(results["pairs"]["native"]["same"]))["a"]["trial"]["host"]
    return f"""{pairs} pairs of trials were recorded in {results["minutes"]:.0f} minutes on one machine ({cpu["cpu"]}, {cpu["cpus"]} CPUs, kernel
{cpu["kernel"].split()[0]}, Python {platform.python_version()}), under a random background load"""


def how_in_full(results: dict) -> str:
    steps = results["calibration"]["steps"]
    listed = ", ".join(f"{count:.1f} for {kind}" for kind, count in steps.items())
    recorded = recording(results).replace("\n", "\n  ")
    return f"""## How

- **Recording.** {recorded} ({background(results)}).
- **Replay.** The code that `taut gate` runs judges pairs drawn with replacement (a pair stays a pair). Each takes the time it took, and the gate
  has {results["gate_s"] / 60:.2g} minutes.
- **Injection.** Work is injected as a count of steps, never as a time. In `native` each hop's work scatters by ± 10 % from message to message.
  `teleop` keeps its rates, its motion and its drops. Its validator does further steps of forward kinematics: {listed}.
- **Size of a change.** It is measured without taut, under the same load: the program slows every second message, and takes the CPU time of
  the hop by the thread's own clock (CLOCK_THREAD_CPUTIME_ID). The table has the median run of three, and the extremes.
- **Order.** [bench/gate](README.md) has it.
- **Hog.** The pairs of `hog` are pinned to one core, where B has a hog in addition."""


def background(results: dict) -> str:
    episodes = results["background"]
    seconds = {}
    for one in episodes:
        seconds[one["background"]] = seconds.get(one["background"], 0.0) + one["seconds"]
    total = sum(seconds.values()) or 1.0
    shares = sorted(seconds.items(), key=lambda item: -item[1])
    return f"{len(episodes)} episodes: " + ", ".join(f"{name} {100 * s / total:.0f} %" for name, s in shares)


def rate(hits: int, of: int) -> str:
    if not of:
        return "none"
    low, high = stats.binomtest(hits, of).proportion_ci(0.95, "exact")
    return f"{hits} of {of} ({100 * low:.1f}–{100 * high:.1f} %)"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
