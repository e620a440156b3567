"""docs/proof/unmodified.md, each part against its limit, and bench/unmodified/results.md, which has their tables."""

from __future__ import annotations

import datetime
import os
import platform
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from crowd import LIMIT as CROWD_LIMIT
from crowd import THREADS, Crowd
from cycles import Cycles
from graph import Graph
from injected import Kind, Quota
from programs import Found
from replies import MEANS, Replies
from robots import Robot
from rtapp import Task

# Of the activations to which something was done.
LIMIT = 0.97


@dataclass
class Results:
    cycles: list[Cycles] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    replies: list[Replies] = field(default_factory=list)
    graph: Graph | None = None
    crowd: Crowd | None = None
    sleepers: list[Found] = field(default_factory=list)
    programs: list[Found] = field(default_factory=list)
    without_loops: list[Found] = field(default_factory=list)
    robots: list[Robot] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        found = [*self.sleepers, *self.programs, *self.without_loops]
        checked = [*self.cycles, *self.tasks, *self.replies, *filter(None, [self.graph, self.crowd]), *found]
        return all(one.holds for one in checked) and self.share_right >= LIMIT

    @property
    def separable(self) -> list[Kind]:
        """Kinds that the stamps of the same recordings show: what they do not, this machine's load hid."""
        return [kind for kind in self.kinds if 2 * kind.stamped_right >= kind.stamped_injected]

    @property
    def share_right(self) -> float:
        return share(self.separable)


def share(kinds: list[Kind]) -> float:
    """Of all injections, those whose cause is the top one."""
    return sum(kind.right for kind in kinds) / max(1, sum(kind.injected for kind in kinds))


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def word(holds: bool | None) -> str:
    return "yes" if holds else "**no**"


def made(command: str) -> str:
    machine = f"{os.cpu_count()} CPUs, Linux {platform.release()}, load average {os.getloadavg()[2]:.1f}"
    return f"Made by `{command}` on {datetime.date.today()}: {machine}, under other load. Do not edit."


# What the page has by hand is kept when it is made again.
BY_HAND = re.compile(r"<!-- by hand -->.*<!-- end of by hand -->\n", re.DOTALL)


def by_hand(path: Path) -> str:
    found = BY_HAND.search(path.read_text()) if path.exists() else None
    return found[0] if found else ""


def page(of: Results, command: str, by_hand: str) -> str:
    """Each part in a row."""
    left_out = sum(k.disturbed for k in of.kinds)
    messages = left_out + sum(k.messages for k in of.kinds)
    checked = [
        [
            f"each cycle that cyclictest logs, {len(of.cycles)} runs",
            f"{sum(c.matched for c in of.cycles):,} of {sum(c.printed for c in of.cycles):,} matched; difference: median at most "
            f"{max(abs(c.median()) for c in of.cycles):.2f} µs, p99 {max(c.quantile(0.99) for c in of.cycles):.2f} µs",
            "all; 5 µs; 20 µs",
            verdict(all(c.holds for c in of.cycles)),
        ],
        [
            f"rt-app's log, {len(of.tasks)} tasks of odd periods (d: SCHED_DEADLINE)",
            f"{sum(t.holds for t in of.tasks)} of {len(of.tasks)}"
            + "".join(
                f"; {t.name}: median {t.median():.2f} µs, p99 {t.quantile(0.99):.2f} µs"
                for t in of.tasks
                if not t.holds
            ),
            "all; 5 µs; 20 µs",
            verdict(all(t.holds for t in of.tasks)),
        ],
        [
            "hops that rt-tests print",
            f"{sum(r.holds for r in of.replies)} of {len(of.replies)} programs",
            "10 µs; largest + 20 µs or 5 %",
            verdict(all(r.holds for r in of.replies)),
        ],
        *(
            [
                [
                    "cycles that pw-profiler prints of PipeWire",
                    f"{of.graph.within} of {len(of.graph.printed)} within the recording's two moments",
                    "95 %, ± 5 µs",
                    verdict(of.graph.holds),
                ]
            ]
            if of.graph
            else []
        ),
        *(
            [
                what,
                f"{sum(bool(f.holds) for f in found)} of {len(found)} right",
                "all",
                verdict(all(f.holds for f in found)),
            ]
            for what, found in (
                ("kinds of sleep of stress-ng", of.sleepers),
                ("programs from Debian and PyPI", of.programs),
                ("programs without a loop", of.without_loops),
            )
        ),
        *(
            [
                [
                    f"a robot beside {THREADS} other threads",
                    f"{of.crowd.share_of_a_core:.1%} of a CPU for the recorder",
                    f"{CROWD_LIMIT:.0%}; only its loops",
                    verdict(of.crowd.holds),
                ]
            ]
            if of.crowd
            else []
        ),
        [
            "top cause, with the injector of bench/causes",
            f"{of.share_right:.1%} of {sum(k.injected for k in of.separable)} right; {left_out} of {messages} messages left out, which others delayed",
            f"{LIMIT:.0%}",
            verdict(of.share_right >= LIMIT),
        ],
    ]
    parts = [
        "# Proof: unmodified programs\n",
        "Are loops, hops and causes of programs without stamps found? They are compared with what the programs log. "
        f"{sum(row[3] == 'holds' for row in checked)} of {len(checked)} limits hold. All figures: [results](../../bench/unmodified/results.md).\n",
        f"{made(command)} How it is found: [unmodified.md](../explanation/unmodified.md).\n",
        table(["compared", "measured", "limit", ""], checked),
        *(
            f"{robot.name}, recorded once and analysed with its stamps and without them. First cause of the tail: with its stamps {robot.stamped_top}, "
            f"without them {robot.bare_top}.\n"
            for robot in of.robots
        ),
        *([by_hand] if by_hand else []),
        "## What was not measured\n",
        NOT_MEASURED,
    ]
    return "\n".join(parts)


