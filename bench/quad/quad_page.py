"""What `bench/quad/run` writes."""

import os
import platform
import shlex
import statistics
from datetime import UTC, datetime
from pathlib import Path

from premise import Repeated

from workloads.quad.failures import failure

WEIGHT_N = 98.1
# A robot that lowers itself hits the ground at less than this share of a dropped one's speed.
GENTLE = 0.5
# Until all servos damp, s: k cycles and two to be told, or the servos' own time-out and a step.
DAMPED_S = {
    "host-killed": 0.102,
    "host-hung": 0.102,
    "bus-cut": 0.102,
    "servo-overheat": 0.005,
    "replies-lost": 0.010,
}
GAITS = ("stand", "trot")
# The body's speed upward in the gait's last period before the failure, until all servos damp, and from then on.
UPWARD = ("usual", "following", "damped")


def page(fallen: list[dict], lived: list[Repeated], steady: list[Repeated], arguments: list[str], took_s: float) -> str:
    command = shlex.join(["bench/quad/run", *arguments])
    verdict = "holds" if holds(fallen) else "does not hold"
    return f"""# Proof: how the quadruped comes down

Made by `{command}` on {datetime.now(UTC).date()} in {took_s / 60:.0f} minutes: {machine()}. Do not edit. What the words mean, and what the
robot is: [the workload's page](../workloads/quad/README.md).

Claimed: whatever fails, all servos that can still damp do so in time, the first cause is named, and the body reaches the ground at no
more than {GENTLE:.0%} of the speed of a robot that drops all power, in every trial. **In virtual time it {verdict}.** {live_verdict(fallen, lived)}

A trial counts only where the failure met a robot that stood and followed its host (*stood*: the body at 18 cm or more, no servo let down).
Another is invalid: it is counted here, and repeated, up to five attempts.

## Every failure, in virtual time

At 1 kHz, standing and trotting, {len(of(fallen, "power-cut", "stand"))} trials each: moments spread over one period of the gait, servos and buses picked by the trial's
number. *Impact* is the body's downward speed when anything but a foot first touches the ground; *load* the largest force of the ground on
everything but the feet, in body weights ({WEIGHT_N} N). Median, and the worst trial; *of a drop* is the ratio of medians. *Damped* is when the
last servo let go of its setpoints.

{falls(fallen)}
A dropped robot's servos know of nothing, so nothing is damped. Forces depend on how soft the ground is; compare them with
each other.

{watchdog(fallen)}
*Upward* is the body's speed: *usual* in the gait's last period before the failure, *following* until all servos damp, *damped* from then on; *rise* is how
far it ever was above where it was when they damped. Until they damp, servos stand at their last setpoint; what goes up then is the gait's own bounce.
Once they damp nothing drives the body up: the small speed left is what it has, and the ground's softness gives back, when it lands.

{real_time(fallen, lived, steady)}"""


def live_verdict(fallen: list[dict], lived: list[Repeated]) -> str:
    if not lived:
        return "In real time it was not measured."
    valid = [one for one in lived if one.told]
    good = sum(is_gentle(one.told, fallen) and is_right(one.told) for one in valid)
    invalid = sum(len(one.invalid) for one in lived)
    verdict = "holds" if holds_live(fallen, lived) else "is not shown"
    return f"**In real time it {verdict}**: in {good} of {len(lived)} cases, {len(lived) - len(valid)} without a valid trial, {invalid} trials invalid."


def real_time(fallen: list[dict], lived: list[Repeated], steady: list[Repeated]) -> str:
    if not lived:
        return "Not measured here: hosts killed and hung in real time, and the cycle's times; leave `--virtual` away.\n"
    return f"""## Host killed and hung, in real time

`kill -9` and `SIGSTOP` for a second, at 400 Hz; three processes on this machine's CPUs.

{lives(fallen, lived)}
{reasons(lived)}## The cycle, in real time

12 servos on 4 simulated buses behind UDP, commanded and queried with the inertial unit; recorded with `taut record`. A recording counts where the
robot trots to its end. The wire alone takes 560 µs after the commands. What the engine takes beyond the wire where no process boundary is between: [bus-proof.md](bus-proof.md).

{"".join(cycle(one) for one in steady)}"""


