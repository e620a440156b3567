"""The teleoperation workload as it is gated: three times as many setpoints a second, and, on request, slowed in one hop.

teleop.py --seconds 3 --seed 7 [--slow 0.1 | --tail]

A trial of a few seconds shall carry a tail, so the nodes publish at 150 Hz instead of 50. The arms tell their states at 100 Hz: some
setpoints repeat the one before, and the validator lets them. The hand goes round in 20 s instead of half of one, so that no
jitter looks like speeding: what is dropped has no latency. `--slow` and `--tail` give the validator more to do, which is what a
gate is to find."""

import argparse
import random
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workloads.teleop import nodes, safety, system
from workloads.teleop.arms import Array, dh_matrix

PUBLISH_PERIOD_NS, LAP_S = 6_666_667, 20.0
VALIDATION_STEPS = 30
"""So many steps of forward kinematics, one after the other, take as long as the slowed hop. It has fewer of its own, on cold
caches; the page says by how much the hop really grew."""
TAIL_EVERY, TAIL_FACTOR = 200, 5.0


class Slowed(safety.RejectValidator):
    """Does its work, and more of the same kind."""

    slow, tail, seed = 0.0, False, 0

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._chance = random.Random(self.seed)
        self._owed = 0.0

    def _malformed_or_duplicate(self, joints_deg: Array):
        reason = super()._malformed_or_duplicate(joints_deg)
        return None if reason == "duplicate" else reason

    def validate(self, joints_deg: Array, arrived_ns: int, source_ns: int) -> safety.Verdict:
        verdict = super().validate(joints_deg, arrived_ns, source_ns)
        is_tail = self._chance.randrange(TAIL_EVERY) == 0 and self.tail
        self._owed += VALIDATION_STEPS * (TAIL_FACTOR - 1.0 if is_tail else self.slow)
        while self._owed >= 0.5:
            dh_matrix(0.1, 0.1, 0.1, 0.1)
            self._owed -= 1.0
        return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=float, default=0.0, help="more work in the validation, as a share of it")
    parser.add_argument("--tail", action="store_true", help="one setpoint in 200 takes five times the work there")
    options = parser.parse_args()
    nodes.PUBLISH_PERIOD_NS, system.LAP_S = PUBLISH_PERIOD_NS, LAP_S
    Slowed.slow, Slowed.tail, Slowed.seed = options.slow, options.tail, options.seed
    safety.VALIDATORS["reject"] = Slowed
    result = system.run(system.Options(options.seconds), threading.Event())
    setpoints = result["setpoints"]
    assert isinstance(setpoints, dict)
    return 1 if setpoints["unexplained"] or result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