NOT_MEASURED = "workloads/quad and reach, and a moteus over a pty.\n"


def verdict(holds: bool | None) -> str:
    return "holds" if holds else "**missed**"


def every_table(of: Results, command: str) -> str:
    """bench/unmodified/results.md."""
    parts = [
        "# Proof: unmodified programs, results\n",
        f"{made(command)} In short: [the page](../../docs/proof/unmodified.md).\n",
        "## Each cycle against cyclictest's own log\n",
        "`cyclictest -q -v -N`, 2000 cycles, recorded. *Difference*: taut's release latency less the printed one. The nth "
        "activation is held against the nth cycle, so that one too many or too few would show in all that follow. "
        "A cycle is printed only if cyclictest's main thread comes to it in time. The first thread that is done ends "
        "all. Limits: all printed cycles matched, |median| ≤ 5 µs, p99 of the difference without sign ≤ 20 µs.\n",
        table(
            ["run", "printed", "matched", "activations found", "median, µs", "p99, µs", "holds"],
            [
                [
                    c.name,
                    str(c.printed),
                    str(c.matched),
                    str(c.found),
                    f"{c.median():.2f}",
                    f"{c.quantile(0.99):.2f}",
                    word(c.holds),
                ]
                for c in of.cycles
            ],
        ),
        "## Odd periods: rt-app\n",
        "Three tasks with absolute timers, and one (d) of SCHED_DEADLINE that ends its runs by `sched_yield`. *After a wait*: "
        "runs that began with a wait's return; the others began without, since the one before was late, and the first one of d. "
        "*Difference*: the logged begin of a run less taut's start of the activation. Limits: the period exact, all matched, "
        "|median| ≤ 5 µs, p99 ≤ 20 µs.\n",
        table(
            [
                "task",
                "period found, ns",
                "logged runs",
                "after a wait",
                "activations",
                "median, µs",
                "p99, µs",
                "holds",
            ],
            [
                [
                    f"{t.name}, {t.period_ns} ns",
                    str(t.found_period_ns),
                    str(t.logged),
                    str(t.matched),
                    str(t.found),
                    f"{t.median():.2f}",
                    f"{t.quantile(0.99):.2f}",
                    word(t.holds),
                ]
                for t in of.tasks
            ],
        ),
        "## Hops of rt-tests\n",
        "A thread of each program notes the time and wakes another one, which notes it again; at real-time priority, every 2 ms. "
        "Beside least, mean and largest of what they print: from the start of the waking thread's activation until the woken one "
        "runs. Limits: 10 µs; the largest may be no more than 20 µs or 5 % above the printed one, and less if that was the first, whose "
        "waking thread had not been woken itself.\n",
        table(
            ["program", "wakes by", "hops found", "printed, µs", "found, µs", "holds"],
            [
                [
                    r.name,
                    MEANS[r.name],
                    str(r.replies),
                    ", ".join(f"{value:.0f}" for value in r.printed),
                    ", ".join(f"{value:.0f}" for value in r.found),
                    word(r.holds),
                ]
                for r in of.replies
            ],
        ),
        *profiled(of.graph),
        "## Kinds of sleep: stress-ng\n",
        rows(of.sleepers),
        "## Programs from Debian and PyPI\n",
        rows(of.programs),
        "## Programs without a loop\n",
        rows(of.without_loops),
        *(
            [
                f"## Beside {THREADS} other threads\n",
                f"`examples/unprepared/robot.c`, recorded while {THREADS} threads of another program sleep for 20 to 30 ms again and "
                "again. Limits: the recorder takes 3 % of a CPU at most, and all loops are the robot's.\n",
                beside(of.crowd),
            ]
            if of.crowd
            else []
        ),
        "## The injector of bench/causes, its stamps ignored\n",
        f"A loop that sleeps for 4 ms between messages; something is done to a third of them ([causes](../../docs/proof/causes.md)). "
        "What the activation that holds the message is made of, from the message's start to its end, is held against what was done; of "
        f"what comes before, such as a late start, the injector knows nothing. {sum(k.disturbed for k in of.kinds)} messages that others "
        f"delayed by the injector's own account are left out. Top cause right: {share(of.kinds):.1%} of "
        f"{sum(k.injected for k in of.kinds)}; without kinds that the stamps of the same recordings do not show either, since "
        f"the machine was never idle ({', '.join(k.name for k in of.kinds if k not in of.separable) or 'none'}): "
        f"{of.share_right:.1%} of {sum(k.injected for k in of.separable)} (limit {LIMIT:.0%}).\n",
        table(
            ["injected", "messages", "injections", "top cause right", "with stamps", "wrong ones"],
            [
                [
                    k.name,
                    str(k.messages),
                    str(k.injected),
                    str(k.right),
                    f"{k.stamped_right} of {k.stamped_injected}",
                    ", ".join(f"{cause} {n}" for cause, n in k.wrong.items()) or "–",
                ]
                for k in of.kinds
            ],
        ),
        *throttled([kind.quota for kind in of.kinds if kind.quota]),
        "## A stamped robot without its stamps\n",
        "Recorded once, and analysed with its stamps and without them. For each stamped point whose thread taut finds as a "
        "loop: how long after the start of the activation, which is the return of the wait, messages pass it.\n",
    ]
    for robot in of.robots:
        parts += [
            f"**{robot.name}**, loops with their activations:\n",
            *(f"- {loop}" for loop in robot.loops),
            "\nChains with their messages:\n",
            *(f"- {chain}" for chain in robot.chains),
            f"\nFirst cause of the stamped chain's tail: {robot.stamped_top}; of the chain of wakes with fewest messages: "
            f"{robot.bare_top}.\n",
            table(
                ["point", "passes", "after a start", "p50, µs", "p99, µs"],
                [
                    [p.point, str(p.passes), str(p.after_wake), f"{p.p50_us:.0f}", f"{p.p99_us:.0f}"]
                    for p in robot.points
                ],
            ),
        ]
    return "\n".join(parts)


