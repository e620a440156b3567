"""The workflows that the documentation hands out, and the ones that test and release taut, held against the schemas of the services that run them; that their commands
run is a test of the command's (`cli/taut/tests/gate.rs`, `ros2_live.rs`)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = "../../.github/actions/tools/action.yml"
SERVICES = [
    ("github.yml", "vendor.github-workflows"),
    ("ros2.yml", "vendor.github-workflows"),
    ("gitlab.yml", "vendor.gitlab-ci"),
]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
OURS = [*((str(path), "vendor.github-workflows") for path in WORKFLOWS), (TOOLS, "vendor.github-actions")]


def check(file: Path, schema: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(("file", "schema"), SERVICES + OURS)
def test_a_workflow_is_what_its_service_reads(file: str, schema: str) -> None:
    checked = check(HERE / file, schema)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_push_runs_what_must_hold_and_workflows_ask_for_targets_that_there_are() -> None:
    test = (ROOT / ".github/workflows/test.yml").read_text()
    assert re.search(r"(?m)^on:\n  push:\n    branches: \[\"\*\*\"\]$", test)
    targets = re.findall(r"(?m)^ +- target: (\S+)$", test)
    assert targets == ["test", "lint", "test-fleet", "test-ray"] and "- run: make ${{ matrix.target }}" in test
    for path in WORKFLOWS:
        targets += re.findall(r"(?m)\bmake ([a-z0-9-]+)$", path.read_text())
    (phony,) = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())
    assert {"dist", "web", "check-aarch64"} <= set(targets) <= set(phony.split())


@pytest.mark.parametrize(("file", "schema"), SERVICES)
def test_a_slip_would_be_seen(file: str, schema: str, tmp_path: Path) -> None:
    slip = tmp_path / file
    slip.write_text((HERE / file).read_text().replace("    paths:", "    pats:").replace("runs-on:", "run-on:"))
    assert check(slip, schema).returncode == 1
