"""What `bench/quad/run` writes: the claims as docs/proof/quad.md, every figure as bench/quad/results.md."""

import json
import os
import platform
import shlex
import statistics
from collections import Counter
from pathlib import Path

WEIGHT_N = 98.1
# A robot that lowers itself reaches the ground at no more than this share of a dropped one's speed.
GENTLE = 0.5
BEYOND_WIRE_US = 30
GAITS = ("stand", "trot")
# Nothing falls after these: the first is the comparison, the last is survived.
NOT_GENTLE = ("power-cut", "reply-gap")


def key(case: dict) -> str:
    return json.dumps(case, sort_keys=True)


def is_valid(one: dict) -> bool:
    """Whether the trial's premise was met: the machine ran the simulator, and the robot stood when the failure began."""
    return not is_delayed(one) and not fell_before(one)


def is_delayed(one: dict) -> bool:
    """Whether the machine delayed the simulator for too long: it says nothing about the robot."""
    return not one["told"]["valid"]


def fell_before(one: dict) -> bool:
    """Whether the simulator ran, and the robot did not stand when the failure began: it fell by itself."""
    told = one["told"]
    return told["valid"] and not told["stood"] and told["failure"] != "none"


def page(trials: list[dict], arguments: list[str], cases: list[dict], beside: str = "") -> str:
    """The claims, and what they stand on."""
    return f"""# A quadruped after each failure

**These claims {"hold" if holds(trials) else "do not hold"}** in every valid trial. All figures: [results](../../bench/quad/results.md).

{claims(trials)}
{made(trials, arguments, cases)}

{repeated(trials)}

{damping(trials)}

## Staying up, in real time

Trotting, without a failure; median / worst run. *Beyond the wire*: the cycle less the time of the bus. {beyond(trials, beside)}

{steady(trials, STEADY_BRIEFLY)}"""


def results(trials: list[dict], arguments: list[str], cases: list[dict], beside: str = "") -> str:
    """Every figure."""
    return f"""# A quadruped after each failure: results

{made(trials, arguments, cases)} What is claimed of it:
[the page](../../docs/proof/quad.md). Each table counts invalid trials.

## Every failure

- *Stood*: the robot stood on its feet, and its servos followed, until the failure.
- *Right*: the servos damped in time, and none followed a setpoint again; only those timed out that must, after a killed or stopped host not before
  100 ms; the host's first cause is the injected one. A second host reported the servos' time-outs without clearing them, or with `--clear`
  stood up again.
- *Damped*: when the last servo stopped following its setpoints, on the simulated clock.
- *Invalid*: the machine delayed the simulator. *Fell before*: the robot did not stand when the failure began, and why.
- *Clock*: virtual trials run at 1 kHz, standing and trotting; live ones at 400 Hz, trotting{at_once(trials)}.

{failures(trials)}
{falls(trials)}
## Staying up, in real time

Trotting, without a failure; median and worst of the runs. *Beyond the wire* is the cycle, from the host's wake to its end, less the time from the first
command to the last reply of the bus that ends last. *Held up* is how long the simulated clock waited for the simulator; the host's times are on that
clock. {beyond(trials, beside)}

{steady(trials)}
{recorded([one for one in trials if one["case"]["kind"] == "recorded"])}"""


def repeated(trials: list[dict]) -> str:
    """Invalid trials: the machine's apart from the robot's."""
    delayed, fell = sum(map(is_delayed, trials)), [one for one in trials if fell_before(one)]
    return f"""A trial is invalid, and was repeated, if the machine delayed the simulator for more than 10 % of the run ({delayed} of {len(trials)}), or if the
robot did not stand when the failure began ({of_robots(fell)})."""


def of_robots(fell: list[dict]) -> str:
    """How many, and why."""
    return f"{len(fell)}: {causes(fell)}" if fell else "0"


def made(trials: list[dict], arguments: list[str], cases: list[dict]) -> str:
    command = shlex.join(["bench/quad/run", *arguments])
    dates = sorted({one["when"] for one in trials})
    return f"""Made by `{command}` on {" and ".join(dates)}: {machine()}. {besides(trials, cases)}Do not edit. Terms and robot:
[the workload's page](../../workloads/quad/README.md)."""


def besides(trials: list[dict], cases: list[dict]) -> str:
    """Trials that were kept, and that these arguments do not ask for."""
    asked = {key(case) for case in cases}
    others = sum(key(one["case"]) not in asked for one in trials)
    return f"{others} of the {len(trials)} trials were kept from runs with other arguments. " if others else ""


