"""Bags that other people's writers made, imported by taut: its figures are those that numpy finds in the same bag."""

import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter

rosbags = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
typesys = pytest.importorskip("rosbags.typesys", reason="needs rosbags")

TAUT = Path(sys.executable).with_name("taut")
START_NS = 1_700_000_000_000_000_000
MESSAGES = 2000
# Topic, period in ns, whether its type has a header.
TOPICS = [("/imu", 10_000_000, True), ("/tf", 20_000_000, True), ("/speed", 50_000_000, False)]

# (header, log) of each message, by topic; no header: None.
Times = dict[str, list[tuple[int | None, int]]]


def times() -> Times:
    """A jittering stream for each topic, of which now and then a message is missing."""
    rng = random.Random(7)
    found: Times = defaultdict(list)
    for topic, period_ns, has_header in TOPICS:
        for n in range(MESSAGES):
            if rng.random() < 0.01:
                continue
            stamped = START_NS + n * period_ns + rng.randrange(period_ns // 5)
            logged = stamped + 1_000_000 + rng.randrange(3_000_000)
            found[topic].append((stamped if has_header else None, logged))
    return found


def encoded(store: Any, topic: str, header_ns: int | None) -> bytes:
    """A message of the topic's type as the store of ROS types encodes it."""
    of = store.types
    if header_ns is None:
        return bytes(store.serialize_cdr(of["std_msgs/msg/Float64"](1.5), "std_msgs/msg/Float64"))
    stamp = of["builtin_interfaces/msg/Time"](header_ns // 10**9, header_ns % 10**9)
    header = of["std_msgs/msg/Header"](stamp, "base")
    vector, turn = of["geometry_msgs/msg/Vector3"](0, 0, 0), of["geometry_msgs/msg/Quaternion"](0, 0, 0, 1)
    if topic == "/imu":
        imu = of["sensor_msgs/msg/Imu"](header, turn, np.zeros(9), vector, np.zeros(9), vector, np.zeros(9))
        return bytes(store.serialize_cdr(imu, "sensor_msgs/msg/Imu"))
    transform = of["geometry_msgs/msg/Transform"](vector, turn)
    stamped = of["geometry_msgs/msg/TransformStamped"](header, "arm", transform)
    return bytes(store.serialize_cdr(of["tf2_msgs/msg/TFMessage"]([stamped]), "tf2_msgs/msg/TFMessage"))


TYPES = {"/imu": "sensor_msgs/msg/Imu", "/tf": "tf2_msgs/msg/TFMessage", "/speed": "std_msgs/msg/Float64"}


def bag(folder: Path, plugin: str, compression: str) -> Path:
    """A bag of `times`, written by rosbags."""
    store = typesys.get_typestore(typesys.Stores.LATEST)
    plugins, modes = rosbags.StoragePlugin, rosbags.CompressionMode
    writer = rosbags.Writer(folder / "bag", version=9, storage_plugin=plugins[plugin])
    writer.set_compression(modes[compression], rosbags.CompressionFormat.ZSTD)
    with writer:
        by_topic = {topic: writer.add_connection(topic, TYPES[topic], typestore=store) for topic, *_ in TOPICS}
        rows = [(logged, topic, header) for topic, rows in times().items() for header, logged in rows]
        for logged, topic, header in sorted(rows, key=lambda row: row[0]):
            writer.write(by_topic[topic], logged, encoded(store, topic, header))
    return folder / "bag"


def mcap(folder: Path, compression: CompressionType) -> Path:
    """The same in plain MCAP, published 0.5 ms before it was logged."""
    store = typesys.get_typestore(typesys.Stores.LATEST)
    with (folder / "bag.mcap").open("wb") as file:
        writer = McapWriter(file, compression=compression)
        writer.start(profile="ros2", library="test")
        channels = {}
        for topic, *_ in TOPICS:
            schema = writer.register_schema(
                TYPES[topic], "ros2msg", store.generate_msgdef(TYPES[topic], ros_version=2)[0].encode()
            )
            channels[topic] = writer.register_channel(topic, "cdr", schema)
        for topic, rows in times().items():
            for header, logged in rows:
                writer.add_message(channels[topic], logged, encoded(store, topic, header), logged - 500_000)
        writer.finish()
    return folder / "bag.mcap"


def report(source: Path, folder: Path) -> dict[str, Any]:
    """What taut finds in it."""
    run = folder / "run.mcap"
    subprocess.run([TAUT, "import", "rosbag2", source, "-o", run], check=True)
    found: dict[str, Any] = json.loads(subprocess.check_output([TAUT, "report", run, "--format", "json"]))
    return found


def rank(sample: list[int], q: float) -> int:
    """The nearest rank, as docs/reference/report.md has it."""
    return int(np.quantile(np.array(sample), q, method="inverted_cdf"))


def periods(moments: list[int]) -> list[int]:
    return [int(period) for period in np.diff(np.sort(np.array(moments)))]


def held(found: dict[str, Any], publish_ns: int | None) -> None:
    """Holds a report against the times that are in the bag."""
    points = {point["name"]: point for chain in found["chains"] for point in chain["points"]}
    points |= {point["name"]: point for point in found["points"]}
    for topic, rows in times().items():
        expected = {"log": [logged for _, logged in rows], "header": [header for header, _ in rows if header]}
        expected["publish"] = [logged - publish_ns for _, logged in rows] if publish_ns else []
        for name, moments in expected.items():
            if not moments:
                assert f"{topic} {name}" not in points
                continue
            point, between = points[f"{topic} {name}"], periods(moments)
            median = rank(between, 0.5)
            jitter = [abs(period - median) for period in between]
            figures = {q: point["period"][f"{q}_ns"] for q in ("p50", "p99", "max")}
            assert figures == {"p50": median, "p99": rank(between, 0.99), "max": max(between)}, (topic, name)
            assert point["period_jitter"]["p99_ns"] == rank(jitter, 0.99)
            assert point["gaps"] == sum(2 * period > 3 * median for period in between) > 5
            assert point["messages"] == len(moments)
        ages = [logged - header for header, logged in rows if header is not None]
        if not ages:
            continue
        chain = next(chain for chain in found["chains"] if chain["points"][0]["name"] == f"{topic} header")
        way = chain["end_to_end"]
        assert (way["n"], way["p50_ns"], way["p99_ns"]) == (len(ages), rank(ages, 0.5), rank(ages, 0.99))
        assert (way["min_ns"], way["max_ns"]) == (min(ages), max(ages))
    assert found["recording"]["duration_s"] == pytest.approx(100, rel=0.01)
    assert any("no header stamp to be found in /speed (std_msgs/msg/Float64)" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("plugin", "compression"),
    [("SQLITE3", "NONE"), ("SQLITE3", "FILE"), ("SQLITE3", "MESSAGE"), ("MCAP", "NONE"), ("MCAP", "MESSAGE")],
)
def test_a_bag_of_rosbags_has_the_figures_that_numpy_finds(plugin: str, compression: str, tmp_path: Path) -> None:
    held(report(bag(tmp_path, plugin, compression), tmp_path), None)


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD])
def test_an_mcap_file_has_the_figures_that_numpy_finds(compression: CompressionType, tmp_path: Path) -> None:
    held(report(mcap(tmp_path, compression), tmp_path), 500_000)
