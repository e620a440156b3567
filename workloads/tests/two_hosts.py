"""The teleoperation loop on two hosts as a process, and what the report of both hosts' recordings as one names."""

import json
import subprocess
from pathlib import Path
from typing import Any

from workloads import native
from workloads.tests.processes import start

TAUT = native.binary("taut")
RIGHT = ["--arrangement", "split", "--receiver", "framed", "--validator", "clamp", "--guard", "taut", "--json"]
# What is done to the way between the hosts, or to the follower's.
JITTER = ["--duration", "8", "--relay", "200:5000"]
HOG = ["--duration", "10", "--hog", "25ms"]


def run(folder: Path, *options: str) -> Any:
    """The report of both hosts' recordings as one; again where the machine held the arms up, so that there is no tail to explain."""
    for _ in range(3):
        report = recorded(folder, *options)
        if not report["recording"]["kernel_events"]:
            return report
        if any(party["kind"] == "thread" for chain in report["chains"] for party in chain["responsible"]):
            return report
    raise AssertionError(f"no run of three has a tail: {[chain['tail'] for chain in report['chains']]}")


def recorded(folder: Path, *options: str) -> Any:
    run = start("teleop", *RIGHT, "--hosts", "2", "--recordings", str(folder), *options)
    out, err = run.communicate()
    assert out, err
    result = json.loads(out)
    # 4: the machine could not run the arms in real time; 1: a part had no CPU, so that the arm was stopped. Neither changes anything here.
    assert run.returncode in (0, 4) or (run.returncode == 1 and result["stopped"]), err
    setpoints = result["setpoints"]
    assert setpoints["unexplained"] == 0 and setpoints["applied"] > 0, setpoints
    command = [str(TAUT), "report", "leader.mcap", "follower.mcap", "--join", "--format", "json"]
    said = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE)
    report = json.loads(said.stdout)
    # A busy machine may lose kernel events, and only then is it 5.
    assert said.returncode == (5 if report["recording"]["lost_kernel_events"] else 0)
    assert [host["name"] for host in report["recording"]["hosts"]] == ["leader", "follower"]
    return report


def between(report: Any) -> Any:
    """The hop from the leader's host to the follower's."""
    hops = [hop for chain in report["chains"] for hop in chain["hops"]]
    hop = next(hop for hop in hops if hop["to"] == "follower:follower.command_parsed")
    assert hop["between_hosts"]["from"] == "leader"
    return hop


def most_responsible(report: Any) -> str:
    """The thread that the tail waited for most."""
    responsible = [party for chain in report["chains"] for party in chain["responsible"]]
    threads = [party for party in responsible if party["kind"] == "thread"]
    name: str = max(threads, key=lambda party: party["time_ns"])["name"]
    return name
