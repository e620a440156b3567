"""The workflows that the documentation hands out, and the ones that test and release taut, held against the schemas of the services that run them; that their commands
run is a test of the command's (`cli/taut/tests/gate.rs`, `ros2_live.rs`)."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RELEASE = "../../.github/workflows/release.yml"
TEST = "../../.github/workflows/test.yml"
TOOLS = "../../.github/actions/tools/action.yml"
SERVICES = [
    ("github.yml", "vendor.github-workflows"),
    ("ros2.yml", "vendor.github-workflows"),
    ("gitlab.yml", "vendor.gitlab-ci"),
]
OURS = [(RELEASE, "vendor.github-workflows"), (TEST, "vendor.github-workflows"), (TOOLS, "vendor.github-actions")]


def check(file: Path, schema: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(("file", "schema"), SERVICES + OURS)
def test_a_workflow_is_what_its_service_reads(file: str, schema: str) -> None:
    checked = check(HERE / file, schema)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(("file", "schema"), SERVICES)
def test_a_slip_would_be_seen(file: str, schema: str, tmp_path: Path) -> None:
    slip = tmp_path / file
    slip.write_text((HERE / file).read_text().replace("    paths:", "    pats:").replace("runs-on:", "run-on:"))
    assert check(slip, schema).returncode == 1
