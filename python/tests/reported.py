"""What `taut report` says of a recording that was just made."""

import subprocess
import sys
from pathlib import Path

TAUT = Path(sys.executable).with_name("taut")


def reported(run: Path) -> bytes:
    """As JSON. On a busy machine kernel events may be lost: the report stands, and its exit code is 5."""
    done = subprocess.run([TAUT, "report", run, "--format", "json"], capture_output=True)
    assert done.returncode in (0, 5), done.stderr.decode()
    return done.stdout
