"""Floods over DDS and zenoh through the real binary, heard by a real CycloneDDS participant with ROS 2's names."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TAUT = Path(sys.executable).with_name("taut")

# The system under test: it hears the flood as a ROS 2 node would, a std_msgs/String on /flood_topic_1.
LISTENER = """
import json, os, time
from dataclasses import dataclass
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

@dataclass
class String(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str

participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
reader = DataReader(participant, Topic(participant, "rt/flood_topic_1", String))
heard, lengths, end = 0, set(), time.monotonic() + 300
while time.monotonic() < end and heard < 20 and os.environ["HEARD"] == "yes":
    messages = reader.take(N=100)
    heard += len(messages)
    lengths |= {len(message.data) for message in messages}
    time.sleep(0.02)
time.sleep(2)  # A writer looks for readers ten times a second, where it has a CPU.
print(json.dumps({"heard": heard, "bytes": max(lengths, default=0), "domain": int(os.environ["ROS_DOMAIN_ID"])}))
"""

LAB = """
trials = 1
settle_s = 0.2
applied = 0.3
domains = [70, 79]
python = "{python}"
[trial]
command = ["{python}", "listener.py"]
timeout_s = 600
report = "json"
[metrics.heard]
[[scenario]]
name = "heard"
environment = {{ HEARD = "yes" }}
load = [{{ kind = "dds", publishers = 2, rate_hz = 100, payload_bytes = 300, reliability = "reliable" }}]
[[scenario]]
name = "unheard"
environment = {{ HEARD = "no" }}
load = [{{ kind = "dds", publishers = 2, rate_hz = 100, readers = 0, topic = "/nobody_*" }}]
[[scenario]]
name = "zenoh"
environment = {{ HEARD = "no" }}
load = [{{ kind = "zenoh", publishers = 2, rate_hz = 100 }}]
"""


def lab(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TAUT, "lab", *arguments], cwd=folder, capture_output=True, text=True, timeout=1200)


def test_a_flood_reaches_a_ros_2_graph_and_says_when_nobody_listens(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedds")
    pytest.importorskip("zenoh")
    (tmp_path / "listener.py").write_text(LISTENER)
    (tmp_path / "lab.toml").write_text(LAB.format(python=sys.executable))
    ran = lab(tmp_path, "run", "lab.toml", "-o", "out", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/manifest.jsonl").read_text().splitlines()]
    trials = {line["scenario"]: line for line in lines if line["record"] == "trial"}
    assert {name: trial["status"] for name, trial in trials.items()} == dict.fromkeys(trials, "success"), ran.stderr

    heard, unheard, zenoh = (trials[name]["achieved"][0] for name in ("heard", "unheard", "zenoh"))
    metrics = trials["heard"]["metrics"]
    assert metrics["heard"] >= 20 and metrics["bytes"] == 300, "a stranger on the same domain hears it"
    assert heard["matched"] >= 3, "two of the load's own, one of the system"
    assert heard["unit"] == zenoh["unit"] == "messages/s received"
    assert unheard["unit"] == "messages/s written" and unheard["matched"] == 0
    assert min(load["achieved"] for load in (heard, unheard, zenoh)) > 0
    domains = {trial["metrics"]["domain"] for trial in trials.values()}
    assert len(domains) == 3 and domains <= set(range(70, 80)), "each start on a domain of its own"
    notes = " ".join(json.loads(ran.stdout)["notes"])
    assert "to no reader: in some trial no reader matched" in notes, notes


def test_a_missing_package_is_said_with_its_remedy(tmp_path: Path) -> None:
    text = LAB.format(python="python3").replace('python = "python3"', 'python = "./bare"')
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexec " + sys.executable + ' -I -S "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "lab.toml").write_text(text)
    checked = lab(tmp_path, "check", "lab.toml")
    assert checked.returncode == 2
    said = " ".join(checked.stdout.split())
    assert "needs the Python package cyclonedds" in said and "./bare -m pip install cyclonedds" in said, said
    assert "eclipse-zenoh" in said
