"""Labs of real ROS 2 nodes through the real binary: floods of real publishers, readiness by discovery, a domain a start, daemons."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

TAUT = Path(sys.executable).with_name("taut")
ROS2 = Path(os.environ.get("TAUT_TEST_ROS2", Path(__file__).parents[3] / ".venv-ros2")).absolute()
PYTHON = ROS2 / "bin/python"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON} is not there; run `make ros2`")

# The system under test. It leaves a daemon as `ros2 topic list` would: a node by itself, in a session of its own.
LISTENER = """
import os, subprocess, sys, rclpy
from rclpy.qos import qos_profile_sensor_data
from std_msgs.msg import String
from std_srvs.srv import Trigger
daemon = "import rclpy; rclpy.init(); rclpy.spin(rclpy.create_node('left_behind'))"
words = [sys.executable, "-c", daemon, "ros2cli.daemon", "--ros-domain-id", os.environ["ROS_DOMAIN_ID"]]
started = subprocess.Popen(words, start_new_session=True)
with open(os.environ["LEFT"], "a") as file:
    print(started.pid, file=file)
rclpy.init()
node = rclpy.create_node("listener")
heard = 0
def hear(message):
    global heard
    heard += 1
node.create_subscription(String, "/flood_topic_1", hear, qos_profile_sensor_data)
def answer(request, response):
    response.success, response.message = True, str(heard)
    return response
node.create_service(Trigger, "/heard", answer)
rclpy.spin(node)
"""

TRIAL = """
import json, os, time, rclpy
from std_srvs.srv import Trigger
rclpy.init()
node = rclpy.create_node("trial")
client = node.create_client(Trigger, "/heard")
there = client.service_is_ready() or client.wait_for_service(300)
heard, end = 0, time.monotonic() + 300
while heard < int(os.environ["WANTED"]) and time.monotonic() < end:
    asked = client.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(node, asked, timeout_sec=300)
    heard = int(asked.result().message)
