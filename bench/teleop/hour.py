"""An hour of heavy jitter for the right arrangement: frames late, in bunches, joined and cut, and the machine loaded.
Not recorded: an hour of kernel events fills a disk, and what is asked is in the run's own account."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import time
from typing import Any

import conditions
import page
from trial import SILENT, SPLIT

from workloads.teleop.guards import HEAVY_STALE_NS
from workloads.teleop.wire import HeavyWire

HEAVY = conditions.Condition("heavy jitter", "a heavy wire, 30 hogs that come and go", hogs=30, wire="heavy")
GUST_S = 60.0
"""Hogs run for a minute, then rest for one."""


def run(minutes: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "workloads.teleop", "--duration", str(60 * minutes), *SPLIT, "--companions", "all"]
    loop = subprocess.Popen([*command, "--wire", HEAVY.wire, "--json"], stdout=subprocess.PIPE, text=True)
    began = time.monotonic()
    try:
        is_windy = False
        while loop.poll() is None:
            is_windy = not is_windy
            if is_windy:
                with conditions.load(HEAVY):
                    _wait(loop, began, minutes)
            else:
                _wait(loop, began, minutes)
        assert loop.stdout is not None
        return dict(json.loads(loop.stdout.read()))
    finally:
        loop.kill()
        loop.wait()


def checks(result: dict[str, Any]) -> list[page.Check]:
    setpoints, guard = result["setpoints"], result["guard"]
    false = sum(bool(trip["is_false"]) for trip in guard["trips"])
    silent = sum(setpoints["dropped"].get(reason, 0) for reason in SILENT)
    stops = [f"{trip['state']} ({trip['cause']})" for trip in guard["trips"]] + result["stops"]
    return [
        page.Check("false trips of the guard", str(false), "0", false == 0),
        page.Check("stops of any kind", ", ".join(stops) or "0", "0", not stops),
        page.Check("silent drops", str(silent), "0", silent == 0),
        page.Check("setpoints unexplained", str(setpoints["unexplained"]), "0", setpoints["unexplained"] == 0),
    ]


def text(result: dict[str, Any], command: str) -> str:
    setpoints, guard, low_high = result["setpoints"], result["guard"], HeavyWire.STALL_S
    produced = max(1, setpoints["produced"])
    rows = [["delivered or modified", f"{setpoints['applied']} ({page.percent(setpoints['applied'] / produced)})"]]
    rows += [
        [f"dropped: {reason}", f"{n} ({page.percent(n / produced)})"] for reason, n in setpoints["dropped"].items()
    ]
    rows += [
        ["balances of the ledger that held", str(setpoints["balances"])],
        ["frames that the guard heard", str(guard["counters"].get("frames", 0))],
        ["… their receiver's stalls", str(guard["counters"].get("receiver_stalls", 0))],
        ["largest proven speed by the limit", f"{guard['ratio_max']:.3f}"],
        ["largest true speed by the limit", f"{guard['true_ratio_max']:.3f}"],
        ["what the naive guard said of the same frames", f"{guard['naive_trips']} trips (one a second at most)"],
        [
            "delay that the playout added",
            f"p50 {result['added_delay_ms']['p50']:.0f} ms, max {result['added_delay_ms']['max']:.0f} ms",
        ],
    ]
    return (
        "\n\n".join(
            [
                "# Proof: heavy jitter, and no false trip",
                f"Made by `{command}` on {datetime.date.today()}: {page.machine()}. {result['ran_s'] / 60:.1f} minutes. Do not edit.",
                f"The right arrangement ([its proof](teleop-proof.md)) on a wire that delays every frame by {1000 * HeavyWire.MEAN_S:.0f} ms on "
                f"average (exponential), stands still {HeavyWire.STALLS_HZ:g} times a second for {1000 * low_high[0]:.0f} to "
                f"{1000 * low_high[1]:.0f} ms, and joins and cuts frames; 30 hogs come for a minute and rest for one. Silence is stale after "
                f"{HEAVY_STALE_NS / 1e6:.0f} ms here: on this wire shorter silence is normal.",
                page.table(
                    ["", "measured", "limit", ""],
                    [[c.what, c.figure, c.limit, "holds" if c.holds else "**missed**"] for c in checks(result)],
                ),
                page.table(["", ""], rows),
            ]
        )
        + "\n"
    )


def _wait(loop: subprocess.Popen[str], began: float, minutes: float) -> None:
    ends = time.monotonic() + GUST_S
    while loop.poll() is None and time.monotonic() < ends:
        time.sleep(0.5)
        if sys.stderr.isatty():
            print(f"\r{(time.monotonic() - began) / 60:.1f} of {minutes:g} min ", end="", file=sys.stderr, flush=True)
