"""`taut demo` ends with a report and three commands that work."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TAUT
from taut import demo


def taut(*words: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TAUT, *map(str, words)], cwd=cwd, capture_output=True, text=True)


def shown(robot: str, *options: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """A demo that lost nothing: a recorder on a busy machine may, and its exit code is 5."""
    for _ in range(10):
        done = taut("demo", robot, *options, "-o", "run.mcap", cwd=cwd)
        if done.returncode != 5:
            break
    return done


def test_a_demo_ends_with_a_report_and_three_commands(tmp_path: Path) -> None:
    done = shown("teleop", "--duration", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report, _, following = done.stdout.partition("\nNext:\n")
    assert "follower.command_applied" in report
    commands = [line.split()[1:] for line in following.splitlines()]
    assert len(commands) == 3
    for words in commands:
        assert taut(*words, cwd=tmp_path).returncode == 0, words
    assert (tmp_path / "run.html").exists() and (tmp_path / "run.pftrace").exists()


def test_a_failed_robot_is_said_first_and_by_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mujoco", reason="the package mujoco is not installed")
    fails = ("--virtual", "--failure", "servo-overheat", "--at", "0.2")
    monkeypatch.setitem(demo.DEMOS, "quad", dataclasses.replace(demo.DEMOS["quad"], arguments=fails))
    assert demo.show("quad", 3.0, tmp_path / "run.mcap", str(TAUT)) == 1
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("quad: failed: ") and "servo 2 reports a fault" in lines[0]
    assert "taut: demo quad: the robot failed; the report is of that run" in lines
    sentence = next(line for line in lines if line.startswith("The recorded program failed: "))
    assert sentence.startswith("The recorded program failed: it ended with exit code 1."), sentence


ASKED = """
import os, sys
from taut import demo

if sys.argv[1] == "nobody":
    os.setuid(65534)
said = demo.real_time()
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(demo.FIFO_MOST))
except PermissionError:
    may = False
else:
    may = True
print(said == (("--priority", "fifo") if may else ()), may)
"""


def test_the_controller_of_reach_is_real_time_for_those_who_may() -> None:
    for user in ["self", "nobody"] if os.geteuid() == 0 else ["self"]:
        done = subprocess.run([sys.executable, "-c", ASKED, user], capture_output=True, text=True, check=True)
        right, may = done.stdout.split()
        assert right == "True" and (user == "self" or may == "False"), done.stdout


def test_a_missing_package_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.importlib.util, "find_spec", lambda name: None if name == "mujoco" else object())
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    monkeypatch.setattr(demo, "refuse", lambda why: said.append(why) or 2)
    assert demo.show("quad", 1.0, tmp_path / "run.mcap", "taut") == 2
    assert "no mujoco" in said[0] and "pip install 'taut-….whl[demo]'" in said[0]
    assert not list(tmp_path.iterdir())


def test_a_python_without_taut_says_so(tmp_path: Path) -> None:
    shutil.copy(TAUT, tmp_path / "taut")  # with no python beside it
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" -I "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / "taut", "demo"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and ".whl[demo]" in done.stderr, done.stderr


@pytest.mark.parametrize("robot", demo.DEMOS)
def test_every_robot_is_a_workload(robot: str) -> None:
    folder = demo.folder_of_workloads()
    assert folder is not None and (folder / "workloads" / robot / "__main__.py").exists()


def test_the_demo_of_ros_2_names_its_slow_cause(tmp_path: Path) -> None:
    if demo.ros2_python() is None:
        pytest.skip("no Python with ROS 2: make ros2")
    done = shown("ros2", "--duration", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "/camera timer 33 ms → /controller callback /plan end" in done.stdout
    explained = json.loads(taut("explain", "run.mcap", "--format", "json", cwd=tmp_path).stdout)
    chain = next(c for c in explained["chains"] if c["name"] == "/camera timer 33 ms → /controller callback /plan end")
    causes = [(share["cause"], share["detail"]) for share in chain["causes"]]
    assert ("executor", "busy with /planner timer 500 ms") in causes