def recorded(trials: list[dict]) -> str:
    if not trials:
        return "Not measured here: the cycle, phase by phase, as `taut record` and `taut explain` have it.\n"
    return f"""## The cycle, recorded

12 servos on 4 simulated buses, commanded and queried with the inertial unit, trotting, recorded with `taut record`. The wire takes 560 µs.

{"".join(cycle(one) for one in trials)}"""


def holds(trials: list[dict]) -> bool:
    valid = [one for one in trials if is_valid(one)]
    unmet = {key(one["case"]) for one in trials} - {key(one["case"]) for one in valid}
    return not unmet and all(one["told"]["right"] and is_gentle(one, trials) for one in valid)


def of(trials: list[dict], kind: str, **wanted: object) -> list[dict]:
    """Valid trials of a kind."""
    cases = [one for one in trials if one["case"]["kind"] == kind and is_valid(one)]
    return [one for one in cases if all(one["case"].get(name) == value for name, value in wanted.items())]


def impact(one: dict) -> float:
    """A body that never touched the ground has reached it at 0."""
    return (one["told"]["fall"] or {}).get("impact_m_s") or 0.0


def drop(trials: list[dict], gait: str) -> float:
    return statistics.median([impact(one) for one in of(trials, "virtual", failure="power-cut", gait=gait)] or [0.0])


def is_gentle(one: dict, trials: list[dict]) -> bool:
    name = one["told"]["failure"]
    return name == "none" or name in NOT_GENTLE or impact(one) <= GENTLE * drop(trials, one["case"]["gait"])


def claims(trials: list[dict]) -> str:
    """Each claim with the trials that it stands on."""
    failed = [one for one in trials if one["case"].get("failure", "power-cut") != "power-cut" and is_valid(one)]
    landed = [one for one in failed if one["case"]["failure"] not in NOT_GENTLE]
    up = of(trials, "steady")
    rows = [
        [
            "After each failure all servos that can still damp do so in time, and the host names the right first cause",
            counted([one["told"]["right"] for one in failed]),
        ],
        [
            f"The body reaches the ground at no more than {GENTLE:.0%} of the speed of a robot that drops all power",
            counted([is_gentle(one, trials) for one in landed]),
        ],
        ["Without a failure the robot stays up", counted([one["told"]["stood"] for one in up])],
    ]
    return table(["claim", "trials"], rows)


def counted(each: list[bool]) -> str:
    return f"{sum(each)} of {len(each)}" + ("" if all(each) else " **missed**")


def damping(trials: list[dict]) -> str:
    """Over the failures and clocks; a host that is started again damps as one that is not."""
    medians, shares = [], []
    names = [one["case"]["failure"] for one in trials if not one["case"].get("clear") and "failure" in one["case"]]
    for name in dict.fromkeys(names):
        if name in NOT_GENTLE:
            continue
        for kind in ("virtual", "live"):
            valid = [one for one in of(trials, kind, failure=name) if not one["case"].get("clear")]
            if found := [1e3 * s for one in valid if (s := one["told"]["fall"]["damped_after_s"]) is not None]:
                medians.append(statistics.median(found))
            for gait in GAITS:
                speeds = [impact(one) for one in valid if one["case"]["gait"] == gait]
                if speeds and (dropped := drop(trials, gait)):
                    shares.append(statistics.median(speeds) / dropped)
    if not medians or not shares:
        return "When servos damped was not measured here."
    return f"""The last servo stopped following its setpoints after {min(medians):.1f} to {max(medians):.1f} ms of the simulated clock (medians of a failure, at 1 kHz and live at 400 Hz).
The body reached the ground at {min(shares):.0%} to {max(shares):.0%} of the drop's speed (medians of a failure, clock and gait)."""


def damped(valid: list[dict]) -> str:
    """Median and worst, ms."""
    found = sorted(1e3 * s for one in valid if (s := one["told"]["fall"]["damped_after_s"]) is not None)
    return f"{statistics.median(found):.1f} / {found[-1]:.1f}" if found else "–"


def failures(trials: list[dict]) -> str:
    rows = []
    groups = dict.fromkeys(
        (one["case"]["kind"], one["case"]["failure"], one["case"].get("clear", False))
        for one in trials
        if one["case"].get("failure", "power-cut") != "power-cut"
    )
    for kind, name, clear in groups:
        every = [one for one in trials if one["case"]["kind"] == kind and one["case"].get("failure") == name]
        every = [one for one in every if one["case"].get("clear", False) == clear]
        valid = [one for one in every if is_valid(one)]
        gentle = "–" if name in NOT_GENTLE else f"{sum(is_gentle(one, trials) for one in valid)} of {len(valid)}"
        rows.append(
            [
                name + (", cleared" if clear else ""),
                kind,
                f"{sum(one['told']['stood'] for one in valid)} of {len(valid)}",
                f"{sum(one['told']['right'] for one in valid)} of {len(valid)}",
                damped(valid),
                gentle,
                causes(valid),
                str(sum(map(is_delayed, every))),
                of_robots([one for one in every if fell_before(one)]),
            ]
        )
    head = ["", "clock", "stood", "right", "damped ms: median / max", "gentle", CAUSE, "invalid", "fell before"]
    return table(head, rows)