def holds(fallen: list[dict]) -> bool:
    failures = [one for one in fallen if one["failure"] != "power-cut"]
    return all(one["stood"] for one in fallen) and all(is_gentle(one, fallen) and is_right(one) for one in failures)


def holds_live(fallen: list[dict], lived: list[Repeated]) -> bool:
    """Every case has a valid trial, and that is gentle and right."""
    return all(one.told is not None and is_gentle(one.told, fallen) and is_right(one.told) for one in lived)


def trotted(steady: list[Repeated]) -> bool:
    return all(one.told is not None for one in steady)


def of(fallen: list[dict], name: str, gait: str) -> list[dict]:
    return [one for one in fallen if one["failure"] == name and one["gait"] == gait]


def is_gentle(one: dict, fallen: list[dict]) -> bool:
    dropped = statistics.median(impacts(of(fallen, "power-cut", one.get("gait", "trot"))))
    impact = one["fall"]["impact_m_s"]
    return impact is None or impact <= GENTLE * dropped


def is_right(one: dict) -> bool:
    """Damped in time, and with the right first cause."""
    name = one["failure"]
    if name == "power-cut":
        return True
    after_s = one["fall"]["damped_after_s"]
    return after_s is not None and after_s <= DAMPED_S[name] and named(one)


def named(one: dict) -> bool:
    """Whether the host's first cause is what was done; a host that died names none."""
    if "second_host" in one:
        # In real time the host that is started after the dead one finds what its servos did.
        return "is in mode timeout from an earlier run" in (one["second_host"]["refused"] or "")
    done, cause = failure(one["failure"], 0.0, one["seed"]), one["host"]["cause"]
    if "physics" in one:
        # The one that hung finds it, or its own gap.
        return cause is not None and ("timed out" in cause or "gap" in cause)
    if done.hot_servo is not None:
        return cause == f"servo {done.hot_servo + 1} reports a fault"
    bus = done.cut_bus if done.cut_bus is not None else done.deaf_bus
    if bus is not None:
        return cause in [f"servo {3 * bus + n} does not answer" for n in (1, 2, 3)]
    return cause is None


def impacts(trials: list[dict]) -> list[float]:
    """A body that never touched the ground has hit it at 0."""
    return [one["fall"]["impact_m_s"] or 0.0 for one in trials]


def falls(fallen: list[dict]) -> str:
    rows = []
    for gait in GAITS:
        drop = of(fallen, "power-cut", gait)
        speed, load = statistics.median(impacts(drop)), statistics.median(peaks(drop))
        for name in dict.fromkeys(one["failure"] for one in fallen):
            trials = of(fallen, name, gait)
            damped = [1e3 * s for one in trials if (s := one["fall"]["damped_after_s"]) is not None]
            down = [one["fall"]["down_after_s"] for one in trials if one["fall"]["down_after_s"] is not None]
            rows.append(
                [
                    f"{name}, {gait}",
                    str(len(trials)),
                    pair(impacts(trials), 2),
                    ratio(statistics.median(impacts(trials)), speed),
                    pair(peaks(trials), 1),
                    ratio(statistics.median(peaks(trials)), load),
                    f"{statistics.median(down):.2f}" if down else "–",
                    pair(damped, 0) if damped else "–",
                    f"{max(one['fall']['fastest_joint_rad_s'] for one in trials):.0f}",
                ]
            )
    head = ["", "n", "impact m/s", "of a drop", "load", "of a drop", "down after s", "damped ms", "joint rad/s"]
    return table(head, rows)


def watchdog(fallen: list[dict]) -> str:
    rows = []
    for name in dict.fromkeys(one["failure"] for one in fallen if one["failure"] != "power-cut"):
        trials = [one for one in fallen if one["failure"] == name]
        after = sorted(1e3 * (one["fall"]["damped_after_s"] or float("inf")) for one in trials)
        rows.append(
            [
                name,
                f"{sum(map(is_right, trials))} of {len(trials)}",
                f"{after[len(after) // 2]:.1f} / {after[-1]:.1f}, at most {1e3 * DAMPED_S[name]:.0f}",
                f"{sum(map(named, trials))} of {len(trials)}",
                f"{sum(is_gentle(one, fallen) for one in trials)} of {len(trials)}",
                " / ".join(f"{max(one['fall'][f'{when}_up_m_s'] for one in trials):.2f}" for when in UPWARD),
                f"{1e3 * max(one['fall']['damped_rise_m'] for one in trials):.0f}",
                f"{max(one['fall']['energy_rise_j'] for one in trials):.2f}",
            ]
        )
    upward = f"up m/s: {' / '.join(UPWARD)}"
    head = ["", "right", "damped ms: p50 / max", "first cause", "gentle", upward, "rise mm", "energy rise J"]
    return table(head, rows)


