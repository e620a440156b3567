"""Leader and follower on hosts of their own: what is done to the way between them, or to one of them, is what the report names."""

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("taut", reason="the taut module is not installed")

from workloads import native
from workloads.tests import two_hosts
from workloads.tests.processes import start

needs_hosts = pytest.mark.skipif(
    os.geteuid() != 0 or two_hosts.TAUT is None or native.binary("taut-teleop") is None,
    reason="network namespaces need the superuser; taut and taut-teleop must be built",
)


def run(folder: Path, options: list[str]) -> Any:
    report = two_hosts.run(folder, *options)
    if not report["recording"]["kernel_events"]:
        pytest.skip("without kernel events there are no causes")
    return report


@needs_hosts
def test_jitter_of_the_relay_is_the_network(tmp_path: Path) -> None:
    causes = two_hosts.between(run(tmp_path, two_hosts.JITTER))["causes"]
    assert causes[0]["cause"] == "network", causes[:3]


@needs_hosts
def test_a_hog_on_the_followers_host_is_named_with_its_host(tmp_path: Path) -> None:
    report = run(tmp_path, two_hosts.HOG)
    assert two_hosts.most_responsible(report).startswith("follower:hog/"), report["chains"]


def test_what_two_hosts_cannot_be_is_one_line() -> None:
    for options, text in [
        (["--hosts", "2"], "--hosts 2 needs --arrangement split"),
        (["--hosts", "2", "--arrangement", "split", "--relay", "fast"], "--relay fast: takes DELAY:JITTER"),
        (["--hosts", "2", "--arrangement", "split", "--hog", "200ms"], "200ms: give a time above 0 and up to 0.19s"),
    ]:
        run = start("teleop", *options)
        _, err = run.communicate()
        assert run.returncode == 2 and text in err, err