def causes(trials: list[dict]) -> str:
    """What hosts said, and a second one where there was one; servos by their kind."""
    counted: Counter[str] = Counter()
    for one in trials:
        told = one["told"]
        host = told["host"] or {"cause": None, "refused": None}
        second = told["second_host"]
        said = host["refused"] or host["cause"] or ("none" if told["host"] else "killed")
        if second:
            said += "; second host: " + (second["refused"] or second["cause"] or "stood up").split(";")[0]
        counted[" ".join("N" if word.isdigit() else word for word in said.split())] += 1
    return ", ".join(f"{said} ({n})" for said, n in counted.most_common()) or "–"


def falls(trials: list[dict]) -> str:
    rows = []
    for gait in GAITS:
        speed = drop(trials, gait)
        load = statistics.median([peak(one) for one in of(trials, "virtual", failure="power-cut", gait=gait)] or [0.0])
        for kind in ("virtual", "live"):
            names = dict.fromkeys(one["case"]["failure"] for one in of(trials, kind, gait=gait))
            for name in names:
                if name == "reply-gap":
                    continue
                those = [one for one in of(trials, kind, failure=name, gait=gait) if not one["case"].get("clear")]
                down = [s for one in those if (s := one["told"]["fall"]["down_after_s"]) is not None]
                fall = [one["told"]["fall"] for one in those]
                rows.append(
                    [
                        f"{name}, {gait}",
                        kind,
                        f"{sum(one['told']['stood'] for one in those)} of {len(those)}",
                        causes(those),
                        pair([impact(one) for one in those], 2),
                        ratio(statistics.median(impact(one) for one in those), speed),
                        pair([peak(one) for one in those], 1),
                        ratio(statistics.median(peak(one) for one in those), load),
                        f"{statistics.median(down):.2f}" if down else "–",
                        f"{max(one['fastest_joint_rad_s'] for one in fall):.0f}",
                        " / ".join(f"{max(one[f'{when}_up_m_s'] for one in fall):.2f}" for when in UPWARD),
                        f"{1e3 * max(one['damped_rise_m'] for one in fall):.0f}",
                        f"{max(one['energy_rise_j'] for one in fall):.2f}",
                    ]
                )
    head = ["", "clock", "stood", CAUSE, "impact m/s", "of a drop", "load", "of a drop", "down after s", "joint rad/s"]
    head += [f"up m/s: {' / '.join(UPWARD)}", "rise mm", "energy rise J"]
    return f"""Median and worst trial:

- *Impact*: the body's downward speed when anything but a foot first touches the ground; 0 where nothing did within 2.5 s.
- *Load*: the largest force of the ground on everything but the feet, in body weights ({WEIGHT_N} N). It depends on how soft the ground is: compare loads
  only with each other.
- *Of a drop*: the ratio of medians to those of a virtual `power-cut` in the same gait.
- *Up*: the body's speed upward in the gait's last period before the failure, until all servos damp, and from then on.
- *Rise*: how far the body ever was above its height when the servos damped.

{table(head, rows)}"""


# The body's speed upward in the gait's last period before the failure, until all servos damp, and from then on.
UPWARD = ("usual", "following", "damped")


def at_once(trials: list[dict]) -> str:
    most = max((one["case"].get("at_once", 1) for one in trials if one["case"]["kind"] == "live"), default=1)
    return f", {most} robots at once" if most > 1 else ""


def beyond(trials: list[dict], beside: str) -> str:
    """Whether the goal is met, which is one of an idle machine."""
    alone = of(trials, "steady", load="idle", at_once=1)
    found = [ns / 1e3 for one in alone if (ns := one["told"]["host"]["phases"]["beyond_wire"]["p99_ns"]) is not None]
    if beside or not found:
        return f"**Not shown**: the goal of {BEYOND_WIRE_US} µs at p99 on an idle machine, because the machine was not idle."
    met = "met" if max(found) <= BEYOND_WIRE_US else "**missed**"
    return f"The goal of {BEYOND_WIRE_US} µs at p99 on an idle machine is {met}: {max(found):.1f} µs in the worst run."


