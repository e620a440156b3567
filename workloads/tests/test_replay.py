"""A jittery run of the loop, recorded, and its frames once more through the guards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("taut", reason="the taut module is not installed")

ROOT = Path(__file__).resolve().parents[2]
TAUT = str(Path(sys.executable).with_name("taut"))
HOG = "while True: pass"
# Clamped, so that the motion is legal, on a wire that holds frames up, beside companions and hogs.
LOOP = ["--arrangement", "split", "--validator", "clamp", "--guard", "taut", "--companions", "all", "--wire", "heavy"]


def test_a_recording_of_a_jittery_loop_shows_false_trips_of_the_naive_guard_and_none_of_ours(tmp_path: Path) -> None:
    run, tuned = str(tmp_path / "run.mcap"), tmp_path / "guard.toml"
    env = {name: value for name, value in os.environ.items() if name != "TAUT_SESSION"}
    hogs = [subprocess.Popen([sys.executable, "-S", "-c", HOG]) for _ in range(2)]
    try:
        command = [
            TAUT,
            "record",
            "-q",
            "--ignore-loss",
            "-o",
            run,
            "--",
            sys.executable,
            "-m",
            "workloads.teleop",
            "--duration",
            "4",
        ]
        done = subprocess.run([*command, *LOOP], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    # 4: the machine could not run the arms in real time. Their frames are whole all the same.
    assert done.returncode in (0, 4), done.stderr
    replay = [TAUT, "guard", "replay", run]
    with tuned.open("w") as toml:
        subprocess.run([*replay, "--tcp-limit", "1000", "--tune"], stdout=toml, check=True)
    json_ = [*replay, "--guard", str(tuned), "--truth", "recorded", "--format", "json"]
    told = json.loads(subprocess.run(json_, capture_output=True, check=True).stdout)
    ours, naive, *_ = told["runs"]
    assert told["frames"] > 100
    assert (ours["overspeed_trips"], ours["stale_trips"], ours["fault_trips"]) == (0, 0, 0)
    assert naive["name"] == "Δp/Δt, arrival, 1/1"
    assert naive["judgement"]["false_trips"] >= 1 and naive["largest"] > 1.5