def throttled(quotas: list[Quota]) -> list[str]:
    """What the kernel counts of it."""
    return [
        f"Of `throttled`, the kernel counts {q.counted:.0f} ms for the control group, {q.measured:.0f} ms of it during messages, which is "
        f"what the injector goes by; the causes have {q.found:.0f} ms. A wait for the CPU after the quota's renewal is `preempted`.\n"
        for q in quotas
    ]


def beside(crowd: Crowd) -> str:
    """The part on other threads."""
    return table(
        ["kernel events a second", "recorder, % of a CPU", "loops found", "holds"],
        [[f"{crowd.events_per_s:,.0f}", f"{crowd.share_of_a_core:.1%}", crowd.found, word(crowd.holds)]],
    )


def profiled(graph: Graph | None) -> list[str]:
    """The part on PipeWire."""
    if graph is None:
        return []
    figures = [graph.printed, graph.from_wake, graph.from_start, graph.read]
    medians, most = ([f"{of(values):.0f}" for values in figures] for of in (statistics.median, max))
    return [
        "## A PipeWire graph and pw-profiler\n",
        "A timer of 21.3 ms drives one client, `jack_metro`. How late it is awake, µs: as `pw-profiler` prints it for each cycle, from "
        "the moment that the driver signals it; and in the recording from its wake on, which is later, and from the driver's start "
        "on, which is earlier (a hop of the wake chain). A hop ends when the client's wait returns; the profiler's moment is noted after "
        "the client has read its eventfd too, and an interrupt in between, such as a tick, is part of it: the upper end is where that "
        "call ended. Limit: 95 % of its cycles are found and lie between the two, give or take 5 µs.\n",
        table(
            ["", "cycles", "p50, µs", "largest, µs", "between", "holds"],
            [
                [
                    "printed",
                    f"{len(graph.printed)} of {graph.logged}",
                    medians[0],
                    most[0],
                    str(graph.within),
                    word(graph.holds),
                ],
                ["from the wake", str(len(graph.from_wake)), medians[1], most[1], "", ""],
                ["from the driver's start", str(len(graph.from_start)), medians[2], most[2], "", ""],
                ["the call after it", str(len(graph.read)), medians[3], most[3], "", ""],
            ],
        ),
    ]


def rows(found: list[Found]) -> str:
    return table(["program", "expected", "found", "right"], [[f.name, f.said, f.found, word(f.holds)] for f in found])