LOADS = ("rate", "load", "at_once")
STEADY_BRIEFLY = ("", "stood", "cause", "cycles skipped", "replies missing", "beyond the wire, p99 µs")


def steady(trials: list[dict], columns: tuple[str, ...] = ()) -> str:
    """All columns, or these."""
    rows = []
    runs = [one for one in trials if one["case"]["kind"] == "steady"]
    for group in dict.fromkeys(tuple(one["case"][name] for name in LOADS) for one in runs):
        every = [one for one in runs if tuple(one["case"][name] for name in LOADS) == group]
        rate, load, at_once = group
        valid = [one["told"] for one in every if is_valid(one)]
        if not valid:
            continue
        hosts, slips = [told["host"] for told in valid], [told["simulator"]["slips"] for told in valid]
        said = Counter(told["reason"] or "none" for told in valid)
        beyond = [ns / 1e3 for host in hosts if (ns := host["phases"]["beyond_wire"]["p99_ns"]) is not None]
        late = [ns / 1e3 for told in valid if (ns := told["simulator"]["replies_late"]["p99_ns"]) is not None]
        rows.append(
            [
                f"{rate} Hz"
                + (f", {at_once} robots at once" if at_once > 1 else "")
                + (f", and a {load}" if load != "idle" else ""),
                f"{statistics.median(told['duration_s'] for told in valid):g}",
                f"{sum(told['stood'] for told in valid)} of {len(valid)}",
                ", ".join(f"{cause} ({n})" for cause, n in said.most_common()),
                f"{sum(host['skipped'] for host in hosts):,} of {sum(host['cycles'] for host in hosts):,}",
                f"{sum(host['missing'] for host in hosts):,} of {sum(host['expected'] for host in hosts):,}",
                pair(beyond, 1) if beyond else "–",
                pair(late, 0) if late else "–",
                pair([1e3 * one["total_s"] for one in slips], 0),
                f"{1e3 * max(one['max_s'] for one in slips):.1f}",
                str(len(every) - len(valid)),
            ]
        )
    head = ["", "s", "stood", "cause", "cycles skipped", "replies missing", "beyond the wire, p99 µs"]
    head += ["replies late, p99 µs", "held up ms", "longest ms", "invalid"]
    kept = [at for at, name in enumerate(head) if not columns or name in columns]
    rows = [[row[at] for at in kept] for row in [head, *rows]]
    return table(rows[0], rows[1:])


def cycle(one: dict) -> str:
    told, explained = one["told"], one["told"]["explained"]
    host, chain, slips = told["host"], (explained["chains"] or [{}])[0], told["simulator"]["slips"]
    ranks = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"]
    rows = [
        [phase, *("–" if (ns := host["phases"][phase][rank]) is None else f"{ns / 1e3:,.1f}" for rank in ranks)]
        for phase in ("wait", "control", "send", "imu", "receive", "parse", "cycle", "beyond_wire")
    ]
    shares = [f"{c['cause']} {c['detail']}".strip() + f" {c['tail_share']:.0%}" for c in chain.get("causes", [])[:5]]
    followed = [
        f"{t['name']} {t['p50']:.1f}° / {t['p99']:.1f}°" for t in explained["tracking"] if t["name"].startswith("leg1.")
    ]
    return f"""### {one["case"]["rate"]} Hz

The robot {"stood" if told["stood"] else "did not stand"}; cause: {told["reason"] or "none"}. {host["cycles"]:,} cycles, {host["skipped"]} skipped;
{host["missing"]} of {host["expected"]:,} replies missing; the simulator was held up {slips["count"]} times, {1e3 * slips["total_s"]:.1f} ms together.

{table(["µs", "p50", "p90", "p99", "p99.9", "max"], rows)}
`taut explain`: {explained["headline"]} The tail's causes: {", ".join(shares) or "not enough"}. Actual from commanded, p50 / p99: {", ".join(followed)}.

"""


def peak(one: dict) -> float:
    return one["told"]["fall"]["peak_body_n"] / WEIGHT_N


def pair(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} / {max(values):.{digits}f}"


def ratio(value: float, whole: float) -> str:
    return f"{value / whole:.0%}" if whole else "–"


# Columns of words.
CAUSE = "first cause"
WORDS = ("clock", CAUSE, "cause", "fell before")


def table(head: list[str], rows: list[list[str]]) -> str:
    marks = ["---" if at == 0 or name in WORDS else "---:" for at, name in enumerate(head)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [head, marks, *rows])


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    name = names[0] if names else platform.machine()
    return f"{name}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}"
