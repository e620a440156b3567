"""docs/proof/reach.md, in short, and bench/reach/results.md, every table: every sentence that judges is chosen by the figures."""

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

COLUMNS = (
    "planning_ms",
    "execution_ms",
    "planned_ms",
    "excess_ms",
    "notice_ms",
    "control_lateness_p99_us",
    "control_late_ppm",
)
WHAT_FIGURES_ARE = """
Medians of trials [95 % interval]; a failed trial counts as worse than every number.

- *planning*: T1 of the source. *execution*: its T2, which is *planned* (the motion itself), *excess* (what the motion took beyond it) and
  *notice* (from the last command until the client has the result).
- *lateness*: T3, the 99th percentile of a trial's control cycles against their intended start. *late*: cycles that ended after the next was
  due, in 10⁶.
"""
OF_MODES = ("planning_ms", "notice_ms", "end_to_end_ms", "control_lateness_p99_us")
CONTROL, REACH = "control.sleeping", "client.goal_sent"
SOURCE = {
    "baseline": "11 of 11",
    "cpu_load": "11 of 11",
    "msg_load_unread": "0 of 10",
    "cpuset_limited": "5 of 5 (1 CPU)",
}
"""Successes that the source's README states, by our scenario."""

# The source's raw results (execution latency in ms of its successes); every one lies at 10 to 12 ms above a multiple of 50.
SOURCE_EXECUTION_MS = """510.86 561.46 510.28 311.83 460.29 560.35 660.40 710.63 260.32 560.59 2111.32
560.58 411.51 461.03 661.51 511.08 410.52 511.45 511.39 511.25 711.74 560.92"""
SOURCE_FAILED_MS = "10.26 11.21 10.57 11.17 11.60 10.31 10.45 11.27 10.75 10.35"


TITLE = "# Reaching under load: what breaks a manipulation stack"


def by_name(lab: dict | None) -> dict[str, dict]:
    return {scenario["name"]: scenario for scenario in (lab or {}).get("scenarios", [])}


def page(results: dict, command: str) -> str:
    """The scenarios in a table, and what they say of the source's findings."""
    scenarios = by_name(results["scenarios"])
    ends = [scenario["success"] for scenario in scenarios.values()]
    parts = [
        f"""{TITLE}

[ldos_manip_tracing](https://github.com/AayushBaniya2006/ldos_manip_tracing) reports of a Panda arm under MoveIt on 32 cores: CPU load
does not matter, a DDS flood of 4000 messages/s fails every trial. The [reach workload](../../workloads/reach/README.md) repeats its scenarios
without ROS, first unchanged, then with a reader of the flood.

**{sum(s["k"] for s in ends)} of {sum(s["n"] for s in ends)} trials succeeded here**, over {len(ends)} scenarios. All figures: [results](../../bench/reach/results.md).

{made(command)}

*Lateness*: p99 of control cycles, as a ratio to the baseline. Brackets are 95 % intervals. The flood has no reader, one beside the robot (*read*),
or the planner (*taken*).
""",
        short_table(scenarios),
        f"""- **The flood.** {unread(scenarios, is_brief=True)}
- [The source's other findings](../../bench/reach/results.md#the-sources-findings-and-ours).
- **The rate that breaks.** {breaking_text(results["breaking"])}- **Recorded trials.** {recorded_failures(results["recordings"])}""",
        helped(by_name(results["modes"])),
        profiles(results["flames"]),
    ]
    return "\n".join(part for part in parts if part)


def results_page(results: dict, command: str) -> str:
    scenarios, modes = by_name(results["scenarios"]), by_name(results["modes"])
    parts = [
        f"{TITLE}: results\n\n{made(command)} In short: [the page](../../docs/proof/reach.md).\n",
        findings(scenarios, results["breaking"]),
        outcome_table(scenarios),
        "\n## Figures\n" + WHAT_FIGURES_ARE + metric_table(scenarios, COLUMNS, "the baseline"),
        score_table(scenarios),
        load_table(scenarios),
        breaking(results["breaking"]),
        what_helps(modes),
        failures(scenarios, results["breaking"], results["recordings"]),
        causes(results["recordings"]),
    ]
    return "\n".join(part for part in parts if part)


def made(command: str) -> str:
    return f"""Made by `{command}` on {datetime.now(UTC).date()}: {machine()}. Do not edit. Trials are in random order, each on a fresh start. None was
repeated because it failed. Every load is verified ([lab](../../docs/reference/lab.md))."""


