"""An hour of heavy jitter for the right arrangement: frames late, in bunches, joined and cut, and the machine loaded.
Not recorded: an hour of kernel events fills a disk, and what is asked is in the run's own account."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import conditions
import page
import trial
from trial import SILENT, SPLIT

from bench.proof.page import Check, held, machine, table, verdicts

HEAVY = conditions.Condition("heavy jitter", "a heavy wire, 30 hogs that come and go", hogs=30, wire="heavy")
STALE_MS, LAPSE_MS = 50, 100
"""The guard's specification: T_stale and A_max; and the loop's own time on a wire without jitter."""
GUST_S = 60.0
"""Hogs run for a minute, then rest for one."""
LOOK_S = 20.0
"""Of the recording that tells what limits a target that was missed."""


def run(minutes: float, robots: int) -> dict[str, Any]:
    """Robots beside one another share the hour. Raises RuntimeError with a loop's last words if it did not come to its end."""
    duration = str(60 * minutes / robots)
    command = [sys.executable, "-m", "workloads.teleop", "--duration", duration, *SPLIT, "--companions", "all"]
    command += ["--wire", HEAVY.wire, "--json"]
    loops = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(robots)]
    ends = time.monotonic() + 60 * minutes / robots
    # The first minute is calm: all of this has to start.
    is_windy = True
    try:
        while any(loop.poll() is None for loop in loops):
            is_windy = not is_windy
            with conditions.load(HEAVY) if is_windy else contextlib.nullcontext():
                _wait(loops, ends)
        said = [loop.communicate()[0] for loop in loops]
        if not all(said):
            raise RuntimeError(f"the loop gave up with exit code {max(loop.returncode for loop in loops)}, see above")
        return together([json.loads(one) for one in said])
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def together(results: list[dict[str, Any]]) -> dict[str, Any]:
    """One account of several: counts are added, the worst of what is no count."""

    def added(*path: str) -> int:
        found = [functools.reduce(lambda part, key: part.get(key, {}), path, one) for one in results]
        return sum(n for n in found if isinstance(n, int))

    def by_reason(kind: str) -> dict[str, int]:
        reasons = {reason for one in results for reason in one["setpoints"][kind]}
        return {reason: added("setpoints", kind, reason) for reason in sorted(reasons)}

    counters = {name for one in results for name in one["guard"]["counters"]}
    return {
        "ran_s": sum(one["ran_s"] for one in results),
        "setpoints": {
            **{
                name: added("setpoints", name)
                for name in ("produced", "applied", "in_flight", "unexplained", "balances")
            },
            "dropped": by_reason("dropped"),
            "modified": by_reason("modified"),
        },
        "guard": {
            "trips": [trip for one in results for trip in one["guard"]["trips"]],
            "counters": {name: added("guard", "counters", name) for name in sorted(counters)},
            "naive_trips": added("guard", "naive_trips"),
            **{
                name: max(one["guard"][name] for one in results)
                for name in ("ratio_max", "true_ratio_max", "stale_ms", "age_max_ms")
            },
        },
        "stops": [stop for one in results for stop in one["stops"]],
        "holds": added("holds"),
        "heartbeat_lapse_ms": max(one["heartbeat_lapse_ms"] for one in results),
        "jitter": results[0]["simulator"]["FR20"]["jitter"],
        "real_time": min(one["real_time"] for one in results),
        "added_delay_ms": {name: max(one["added_delay_ms"][name] for one in results) for name in ("p50", "max")},
    }


def checks(result: dict[str, Any]) -> list[Check]:
    setpoints, guard = result["setpoints"], result["guard"]
    false = sum(bool(trip["is_false"]) for trip in guard["trips"])
    silent = sum(setpoints["dropped"].get(reason, 0) for reason in SILENT)
    stops = [f"{trip['state']} ({trip['cause']})" for trip in guard["trips"]] + result["stops"]
    stops += [f"{result['holds']} until the guard answered again"] * bool(result["holds"])
    share = delivered(result)
    return [
        Check("false trips of the guard", str(false), "0", false == 0),
        Check("stops of any kind", ", ".join(stops) or "0", "0", not stops),
        Check("silent drops", str(silent), "0", silent == 0),
        Check("delivered or modified", page.percent(share), "≥ 99.9 %", share >= page.DELIVERED_MIN),
        Check("setpoints unexplained", str(setpoints["unexplained"]), "0", setpoints["unexplained"] == 0),
    ]


def settings(result: dict[str, Any]) -> list[Check]:
    """The times with which it ran, against those of the specification (docs/reference/guard.md, workloads/teleop/README.md)."""
    rows = [
        ("the guard's limit of silence, T_stale", result["guard"]["stale_ms"], STALE_MS),
        ("the guard's limit of age, A_max", result["guard"]["age_max_ms"], STALE_MS),
        ("the follower's limit without an answer of the guard", result["heartbeat_lapse_ms"], LAPSE_MS),
    ]
    return [Check(what, f"{ms} ms", f"{limit} ms", ms <= limit) for what, ms, limit in rows]


