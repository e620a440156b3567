"""The sections of page and results that are about ROS 2 itself: the same experiments on real nodes. `run --ros2` makes them; nothing else changes."""

from datetime import UTC, datetime
from pathlib import Path

import page

TITLE = "## On ROS 2"
COLUMNS = ("planning_ms", "execution_ms", "excess_ms", "notice_ms", "control_lateness_p99_us", "control_late_ppm")
CONTROL, STATES = (
    "/panda_arm_controller timer 2 ms",
    "/panda_arm_controller publish /joint_states → /planner callback /joint_states",
)


def section(results: dict, command: str, remark: str) -> str:
    scenarios = {scenario["name"]: scenario for scenario in results["scenarios"]["scenarios"]}
    parts = [
        head(scenarios, command, remark),
        findings(scenarios),
        below(page.outcome_table(scenarios)),
        figures(scenarios),
    ]
    parts += [
        loads(scenarios),
        below(page.breaking(results["breaking"])),
        probes(results["breaking"]),
        causes(results["recordings"]),
    ]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def brief(results: dict, command: str, remark: str) -> str:
    """The page's section."""
    scenarios = {scenario["name"]: scenario for scenario in results["scenarios"]["scenarios"]}
    probes = results["breaking"]["probes"]
    values = [one["value"] for one in probes]
    text = f"""{TITLE}

{made(command, remark)} ROS 2 Kilted with Fast DDS, nodes in rclpy, the controller in C on rcl.

{findings(scenarios, more="")} So few trials show only large effects.
"""
    if probes:
        k, n = (sum(one["success"][key] for one in probes) for key in ("k", "n"))
        text += f"""
The rate that breaks: {k} of {n} trials succeeded at {page.number(min(values))} to {page.number(max(values))} Hz of each of four publishers.
"""
    return text


def put(text: str, path: Path) -> None:
    """In the place of the section that is there, or at the end."""
    old, had = path.read_text(), kept(path)
    path.write_text(old.replace(had, text) if had else old.rstrip("\n") + "\n\n" + text)


def kept(path: Path) -> str:
    """The section as it is there, for a page that is made again without it."""
    old = path.read_text() if path.exists() else ""
    at = old.find(TITLE)
    after = old.find("\n## ", at)
    return "" if at < 0 else old[at:] if after < 0 else old[at : after + 1]


def below(text: str) -> str:
    """A part of the page as one of this section."""
    return ("\n" + text).replace("\n## ", "\n### ")


def head(scenarios: dict[str, dict], command: str, remark: str) -> str:
    trials = max(sum(scenario["trials"].values()) for scenario in scenarios.values())
    return f"""{TITLE}

{made(command, remark)}

The same scenarios on real nodes: ROS 2 Kilted from PyPI with Fast DDS, client, planner and state publisher in rclpy, `reach` and
`follow_joint_trajectory` as actions, the 500 Hz controller in C on rcl ([workload](../../workloads/reach/README.md#on-ros-2)). Floods are rclpy
publishers. There are {trials} trials of each scenario, each on a separate start and domain, ready by discovery. So few trials show only large effects: read
the intervals.
"""


def made(command: str, remark: str) -> str:
    return f"Made by `{command}` on {datetime.now(UTC).date()}: {page.machine()}. {remark}".rstrip()


def findings(scenarios: dict[str, dict], more: str = "; the last table has what late cycles waited for") -> str:
    """What the figures carry."""
    ends = {name: scenario["success"] for name, scenario in scenarios.items()}
    said = [f"{sum(s['k'] for s in ends.values())} of {sum(s['n'] for s in ends.values())} trials succeeded."]
    floods = [f"{name} {ends[name]['k']} of {ends[name]['n']}" for name in ends if name.startswith("msg_load")]
    said.append(f"Under the source's flood of 4,000 messages/s: {', '.join(floods)}; the source had 0 of 10.")
    reasons = {
        one["reason"]
        for scenario in scenarios.values()
        for one in scenario["misfortunes"]
        if one["status"] != "invalid"
    }
    if reasons:
        said.append(f"Every failure was: {page.escaped('; '.join(sorted(reasons)))}.")
    if failed := ends["baseline"]["n"] - ends["baseline"]["k"]:
        said.append(
            f"**Not shown**: that a load failed a trial. The baseline itself failed in {failed} of {ends['baseline']['n']}, because of other work on the "
            f"machine{more}."
        )
    return " ".join(said)


def figures(scenarios: dict[str, dict]) -> str:
    """Differences only where the baseline has a median."""
    table = page.metric_table(scenarios, COLUMNS, "the baseline")
    has_median = all(
        isinstance(one["median"], int | float) for one in scenarios["baseline"]["metrics"] if one["name"] in COLUMNS
    )
    return page.WHAT_FIGURES_ARE.strip() + "\n" + (table if has_median else table.split("\nAgainst ")[0])


def probes(breaking: dict) -> str:
    text = "| Hz of each publisher | reached, messages/s written | success |\n| ---: | ---: | ---: |\n"
    for one in breaking["probes"]:
        text += f"| {page.number(one['value'])} | {page.number(one['achieved'])} | {one['success']['k']} of {one['success']['n']} |\n"
    return text


def loads(scenarios: dict[str, dict]) -> str:
    text = "### The loads in these trials\n\n| scenario | load | target | reached: median | least | sent | pairs | topic: sent, received, most lost |\n"
    text += "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
    for name, scenario in scenarios.items():
        for load in scenario["loads"]:
            reached = [page.number(load.get(key)) for key in ("target", "median", "least", "sent", "matched")]
            topics = "; ".join(map(topic, load["topics"])) or "–"
            text += f"| {name} | {load['load']}, {load['unit']} | {' | '.join(reached)} | {topics} |\n"
    return text


def topic(of: dict) -> str:
    lost = "–" if of["most_lost"] is None else f"{100 * of['most_lost']:.1f} %"
    return f"{of['topic']}: {page.number(of['sent'])}, {page.number(of['received'])}, {lost}"


def causes(recordings: list[dict]) -> str:
    text = f"""### Why

What `taut explain` finds in further recordings of one trial each, nodes unmodified. *control tail*: shares of the excess of the controller's callbacks
above p99. *worst cycle*: where the time of the longest callback went, from when its timer was due. *worst joint state*: the same, from its publication until the
planner's callback ended.
{page.OWN}

| recording | ended | control tail | worst cycle | worst joint state to the planner |
| --- | --- | --- | --- | --- |
"""
    for one in recordings:
        chains = (one["explanation"] or {}).get("chains", [])
        control, states = (next((c for c in chains if c["name"].startswith(name)), {}) for name in (CONTROL, STATES))
        tail = "; ".join(
            f"{c['cause']} {c['detail']} {100 * c['tail_share']:.0f} %" for c in control.get("causes", [])[:3]
        )
        cells = [tail, *(page.budget(of.get("worst", [])[:1], leave=("sleep",)) for of in (control, states))]
        text += f"| {one['scenario']} {one['trial']} | {one['outcome']} | {' | '.join(page.escaped(cell) or '–' for cell in cells)} |\n"
    return text
