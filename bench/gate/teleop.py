"""The teleoperation workload as it is shipped, slowed in one hop on request.

teleop.py --seconds 1.0 --seed 7 [--more 4 | --tail 400]
teleop.py --seconds 10 --measure --more 4

Rates, motion, processes and what the validator drops are those of `python -m workloads.teleop`. Only the validator is given more work of the
same kind (steps of forward kinematics), which is what a gate is to find. `--measure` needs no recorder: it slows every second setpoint, takes the
thread's CPU time of the slowed hop itself, and prints both medians as JSON."""

import argparse
import contextlib
import io
import json
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workloads.teleop import __main__ as workload
from workloads.teleop import nodes, safety
from workloads.teleop.arms import Array, dh_matrix

TAIL_EVERY = 200
FIRST, LAST = "follower.command_pre_hardware_write", "follower.command_pre_lock"


class Slowed(safety.RejectValidator):
    """Does its work, and more of the same kind."""

    more, tail, seed, alternates = 0.0, 0.0, 0, False
    is_slow = True
    """Of the setpoint in hand. Where `alternates`, of every second one."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._chance = random.Random(self.seed)
        self._owed = 0.0

    def validate(self, joints_deg: Array, arrived_ns: int, source_ns: int) -> safety.Verdict:
        verdict = super().validate(joints_deg, arrived_ns, source_ns)
        if self.alternates:
            Slowed.is_slow = not Slowed.is_slow
        is_tail = self._chance.randrange(TAIL_EVERY) == 0
        if self.is_slow:
            self._owed += self.more + (self.tail if is_tail else 0.0)
        while self._owed >= 0.5:
            dh_matrix(0.1, 0.1, 0.1, 0.1)
            self._owed -= 1.0
        return verdict


class Meter:
    """Stands in for the module taut in the nodes: takes CLOCK_THREAD_CPUTIME_ID at both ends of the slowed hop."""

    def __init__(self, taut: object) -> None:
        self._taut, self._began_ns = taut, 0
        self.works_ns: dict[bool, list[int]] = {False: [], True: []}

    def __getattr__(self, name: str) -> object:
        return getattr(self._taut, name)

    def stamp(self, point: str, _: int) -> None:
        if point == FIRST:
            self._began_ns = time.thread_time_ns()
        elif point == LAST:
            self.works_ns[Slowed.is_slow].append(time.thread_time_ns() - self._began_ns)

    def medians(self) -> dict[str, float]:
        plain, slowed = (statistics.median(self.works_ns[is_slow]) for is_slow in (False, True))
        return {"plain_ns": plain, "slowed_ns": slowed, "messages": sum(map(len, self.works_ns.values()))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--more", type=float, default=0.0, help="steps for each setpoint")
    parser.add_argument("--tail", type=float, default=0.0, help="steps for one setpoint in 200")
    parser.add_argument(
        "--measure", action="store_true", help="slow every second setpoint, and print CPU times of both"
    )
    options = parser.parse_args()
    Slowed.more, Slowed.tail = options.more, options.tail
    Slowed.seed, Slowed.alternates = options.seed, options.measure
    safety.VALIDATORS["reject"] = Slowed
    sys.argv[1:] = ["--duration", str(options.seconds)]
    if not options.measure:
        return workload.main()
    nodes.taut = meter = Meter(nodes.taut)
    with contextlib.redirect_stdout(io.StringIO()):
        code = workload.main()
    print(json.dumps(meter.medians()))
    return code


if __name__ == "__main__":
    sys.exit(main())