def lives(fallen: list[dict], lived: list[Repeated]) -> str:
    drop = statistics.median(impacts(of(fallen, "power-cut", "trot")))
    rows = []
    for outcome in lived:
        one, attempts = outcome.told, f"{len(outcome.invalid)} of {outcome.attempts}"
        if one is None:
            rows.append([outcome.what, attempts, "no", *["–"] * 6, "not shown"])
            continue
        fall, words = one["fall"], one.get("second_host") or one["host"]
        said = words["refused"] or words["cause"] or "nothing"
        rows.append(
            [
                one["failure"],
                attempts,
                f"yes, {100 * fall['before_height_m']:.0f} cm",
                f"{fall['impact_m_s'] or 0.0:.2f}",
                ratio(fall["impact_m_s"] or 0.0, drop),
                f"{fall['peak_body_n'] / WEIGHT_N:.1f}",
                "–" if fall["damped_after_s"] is None else f"{1e3 * fall['damped_after_s']:.0f}",
                f"{one['physics']['skipped']} of {one['physics']['steps']}",
                said.split(";")[0],
                "yes" if is_gentle(one, fallen) and is_right(one) else "no",
            ]
        )
    limit = f"damped ms (at most {1e3 * DAMPED_S['host-killed']:.0f})"
    head = [
        "",
        "invalid",
        "stood",
        "impact m/s",
        "of a drop",
        "load",
        limit,
        "physics late",
        "the host, afterwards",
        "as claimed",
    ]
    return table(head, rows)


def reasons(outcomes: list[Repeated]) -> str:
    """Why trials were invalid, each reason once."""
    all_of_them = [why for one in outcomes for why in one.invalid]
    lines = [f"- {all_of_them.count(why)} x {why}" for why in dict.fromkeys(all_of_them)]
    return "Invalid trials:\n\n" + "\n".join(lines) + "\n\n" if lines else ""


def cycle(outcome: Repeated) -> str:
    told = outcome.told
    if told is None:
        return f"""### {outcome.what}

**Not shown**: in {outcome.attempts} of {outcome.attempts} recordings the robot did not trot to the end, so that there is no cycle of a trotting robot.

{reasons([outcome])}"""
    explained = told["explained"]
    host, chain = told["host"], (explained["chains"] or [{}])[0]
    ranks = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"]
    rows = [
        [phase, *("–" if (ns := host["phases"][phase][rank]) is None else f"{ns / 1e3:,.1f}" for rank in ranks)]
        for phase in ("wait", "control", "send", "imu", "receive", "parse", "cycle")
    ]
    shares = [f"{c['cause']} {c['detail']}".strip() + f" {c['tail_share']:.0%}" for c in chain.get("causes", [])[:5]]
    followed = [
        f"{t['name']} {t['p50']:.1f}° / {t['p99']:.1f}°" for t in explained["tracking"] if t["name"].startswith("leg1.")
    ]
    return f"""### {outcome.what}

Stood to the end: yes, the body at {100 * told["height_m"]:.0f} cm; recordings before it in which it did not: {len(outcome.invalid)}.
{host["cycles"]:,} cycles, {host["skipped"]} skipped; {host["missing"]} of {host["expected"]:,} replies missing; physics late in {told["physics"]["skipped"]:,} of
{told["physics"]["steps"]:,} steps.

{table(["µs", "p50", "p90", "p99", "p99.9", "max"], rows)}
{reasons([outcome])}`taut explain`: {explained["headline"]} The tail's causes: {", ".join(shares) or "not enough"}. Actual from commanded, p50 / p99: {", ".join(followed)}.

"""


def peaks(trials: list[dict]) -> list[float]:
    return [one["fall"]["peak_body_n"] / WEIGHT_N for one in trials]


def pair(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} / {max(values):.{digits}f}"


def ratio(value: float, whole: float) -> str:
    return f"{value / whole:.0%}" if whole else "–"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    name = names[0] if names else platform.machine()
    return f"{name}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}"
