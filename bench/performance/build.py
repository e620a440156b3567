"""Builds what the measurements run, and says where it lies."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# As `make dist` lays it out.
PROFILE = "shipped"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / PROFILE
# `make bench` leaves it there.
TAUT = str(TARGET / "taut")
EXAMPLES = {
    "analysis_bench": "taut-analysis",
    "kernel_sources": "taut-capture",
    "overhead_loop": "taut-capture",
    "guard_bench": "taut-replay",
    "log_bench": "taut-conformance",
}


def everything() -> None:
    packages = [word for package in sorted(set(EXAMPLES.values())) for word in ["-p", package]]
    examples = [word for name in EXAMPLES for word in ["--example", name]]
    subprocess.run(
        ["cargo", "build", "--profile", PROFILE, "--quiet", "--locked", *packages, *examples], cwd=ROOT, check=True
    )


def example(name: str) -> str:
    return str(TARGET / "examples" / name)
