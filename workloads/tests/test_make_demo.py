"""`make demo` reports whatever its recordings' programs end with, and fails with them; a program stands in for taut."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TAUT = """#!/bin/sh
echo "$1" >> calls
case "$*" in
*" -o taut-source.mcap "*) touch taut-source.mcap; exit $SOURCE_CODE ;;
*" -o taut-demo.html"*) touch taut-demo.html ;;
esac
"""


@pytest.mark.parametrize("code", [0, 1, 4, 5])
def test_a_demo_is_reported_whatever_its_robot_ends_with(code: int, tmp_path: Path) -> None:
    taut = tmp_path / "taut"
    taut.write_text(TAUT)
    taut.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-f", str(ROOT / "Makefile"), "-o", "setup", "demo", f"TAUT={taut}"]
    environment["SOURCE_CODE"] = str(code)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (tmp_path / "calls").read_text().split() == ["record", "record", "report", "report"], done.stderr
    assert done.stdout.splitlines()[-1] == "Open taut-demo.html in a browser."
    # Make's own code for a command that failed is 2.
    assert done.returncode == (2 if code else 0) and (f"Error {code}\n" in done.stderr) == (code != 0), done.stderr