def short_table(scenarios: dict[str, dict]) -> str:
    """Success beside the source's, and the lateness of control cycles."""
    text = "| scenario | the source | here | lateness |\n| --- | ---: | ---: | ---: |\n"
    for name, scenario in scenarios.items():
        s, metrics = scenario["success"], {m["name"]: m for m in scenario["metrics"]}
        lateness = difference(metrics.get("control_lateness_p99_us"))
        text += f"| {name} | {SOURCE.get(name, '–')} | {s['k']} of {s['n']} ({100 * s['low']:.0f}–{100 * s['high']:.0f} %) | {lateness} |\n"
    return text


def outcome_table(scenarios: dict[str, dict]) -> str:
    text = "## How trials ended\n\n| scenario | success | 95 % interval | how it failed | invalid | the source |\n"
    text += "| --- | ---: | ---: | --- | ---: | ---: |\n"
    for name, scenario in scenarios.items():
        s = scenario["success"]
        failures = "; ".join(
            f"{m['trials']} × {m['status']}: {m['reason'] or '–'}"
            for m in scenario["misfortunes"]
            if m["status"] != "invalid"
        )
        low, high = (f"{100 * s[key]:.0f}" for key in ("low", "high"))
        text += f"| {name} | {s['k']} of {s['n']} | {low} to {high} % | {failures or '–'} "
        text += f"| {scenario['trials']['invalid']} | {SOURCE.get(name, '')} |\n"
    return text


def metric_table(scenarios: dict[str, dict], columns: tuple[str, ...], baseline: str) -> str:
    units = {m["name"]: m["unit"] for scenario in scenarios.values() for m in scenario["metrics"]}
    short = {"control_lateness_p99_us": "lateness p99", "control_late_ppm": "late"}
    titles = [f"{short.get(column, column.removesuffix('_ms'))}, {units.get(column, '')}" for column in columns]
    text = f"\n| scenario | {' | '.join(titles)} |\n| --- |{' ---: |' * len(columns)}\n"
    for name, scenario in scenarios.items():
        metrics = {m["name"]: m for m in scenario["metrics"]}
        cells = [cell(metrics.get(column)) for column in columns]
        text += f"| {name} | {' | '.join(cells)} |\n"
    text += f"\nAgainst {baseline} of the same round (ratio where all numbers are above 0, else difference):\n\n"
    text += f"| scenario | {' | '.join(titles)} |\n| --- |{' ---: |' * len(columns)}\n"
    for name, scenario in scenarios.items():
        metrics = {m["name"]: m for m in scenario["metrics"]}
        cells = [difference(metrics.get(column)) for column in columns]
        if any(one != "–" for one in cells):
            text += f"| {name} | {' | '.join(cells)} |\n"
    return text


def score_table(scenarios: dict[str, dict]) -> str:
    text = """
## The source's score

With the source's weights (T1 1.0, T2 1.0, T3 0.5, T4 1.5, T5 0.3). *sum* is the weighted mean of the medians, as the source publishes it; the
longest terms decide it. *ratio* is the weighted geometric mean of the ratios to the baseline, in which no term dominates by its size.

| scenario | sum | of which | ratio to the baseline | but |
| --- | ---: | --- | ---: | --- |
"""
    for name, scenario in scenarios.items():
        score = scenario["score"]
        terms = sorted(score["terms"], key=lambda term: -(term["share"] or 0))
        parts = ", ".join(f"{t['metric']} {100 * t['share']:.3g} %" for t in terms if t["share"] is not None)
        total = "–" if score["sum"] is None else f"{number(score['sum'])} {score['unit']}"
        ratio = "–" if score["ratio"] is None else f"×{number(score['ratio'])}"
        text += f"| {name} | {total} | {parts or '–'} | {ratio} | {'; '.join(score['vetoes'])} |\n"
    return text


def load_table(scenarios: dict[str, dict]) -> str:
    text = "\n## The loads in these trials\n\n"
    text += "A CPU load counts as applied when its threads run or wait in the run queue for the target (*CPUs wanted*); *reached* is what the scheduler gave them.\n\n"
    text += "| scenario | load | target | reached: median | least | CPUs wanted | sent | pairs of writer and reader |\n"
    text += "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for name, scenario in scenarios.items():
        for load in scenario["loads"]:
            reached = [number(load.get(key)) for key in ("target", "median", "least", "cpus_wanted", "sent", "matched")]
            text += f"| {name} | {load['load']}, {load['unit']} | {' | '.join(reached)} |\n"
    return text


