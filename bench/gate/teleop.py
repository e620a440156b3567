"""The teleoperation workload as it is gated: five times as many setpoints a second, and, on request, slowed in one hop.

teleop.py --seconds 1.2 --seed 7 --steps 30 [--slow 0.1 | --tail | --more 40]

A trial of a second or two shall carry a tail, so the nodes publish at 250 Hz instead of 50. The arms tell their states at 100 Hz: some
setpoints repeat the one before, and the validator lets them. The hand goes round in 20 s instead of half of one, so that no
jitter looks like speeding: what is dropped has no latency. `--slow` and `--tail` give the validator more to do, which is what a
gate is to find. Of a gate's time, starting and ending are lost: so the arms are copies of this process, and start while it
still does."""

import argparse
import gc
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from workloads.teleop import controller, processes


class Arm(multiprocessing.get_context("fork").Process):
    """An arm's controller as a copy of this process: started in a tenth of the time that an interpreter of its own takes to
    import the same again."""

    stdout = None

    def __init__(self, name: str) -> None:
        self.said, into = os.pipe()
        super().__init__(target=self.be, args=(name, into))
        self.start()
        os.close(into)

    def be(self, name: str, into: int) -> None:
        os.dup2(into, 1)
        sys.argv[1:] = ["--arm", name, "--parent", str(os.getppid())]
        controller.main()

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self, timeout: float | None = None) -> None:
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired(self.name, timeout or 0.0)


ARMS = {name: Arm(name) for name in ("FR3", "FR20")}


def running(name: str, *_: object) -> processes.ControllerProcess:
    with open(ARMS[name].said) as said:
        ports = json.loads(said.readline())
    return processes.ControllerProcess(ARMS[name], ports["commands"], ports["states"])


processes.start = running

from workloads.teleop import nodes, safety, system  # noqa: E402
from workloads.teleop.arms import Array, dh_matrix  # noqa: E402

PUBLISH_PERIOD_NS, LAP_S = 4_000_000, 20.0
TAIL_EVERY, TAIL_FACTOR = 200, 5.0


class Slowed(safety.RejectValidator):
    """Does its work, and more of the same kind: steps of forward kinematics."""

    steps, more, slow, tail, seed = 0.0, 0.0, 0.0, False, 0

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
        self._owed += self.more + self.steps * (TAIL_FACTOR - 1.0 if is_tail else self.slow)
        while self._owed >= 0.5:
            dh_matrix(0.1, 0.1, 0.1, 0.1)
            self._owed -= 1.0
        return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=float, default=30.0, help="that take as long as the slowed hop works")
    parser.add_argument("--more", type=float, default=0.0, help="steps for each setpoint, to find out")
    parser.add_argument("--slow", type=float, default=0.0, help="more work in the validation, as a share of it")
    parser.add_argument("--tail", action="store_true", help="one setpoint in 200 takes five times the work there")
    options = parser.parse_args()
    nodes.PUBLISH_PERIOD_NS, system.LAP_S = PUBLISH_PERIOD_NS, LAP_S
    Slowed.steps, Slowed.more, Slowed.seed = options.steps, options.more, options.seed
    Slowed.slow, Slowed.tail = options.slow, options.tail
    safety.VALIDATORS["reject"] = Slowed
    result = system.run(system.Options(options.seconds), threading.Event())
    # What ends now need not be searched for garbage.
    gc.freeze()
    setpoints = result["setpoints"]
    assert isinstance(setpoints, dict)
    return 1 if setpoints["unexplained"] or result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
