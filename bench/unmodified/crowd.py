"""What recording costs beside 200 threads that sleep and wake, and whether they become loops of the program that is followed."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import runs

THREADS = 200
# Each sleeps for 20 to 30 ms: some 8,000 wakes a second.
CROWD = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *one(void *seed) {
    for (unsigned state = (unsigned long)seed;;) usleep(20000 + rand_r(&state) %% 10000);
}
int main(void) {
    pthread_t thread;
    for (long n = 0; n < %d; n++) pthread_create(&thread, NULL, one, (void *)n);
    pause();
}
"""
ROBOT = Path(__file__).resolve().parents[2] / "examples/unprepared/robot.c"
SECONDS = 10
LIMIT = 0.03


@dataclass
class Crowd:
    # Of one CPU, from 1 s after the recorder's start until 1 s before its end.
    share_of_a_core: float
    events_per_s: float
    found: str
    are_its: bool

    @property
    def holds(self) -> bool:
        return self.share_of_a_core <= LIMIT and self.are_its


def crowd(taut: str, recorder: str, folder: Path) -> Crowd:
    source, program, robot = folder / "crowd.c", folder / "crowd", folder / "robot"
    source.write_text(CROWD % THREADS)
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
    subprocess.run(["cc", "-O2", "-pthread", "-o", robot, ROBOT], check=True)
    recording = folder / "crowd.mcap"
    command = [recorder, "record", "-q", "--ignore-loss", "-o", str(recording), "--", str(robot), str(SECONDS)]
    with subprocess.Popen([program]) as others:
        try:
            with subprocess.Popen(command) as running:
                time.sleep(1)
                before = cpu_s(running.pid)
                time.sleep(SECONDS - 2)
                share = (cpu_s(running.pid) - before) / (SECONDS - 2)
                running.wait()
        finally:
            others.kill()
    of = runs.report(taut, recording)
    its = [loop for loop in of["loops"] if loop["process"].startswith("robot/")]
    events = of["recording"]["kernel_events"] / of["recording"]["duration_s"]
    names = ", ".join(f"{loop['name']} ({loop['activations']})" for loop in of["loops"])
    return Crowd(share, events, names, its == of["loops"] and len(its) >= 2)


def cpu_s(pid: int) -> float:
    """Of that process's threads; its children's is not in it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