def findings(scenarios: dict[str, dict], breaking: dict) -> str:
    text = "\n## The source's findings, and ours\n\n"
    text += (
        f'1. *"CPU contention has minimal impact."* The source loaded 4 of 32 CPUs. {effect(scenarios, "cpu_load")}\n'
    )
    text += f'2. *"DDS message flooding is catastrophic."* {unread(scenarios)}\n'
    for name, what in (
        ("msg_load_read", "The same flood with a reader beside the robot"),
        ("msg_load_taken", "The same flood taken by the planner itself"),
    ):
        text += f"   {what}. {effect(scenarios, name)}\n"
    text += f'3. *"A restriction to 1 CPU costs 55 %."* (n = 5, difference 271 ms, 95 % interval −157 to +698.) {effect(scenarios, "cpuset_limited")}\n'
    text += f'4. *"Execution latency."* {quantised()}\n'
    return text


def effect(scenarios: dict[str, dict], name: str) -> str:
    """What the scenario did against the baseline, as far as its intervals carry."""
    scenario = scenarios.get(name)
    if not scenario:
        return "Not run."
    s, pairs = scenario["success"], scenario.get("success_difference")
    said = [f"Here {s['k']} of {s['n']} trials succeeded"]
    if pairs and pairs["only_baseline"] + pairs["only_here"]:
        shown = "a difference to the baseline" if pairs["p"] < 0.05 else "no difference to the baseline shown"
        said[0] += f": {shown} (p = {pairs['p']:.2g})"
    by_word: dict[str, list[str]] = {}
    for metric in scenario["metrics"]:
        if metric["name"] in ("planning_ms", "notice_ms", "control_lateness_p99_us"):
            word, _, figure = judged(metric).partition(" (")
            name = metric["name"].rsplit("_", 1)[0].replace("_", " ")
            has_figure = word in ("rose", "fell")
            by_word.setdefault(word, []).append(f"{name} {figure.split(' [')[0].rstrip(')')}" if has_figure else name)
    said += [f"{word}: {', '.join(names)}" for word, names in by_word.items()]
    return "; ".join(said) + "."


def judged(metric: dict) -> str:
    found = metric.get("difference")
    if not found or not found.get("interval") or not all(isinstance(end, int | float) for end in found["interval"]):
        return "cannot be compared"
    low, high = sorted(found["interval"])
    none = 1 if found["ratio"] else 0
    word = "rose" if low > none else "fell" if high < none else "no change shown"
    return f"{word} ({difference(metric)})"


def unread(scenarios: dict[str, dict], is_brief: bool = False) -> str:
    scenario = scenarios.get("msg_load_unread")
    if not scenario:
        return "Not run."
    load = scenario["loads"][0]
    text = "Nothing in the source's repository subscribes to its flood, and an unread message never leaves the writer. "
    text += f"Unchanged, it has {number(load.get('sent') or load.get('median'))} messages/s written and {number(load.get('matched'))} matched pairs. "
    text = text.rstrip() if is_brief else text + effect(scenarios, "msg_load_unread")
    s = scenario["success"]
    if s["low"] > 0.5:
        failed = [float(word) for word in SOURCE_FAILED_MS.split()]
        text += (
            f" The flood did not cause the source's failures: all {len(failed)} came {min(failed):.1f} to {max(failed):.1f} ms after the start of the execution, "
            "when its executor first checks"
        )
        text += (
            "; overload gives late and scattered failures."
            if is_brief
            else ", while overload gives late and scattered failures. Its planning and its action round trips were as fast as without "
            "the flood. Later commits name stale processes of an earlier configuration as the cause of the same error."
        )
    elif s["high"] < 0.5:
        text += (
            " So the source's failures repeat here, though nothing left the writers; the causes are among the results."
        )
    else:
        text += " These are too few trials to say whether the source's failures are repeated here."
    return text


def quantised() -> str:
    values = [float(word) for word in SOURCE_EXECUTION_MS.split()]
    rest = [value % 50 for value in values]
    return (
        f"All {len(values)} of the source's values lie {min(rest):.1f} to {max(rest):.1f} ms above a multiple of 50 ms: its action is polled 20 times a second, "
        "and most of each value is the motion of a random plan. Here *planned*, *excess* and *notice* are separate."
    )


