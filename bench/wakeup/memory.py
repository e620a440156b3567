"""Memory of the probe: of the process after a minute, and of its collector over 10⁸ wakes of a simulated clock."""

import re
import subprocess
import time
from pathlib import Path

import ours
from children import CPU, in_background
from page import Section

from bench.proof.page import Check, table

FIRST_S, LAST_S = 10, 60
MORE_KIB = 1024


def measure(taut: str, root: Path) -> Section:
    with in_background(ours.command(taut, CPU, LAST_S + 10, "--interval", "100us"), settle_s=FIRST_S) as process:
        early = resident_kib(process.pid)
        time.sleep(LAST_S - FIRST_S)
        late = resident_kib(process.pid)
    print("memory: of the process, done", flush=True)
    simulated = subprocess.run(
        ["cargo", "run", "--quiet", "--release", "--locked", "-p", "taut-wakeup", "--example", "days_of_wakes"],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    wakes, before, after = read_days(simulated)
    result = Section(
        "Memory",
        f"`taut wakeup --interval 100us` of one CPU: resident memory after {FIRST_S} s and after {LAST_S} s. The example `days_of_wakes` of taut-wakeup: "
        f"{spaced(wakes)} wakes of a simulated clock through the same collector, resident memory after the first hundredth and at the end.",
    )
    rows = [
        ["wakeup", f"{early} KiB", f"{late} KiB"],
        ["collector, simulated clock", f"{before} KiB", f"{after} KiB"],
    ]
    result.body = [table(["", "early", "late"], rows)]
    result.checks = [
        Check("memory after a minute", f"{late - early:+} KiB", f"≤ {MORE_KIB} KiB", late - early <= MORE_KIB),
        Check(
            f"memory over {spaced(wakes)} wakes",
            f"{after - before:+} KiB",
            f"≤ {MORE_KIB} KiB",
            after - before <= MORE_KIB,
        ),
    ]
    return result


def read_days(stdout: str) -> tuple[int, int, int]:
    """Wakes, KiB early, KiB late."""
    found = re.fullmatch(r"(\d+) wakes; resident: (\d+) KiB early, (\d+) KiB late\s*", stdout)
    if not found:
        raise SystemExit(f"days_of_wakes said {stdout!r}")
    wakes, early, late = map(int, found.groups())
    return wakes, early, late


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    row = next(row for row in status.splitlines() if row.startswith("VmRSS:"))
    return int(row.split()[1])


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")
