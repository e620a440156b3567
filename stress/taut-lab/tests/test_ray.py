"""Rounds of a lab on several Ray nodes of this machine, one of which is lost in the middle of a trial. `make test-ray` installs Ray
(240 MB) and runs this."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed: make test-ray")

from ray.cluster_utils import Cluster  # noqa: E402

TAUT = Path(sys.executable).with_name("taut")

# Each trial says that it has begun, and with which process. Of the first round it waits until the test has seen it.
TRIAL = """
import os, sys, time
from pathlib import Path
shared = Path(sys.argv[1])
name = f"{os.environ['TAUT_LAB_SCENARIO']}-{os.environ['TAUT_LAB_TRIAL']}"
(shared / name).mkdir(exist_ok=True)
(shared / name / str(os.getpid())).touch()
while not (shared / "go").exists():
    time.sleep(0.02)
assert Path("data/file").read_text() == "x"
print('{"here": 1}')
"""

LAB = """
trials = 4
files = ["data"]
python = "{python}"
[ray]
address = "{address}"
[trial]
command = ["{python}", "trial.py", "{shared}"]
timeout_s = 300
report = "json"
[metrics.here]
[[scenario]]
name = "none"
[[scenario]]
name = "again"
"""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    # The head offers nothing: no trial runs there.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


def begun(shared: Path) -> list[int]:
    return [int(path.name) for path in shared.glob("*/*")]


def ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while pid > 1:
        found.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return found


def test_a_lost_hosts_round_runs_elsewhere_and_no_pair_crosses_hosts(tmp_path: Path, cluster: Cluster) -> None:
    nodes = [cluster.add_node(num_cpus=1, resources={"taut_host": 1}) for _ in range(3)]
    cluster.wait_for_nodes()
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("x")
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "lab.toml").write_text(LAB.format(python=sys.executable, address=cluster.address, shared=shared))
    command = [str(TAUT), "lab", "run", "lab.toml", "-o", "out", "--format", "json"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while len(begun(shared)) < 3:
        assert run.poll() is None and time.monotonic() < deadline, run.communicate()
        time.sleep(0.05)
    # One trial a host, however many rounds there are.
    time.sleep(1.0)
    assert len(begun(shared)) == 3
    lost = node_of(begun(shared)[0], nodes)
    cluster.remove_node(lost, allow_graceful=False)
    (shared / "go").touch()
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert f"-{lost.node_id[:6]} is lost" in err and "is run elsewhere" in err, err
    trials = [json.loads(line) for line in (tmp_path / "out/manifest.jsonl").read_text().splitlines()[1:]]
    assert [trial["status"] for trial in trials] == ["success"] * 8
    hosts = {trial["host"] for trial in trials}
    assert len(hosts) == 2 and not any(host.endswith(lost.node_id[:6]) for host in hosts)
    for number in range(4):
        assert len({trial["host"] for trial in trials if trial["round"] == number}) == 1
    assert all((tmp_path / "out" / trial["logs"] / "trial.stdout").exists() for trial in trials)
    result = json.loads(out)
    assert "trials by host" in str(result["notes"])
    difference = result["scenarios"][1]["metrics"][0]["difference"]
    assert set(difference["hosts"]) == hosts, "hosts are blocks"


def node_of(pid: int, nodes: list[Any]) -> Any:
    """Whose raylet the trial descends from."""
    line = ancestors(pid)
    (node,) = [node for node in nodes if node.all_processes["raylet"][0].process.pid in line]
    return node


def test_a_cluster_without_hosts_for_trials_is_one_line(tmp_path: Path, cluster: Cluster) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "lab.toml").write_text(LAB.format(python=sys.executable, address=cluster.address, shared="."))
    said = subprocess.run(
        [str(TAUT), "lab", "run", "lab.toml"], cwd=tmp_path, capture_output=True, text=True, env={**os.environ}
    )
    assert said.returncode == 2 and said.stderr.count("\n") == 1, said.stderr
    assert """no host of the cluster offers taut_host; start those that may run trials with ray start""" in said.stderr