print(json.dumps({"heard": heard, "domain": int(os.environ["ROS_DOMAIN_ID"]), "success": there}))
"""

LAB = """
trials = 1
settle_s = 0.2
applied = 0.2
domains = [80, 89]
python = "{python}"
environment = {{ ROS_AUTOMATIC_DISCOVERY_RANGE = "LOCALHOST", LEFT = "{left}", WANTED = "0" }}
[[process]]
name = "listener"
command = ["{python}", "listener.py"]
ready = {{ ros2 = "/heard" }}
ready_timeout_s = 300
[trial]
command = ["{python}", "trial.py"]
timeout_s = 1200
report = "json"
[metrics.heard]
[[scenario]]
name = "none"
[[scenario]]
name = "flood"
environment = {{ WANTED = "50" }}
load = [{{ kind = "ros2", publishers = 2, rate_hz = 50, payload_bytes = 300 }}]
[[scenario]]
name = "reliable"
environment = {{ WANTED = "20" }}
load = [{{ kind = "ros2", publishers = 1, rate_hz = 50, readers = 0, reliability = "reliable", history = "all" }}]
[[scenario]]
name = "unheard"
load = [{{ kind = "ros2", publishers = 1, rate_hz = 50, readers = 0, topic = "/nobody" }}]
"""


def lab(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([TAUT, "lab", *arguments], cwd=folder, capture_output=True, text=True, timeout=3600)


def write(folder: Path, more: str = "") -> Path:
    left = folder / "left"
    (folder / "listener.py").write_text(LISTENER)
    (folder / "trial.py").write_text(TRIAL)
    (folder / "lab.toml").write_text(LAB.format(python=PYTHON, left=left) + more)
    return left


def test_real_nodes_are_flooded_and_nothing_of_a_start_is_left(tmp_path: Path) -> None:
    left = write(tmp_path)
    # Its own reader is best-effort: on a busy machine it loses half of the flood.
    for attempt in range(10):
        left.write_text("")
        out = f"out{attempt}"
        ran = lab(tmp_path, "run", "lab.toml", "-o", out, "--format", "json")
        assert ran.returncode == 0, ran.stderr
        lines = [json.loads(line) for line in (tmp_path / out / "manifest.jsonl").read_text().splitlines()]
        trials = {line["scenario"]: line for line in lines if line["record"] == "trial"}
        lost = [topic["lost"] for topic in trials["flood"]["achieved"][0]["topics"]]
        if all(share is not None and share < 0.5 for share in lost):
            break
    assert {name: trial["status"] for name, trial in trials.items()} == dict.fromkeys(trials, "success"), ran.stdout

    domains = [trial["metrics"]["domain"] for trial in trials.values()]
    assert len(set(domains)) == 4 and set(domains) <= set(range(80, 90)), "each start on a domain of its own"
    flood, reliable, unheard = (trials[name]["achieved"][0] for name in ("flood", "reliable", "unheard"))
    assert trials["flood"]["metrics"]["heard"] >= 20, "the system hears it"
    # Of the flood's own reader both writers; of the system's the first. A writer begins with one of them, and the other may come later.
    assert flood["matched"] in (2, 3) and reliable["matched"] == 1 and unheard["matched"] == 0
    assert [topic["topic"] for topic in flood["topics"]] == ["/flood_topic_1", "/flood_topic_2"]
    for topic in flood["topics"]:
        assert topic["sent"] > 0 and topic["received"] > 0 and 0 <= topic["lost"] < 0.5
    (silent,) = unheard["topics"]
    assert silent["topic"] == "/nobody" and silent["sent"] > 0 and silent["received"] == 0 and silent["lost"] is None
    shown = json.loads(ran.stdout)
    (load,) = next(scenario for scenario in shown["scenarios"] if scenario["name"] == "flood")["loads"]
    assert [topic["topic"] for topic in load["topics"]] == ["/flood_topic_1", "/flood_topic_2"]

    daemons = [int(pid) for pid in left.read_text().split()]
    assert len(daemons) == 4
    # Killed by then; who adopted them takes its time to bury them.
    until = time.monotonic() + 60
    while (left_over := [pid for pid in daemons if Path(f"/proc/{pid}").exists()]) and time.monotonic() < until:
        time.sleep(0.05)
    assert left_over == []


@pytest.fixture
def daemon() -> Iterator[int]:
    """What looks as a daemon of ros2cli does, on domain 85; nobody's lab started it."""
    words = [sys.executable, "-c", "import time; time.sleep(1000)", "ros2cli.daemon", "--ros-domain-id", "85"]
    process = subprocess.Popen(words)
    # Between fork and exec it has this process' arguments.
    while b"ros2cli.daemon" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.01)
    yield process.pid
    process.kill()
    process.wait()


def test_a_daemon_of_others_on_a_domain_of_the_lab_is_named_and_left_alone(tmp_path: Path, daemon: int) -> None:
    write(tmp_path)
    remedy = "ROS_DOMAIN_ID=85 ros2 daemon stop"
    checked = lab(tmp_path, "check", "lab.toml")
    said = " ".join(checked.stdout.split())
    assert checked.returncode == 2 and f"the ROS 2 daemon {daemon} is on domain 85" in said and remedy in said, said
    ran = lab(tmp_path, "run", "lab.toml", "-o", "out")
    assert ran.returncode == 2 and remedy in ran.stderr, ran.stderr
    assert Path(f"/proc/{daemon}").exists()


def test_what_ros2_lacks_is_said_before_anything_runs(tmp_path: Path) -> None:
    more = '[sweep]\nscenario = "flood"\n[sweep.vary]\n"environment.RMW_IMPLEMENTATION" = ["rmw_fastrtps_cpp", "rmw_none_cpp"]\n'
    write(tmp_path, more)
    checked = lab(tmp_path, "check", "lab.toml")
    said = " ".join(checked.stdout.split())
    assert "ROS 2's discovery finds /heard" in said and "80 to 89: each start gets the next" in said
    assert checked.returncode == 2 and "cannot load rmw_none_cpp" in said and "rmw_fastrtps_cpp (" not in said, said
    text = (tmp_path / "lab.toml").read_text()
    (tmp_path / "lab.toml").write_text(text.replace('ros2 = "/heard"', 'ros2 = "heard"'))
    checked = lab(tmp_path, "check", "lab.toml")
    assert checked.returncode == 2 and "is no full name" in checked.stderr, checked.stderr