def breaking(found: dict) -> str:
    text = f"\n## The rate that breaks\n\n{breaking_text(found)}"
    if found.get("misfortunes"):
        text += "\nWhat happened at the lightest load proven broken:\n\n"
    for one in found.get("misfortunes", []):
        text += f"- {one['trials']} × {one['status']}: {escaped(one['reason'] or '–')}\n"
    return text


def breaking_text(found: dict) -> str:
    asked = found["asked"]
    text = "Four publishers, their flood taken by the planner; "
    text += f"from {number(asked['from'])} to {number(asked['to'])} Hz each, until success falls below {100 * asked['success']:g} %. "
    outcome = found["outcome"]
    fine, broken = found.get("fine"), found.get("broken")

    def end(of: dict | None) -> str:
        if not of:
            return "–"
        return f"{number(of['value'])} Hz of each publisher (reached {number(of['achieved'])} {found['unit']}; {success(of['success'])})"

    text += {
        "between": f"{reached(found)}Fine at {end(fine)}, broken at {end(broken)}.",
        "never_broke": f"It did not break up to {end(fine)}.",
        "broke_at_once": f"It is broken already at {end(broken)}.",
    }.get(outcome, f"Open: fine at {end(fine)}, broken at {end(broken)}.")
    return text + f" {found['trials']} trials, {found['invalid']} invalid. {found.get('why') or ''}".rstrip() + "\n"


def what_helps(modes: dict[str, dict]) -> str:
    """The source's future work: what a stack can change, under the flood that its planner takes."""
    if not modes:
        return ""
    text = """
## What helps

The same flood, taken by the planner, and one thing of the stack changed at a time ([modes.toml](../../workloads/reach/modes.toml)): queues of one message
instead of ten, best effort, an adaptive throttle in the planner, SCHED_FIFO for the control thread, the robot's topics over zenoh or shared memory.

| mode | success | 95 % interval | invalid |
| --- | ---: | ---: | ---: |
"""
    for name, mode in modes.items():
        s = mode["success"]
        text += f"| {name} | {s['k']} of {s['n']} | {100 * s['low']:.0f} to {100 * s['high']:.0f} % | {mode['trials']['invalid']} |\n"
    return text + metric_table(modes, OF_MODES, "the plain stack under the flood (*taken*)") + helped(modes)


def helped(modes: dict[str, dict]) -> str:
    """By metric, the modes that are shown to lower it."""
    text = ""
    for metric in OF_MODES if modes else ():
        judgements = {
            name: judged(found)
            for name, mode in modes.items()
            for found in mode["metrics"]
            if found["name"] == metric and name not in ("taken", "quiet")
        }
        lower = [
            f"{name} ({said.removeprefix('fell (')}" for name, said in judgements.items() if said.startswith("fell")
        ]
        text += f"\n- {metric.rsplit('_', 1)[0].replace('_', ' ')}: shown to fall with {', '.join(lower) or 'none of them'}."
    return text + "\n" if text else ""


def reached(found: dict) -> str:
    """The threshold in what the load came to."""
    low, high = found["threshold"]
    if low is None or high is None:
        return ""
    return f"**Between {number(low)} and {number(high)} {found['unit']}** of all publishers together. "


def failures(scenarios: dict[str, dict], breaking: dict, recordings: list[dict]) -> str:
    """Each way in which trials failed, with the cause that a recorded trial of the same scenario had that failed the same way."""
    text = """
## Why trials failed

The cause that `taut explain` finds in recorded trials of the same scenario that failed in the same way.

"""
    rows = []
    misfortunes = [(name, one) for name, scenario in scenarios.items() for one in scenario["misfortunes"]]
    misfortunes += [(breaking["asked"]["scenario"], one) for one in breaking.get("misfortunes", [])]
    for name, one in misfortunes:
        if one["status"] != "invalid":
            same = [r for r in recordings if r["scenario"] == name and r["status"] == one["status"]]
            found = [cause for cause in map(cause_of, same) if cause]
            why = "; ".join(dict.fromkeys(found)) or (
                "no cause stands out of the recorded ones" if same else "no recorded trial of this scenario failed so"
            )
            rows.append(
                f"| {name} | {one['trials']} × {one['status']} | {escaped(one['reason'] or '–')} | {escaped(why)} |"
            )
    besides = recorded_failures(recordings)
    if not rows:
        return text + f"No valid trial of the figures above failed. {besides}"
    besides = "\n" + besides
    return (
        text + "| scenario | trials | reason | cause |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n" + besides
    )


