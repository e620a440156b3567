"""Are two hosts' recordings joined rightly? Records two hosts over relays of known delays, and holds the report against the truth.

The hosts are network namespaces, so the true offset of their clocks is 0. Needs root, `ip` and gcc, what `make setup` leaves in
.venv, and for the ROS 2 pair `make ros2`. Writes docs/proof/hosts.md and results.md here; exit 1 when a limit is missed."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import causes
import clocks
import cost
import programs
import teleop
from net import Relay, recorded
from page import page

ROOT = Path(__file__).resolve().parents[2]

RELAYS = [
    Relay("as fast as it is", "0:0", "0:0"),
    Relay("200 µs both ways, queues of 100 µs", "200:100", "200:100"),
    Relay("1 ms both ways, queues of 1 ms", "1000:1000", "1000:1000"),
    Relay("0 ms there, 5 ms back", "0:0", "5000:0"),
    Relay("5 ms there, 0 ms back", "5000:0", "0:0"),
    Relay("5 ms there with queues of 2 ms, 0 ms back", "5000:2000", "0:0"),
]


def properties() -> dict[str, str]:
    """What the tests of the alignment print: 1,000 clocks of which the truth is known."""
    command = [
        "cargo",
        "test",
        "--workspace",
        "--exclude",
        "taut-python",
        "--test",
        "align",
        "--test",
        "constraints",
        "--",
        "--nocapture",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"TAUT_CASES": "1000"})
    if ran.returncode != 0:
        sys.exit(ran.stdout + ran.stderr)
    return {name: value for name, value in re.findall(r"^(\w+): ([\d.]+)$", ran.stdout, re.MULTILINE)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    parser.add_argument("--messages", type=int, default=4000, help="each way, for each relay")
    parser.add_argument(
        "--events", type=int, default=cost.LIMIT_EVENTS, help="kernel events of each host, for the cost"
    )
    parser.add_argument("--loops", type=int, default=5, help="runs of the teleoperation loop, of each kind")
    parser.add_argument(
        "--ros2",
        metavar="FOLDER",
        default=str(ROOT / ".venv-ros2"),
        help="the wheels of ROS 2; without them that pair is left out",
    )
    parser.add_argument(
        "--dds", metavar="PYTHON", help="one with the package cyclonedds; without it that pair is left out"
    )
    options = parser.parse_args()
    options.taut = str(Path(options.taut).resolve())
    # What was set up is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    with tempfile.TemporaryDirectory() as temporary:
        found = []
        for number, relay in enumerate(RELAYS):
            folder = recorded(options.taut, Path(temporary) / str(number), relay, options.messages)
            found.append(clocks.held_against_truth(options.taut, folder, relay))
            print(json.dumps(found[-1].__dict__, ensure_ascii=False), flush=True)
        relay = Relay("causes", "200:100", "200:100", every=20, held_us=4000)
        folder = recorded(options.taut, Path(temporary) / "causes", relay, options.messages)
        named = causes.named(options.taut, folder, relay)
        print(*named, sep="\n", flush=True)
        matched = programs.matched(options.taut, Path(temporary) / "programs", options.dds, Path(options.ros2))
        print(*matched, sep="\n", flush=True)
        loops = teleop.looped(Path(temporary) / "teleop", options.loops)
        print(*loops, sep="\n", flush=True)
        costs = cost.measured(options.taut, Path(temporary), options.events)
        print(costs, flush=True)
    command = " ".join(["bench/hosts/run", *("PYTHON" if word == options.dds else word for word in sys.argv[1:])])
    text, results, holds = page(found, named, matched, loops, costs, properties(), command)
    (ROOT / "docs/proof/hosts.md").write_text(text)
    (ROOT / "bench/hosts/results.md").write_text(results)
    sys.exit(0 if holds else 1)


main()
