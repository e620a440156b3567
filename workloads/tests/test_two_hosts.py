"""Leader and follower on hosts of their own: what is done to the way between them, or to one of them, is what the report names."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("taut", reason="the taut module is not installed")

from workloads import native
from workloads.tests.processes import start

TAUT = native.binary("taut")
RIGHT = ["--arrangement", "split", "--receiver", "framed", "--validator", "clamp", "--guard", "taut", "--json"]

needs_hosts = pytest.mark.skipif(
    os.geteuid() != 0 or TAUT is None or native.binary("taut-teleop") is None,
    reason="network namespaces need the superuser; taut and taut-teleop must be built",
)


def run(folder: Path, *options: str) -> Any:
    """The report of both hosts' recordings as one; again where the machine held the arms up, so that there is no tail to explain."""
    for _ in range(3):
        report = recorded(folder, *options)
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
    if not report["recording"]["kernel_events"]:
        pytest.skip("without kernel events there are no causes")
    return report


@needs_hosts
def test_jitter_of_the_relay_is_the_network(tmp_path: Path) -> None:
    report = run(tmp_path, "--duration", "8", "--relay", "200:5000")
    hops = [hop for chain in report["chains"] for hop in chain["hops"]]
    between = next(hop for hop in hops if hop["to"] == "follower:follower.command_parsed")
    assert between["between_hosts"]["from"] == "leader"
    assert between["causes"][0]["cause"] == "network", between["causes"][:3]


@needs_hosts
def test_a_hog_on_the_followers_host_is_named_with_its_host(tmp_path: Path) -> None:
    report = run(tmp_path, "--duration", "10", "--hog", "25ms")
    responsible = [party for chain in report["chains"] for party in chain["responsible"]]
    most = max((party for party in responsible if party["kind"] == "thread"), key=lambda party: party["time_ns"])
    assert most["name"].startswith("follower:hog/"), responsible


def test_what_two_hosts_cannot_be_is_one_line() -> None:
    for options, text in [
        (["--hosts", "2"], "--hosts 2 needs --arrangement split"),
        (["--hosts", "2", "--arrangement", "split", "--relay", "fast"], "--relay fast: takes DELAY:JITTER"),
        (["--hosts", "2", "--arrangement", "split", "--hog", "200ms"], "200ms: give a time above 0 and up to 0.19s"),
    ]:
        run = start("teleop", *options)
        _, err = run.communicate()
        assert run.returncode == 2 and text in err, err