def delivered(result: dict[str, Any]) -> float:
    """Share of the setpoints that reached the servo, as they were or changed."""
    setpoints = result["setpoints"]
    return float(setpoints["applied"]) / max(1, setpoints["produced"] - setpoints["in_flight"])


def look(taut: str, folder: Path) -> trial.Trial | None:
    """Some more seconds, recorded, for the causes. Nothing if the arm did not come to move."""
    try:
        return trial.run("right", HEAVY, LOOK_S, taut, folder / "heavy-right.mcap")
    except RuntimeError as failure:
        print(f"no recording of the same for taut explain: {failure}", file=sys.stderr)
        return None


def text(result: dict[str, Any], command: str) -> str:
    """The page."""
    jitter, checked = result["jitter"], [*settings(result), *checks(result)]
    parts = [
        "# An hour of heavy jitter without a false trip",
        held(checked),
        made_by(result, command) + " All figures: [results](../../bench/teleop/results-hour.md).",
        f"The fixed arrangement ([its proof](teleop.md)) on a wire that delays every frame by {jitter['delay_mean_ms']:.0f} ms on "
        f"average (exponential), stands still {jitter['stalls_hz']:g} times a second for {jitter['stall_ms'][0]:.0f} to "
        f"{jitter['stall_ms'][1]:.0f} ms, and joins and cuts frames; 30 hogs run for a minute and rest for one. The guard's time-outs are "
        "longer than specified: with the specified ones the arm would stop, since such silence is normal on this wire.",
        verdicts(checked),
        f"The naive guard tripped {result['guard']['naive_trips']} times on the same frames, counted one a second at most.",
    ]
    return "\n\n".join(parts) + "\n"


def made_by(result: dict[str, Any], command: str) -> str:
    return f"Made by `{command}` on {datetime.date.today()}: {machine()}. {result['ran_s'] / 60:.1f} minutes of motion. Do not edit."


def figures(result: dict[str, Any], command: str, looked_at: trial.Trial | None) -> str:
    """All figures, `bench/teleop/results-hour.md`."""
    setpoints, guard = result["setpoints"], result["guard"]
    produced = max(1, setpoints["produced"])
    rows = [["delivered or modified", f"{setpoints['applied']} ({page.percent(setpoints['applied'] / produced)})"]]
    rows += [
        [f"… of them modified: {reason}", f"{n} ({page.percent(n / produced)})"]
        for reason, n in setpoints["modified"].items()
    ]
    rows += [
        [f"dropped: {reason}", f"{n} ({page.percent(n / produced)})"] for reason, n in setpoints["dropped"].items()
    ]
    rows += [
        ["balances of the ledger that held", str(setpoints["balances"])],
        ["frames that the guard received", str(guard["counters"].get("frames", 0))],
        ["… their receiver's stalls", str(guard["counters"].get("receiver_stalls", 0))],
        ["… stamps outside the stated error", str(guard["counters"].get("residuals_over_e", 0))],
        ["… steps of the robot's clock", str(guard["counters"].get("clock_steps", 0))],
        ["largest proven speed by the limit", f"{guard['ratio_max']:.3f}"],
        ["largest true speed by the limit", f"{guard['true_ratio_max']:.3f}"],
        ["trips of the naive guard on the same frames", f"{guard['naive_trips']} trips (one a second at most)"],
        ["the machine ran the arms, of real time, least", page.percent(result["real_time"])],
        [
            "delay that the playout added",
            f"p50 {result['added_delay_ms']['p50']:.0f} ms, max {result['added_delay_ms']['max']:.0f} ms",
        ],
    ]
    parts = [
        "# Figures of an hour of heavy jitter",
        made_by(result, command) + " The page: [an hour of heavy jitter](../../docs/proof/teleop-hour.md).",
        table(["", ""], rows),
        *(evidence(looked_at) if looked_at else []),
    ]
    return "\n\n".join(parts) + "\n"


def evidence(looked_at: trial.Trial) -> list[str]:
    causes = [[f"`{name}`", page.percent(share)] for name, share in page.causes([looked_at])]
    return [
        f"A target was missed. What limits it: {LOOK_S:.0f} s more of the same were recorded, and {page.percent(looked_at.delivered)} of them "
        f"delivered, p99 {looked_at.quantile_ms(0.99):.1f} ms. Causes of the tail by `taut explain`:",
        table(["cause", "share of the tail"], causes),
        "\n".join(f"- {advice}" for advice in looked_at.advice) or "- no message is far from the typical one",
    ]


def _wait(loops: list[subprocess.Popen[str]], ends: float) -> None:
    change = time.monotonic() + GUST_S
    while any(loop.poll() is None for loop in loops) and time.monotonic() < change:
        time.sleep(0.5)
        if sys.stderr.isatty():
            print(f"\r{max(0.0, ends - time.monotonic()) / 60:.1f} min left ", end="", file=sys.stderr, flush=True)