def recorded_failures(recordings: list[dict]) -> str:
    """The recorded trials are in no figure, and may have failed all the same."""
    failed = [
        f"{one['scenario']} {one['trial']} ({one['outcome']})" for one in recordings if one["status"] != "success"
    ]
    said = f"Of the {len(recordings)} trials that were recorded in addition {len(failed)} failed"
    return said + (f": {escaped('; '.join(failed))}.\n" if failed else ".\n")


def cause_of(recording: dict) -> str:
    """Of the reach itself where the recording has it, else of the control loop: where the time of the worst went."""
    chains = {c["name"].split(" ")[0]: c for c in (recording["explanation"] or {}).get("chains", [])}
    for name, what, leave in ((REACH, "the reach", ("queued", "sleep")), (CONTROL, "a control cycle", ("sleep",))):
        told = budget((chains.get(name) or {}).get("worst", [])[:1], leave=leave)
        if told:
            return f"{what} of {told}"
    return ""


def success(of: Any) -> str:
    return f"{of['k']} of {of['n']} succeeded" if isinstance(of, dict) else str(of)


OWN = """`taut/…` is the lab and its recorder, which a robot does not have beside it; `load-…/…` are the workers of the scenario's load."""


def causes(recordings: list[dict]) -> str:
    text = f"""
## Why

What `taut explain` finds in further recordings of one trial each, which are not in the figures above. *control tail*: shares of the excess of control
cycles above p99. *worst cycle*: where the time of the longest cycle went. The last column is what a reach took beside its motion.
{OWN}

| recording | ended | reach, ms | control tail | worst cycle | the reach besides its motion |
| --- | --- | ---: | --- | --- | --- |
"""
    for recording in recordings:
        chains = {c["name"].split(" ")[0]: c for c in (recording["explanation"] or {}).get("chains", [])}
        control, reach = chains.get(CONTROL), chains.get(REACH)
        tail = "; ".join(
            f"{c['cause']} {c['detail']} {100 * c['tail_share']:.0f} %" for c in (control or {}).get("causes", [])[:3]
        )
        worst = budget((control or {}).get("worst", [])[:1], leave=("sleep",))
        own = budget((reach or {}).get("worst", [])[:1], leave=("queued", "sleep"))
        total = (reach or {}).get("worst", [])
        outcome = f"{total[0]['total_ns'] / 1e6:.0f}" if total else "no result"
        text += f"| {recording['scenario']} {recording['trial']} | {recording['outcome']} | {outcome} | {escaped(tail) or '–'} | {escaped(worst) or '–'} | {escaped(own) or '–'} |\n"
    return text


def budget(messages: list[dict], leave: tuple[str, ...]) -> str:
    if not messages:
        return ""
    parts = [part for part in messages[0]["causes"] if part["cause"] not in leave]
    named = [
        f"{part['cause']} {part['detail']} {part['time_ns'] / 1e6:.1f} ms".replace("  ", " ") for part in parts[:3]
    ]
    return f"{messages[0]['total_ns'] / 1e6:.1f} ms: {', '.join(named)}"


def profiles(flames: dict[str, Path]) -> str:
    if not flames:
        return ""
    named = {
        "reach-flame.svg": "[unloaded](reach-flame.svg)",
        "reach-flame-flood.svg": "[what the flood in the planner changes](reach-flame-flood.svg)",
    }
    return f"Flame graphs ([how to read them](../howto/profile.md)): {', '.join(named[name] for name in flames)}.\n"


def cell(metric: dict | None) -> str:
    if not metric or metric["median"] is None:
        return "–"
    interval = metric.get("interval")
    ends = f" [{number(interval[0])}, {number(interval[1])}]" if interval else ""
    return f"{number(metric['median'])}{ends}"


def difference(metric: dict | None) -> str:
    found = (metric or {}).get("difference")
    if not found or found.get("estimate") is None:
        return "–"
    sign = "×" if found["ratio"] else ""
    interval = found.get("interval")
    ends = f" [{number(interval[0])}, {number(interval[1])}]" if interval else ""
    return f"{sign}{number(found['estimate'])}{ends}"


def number(value: Any) -> str:
    """Three digits are what thirty trials carry."""
    if value is None:
        return "–"
    if not isinstance(value, int | float):
        return str(value)
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line] or [platform.machine()]
    return (
        f"{names[0]}, {len(names)} CPUs, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
