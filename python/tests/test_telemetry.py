"""Telemetry from Python, read back with what other people use: mcap + mcap-ros2-support, and rosbags."""

import json
import math
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import taut
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from taut.structs import Layout
from taut.telemetry import Channel, describe

TAUT = Path(sys.executable).with_name("taut")

PROGRAM = """
    import numpy as np
    from taut.telemetry import Channel

    joint = [("position", "f8"), ("torque", "f4"), ("mode", "u1")]
    log = Channel(
        "leg",
        [("cycle", "u8"), ("joint", joint, (3,)), ("contact", "?", (4,)), ("state", "S8")],
        rate_hz=400,
        units={"joint.position": "rad", "joint.torque": "N·m"},
        constants={"joint.mode": {"STOPPED": 0, "POSITION": 10}},
    )
    imu = Channel("imu", [("gyro", "f4", (3,))])
    for cycle in range(500):
        log.row["cycle"] = cycle
        log.row["joint"]["position"][2] = cycle / 4
        log.row["joint"]["mode"] = 10
        log.row["contact"][cycle % 4] ^= True
        log.row["state"] = b"trot" if cycle % 2 else b"stand"
        log.write()
        if cycle % 10 == 0:
            imu.row["gyro"] = (1, 2, cycle)
            imu.write()
    assert log.lost() == 0, log.lost()
"""


def record(folder: Path, program: str) -> Path:
    (folder / "robot.py").write_text(textwrap.dedent(program))
    run = folder / "run.mcap"
    env = {k: v for k, v in os.environ.items() if k != "TAUT_SESSION"}
    command = [TAUT, "record", "-q", "--tier", "stamps", "-o", run, "--", sys.executable, folder / "robot.py"]
    subprocess.run(command, check=True, env=env)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("telemetry"), PROGRAM)


def test_the_stock_packages_decode_every_message(run: Path) -> None:
    legs: list[Any] = []
    with run.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for _, channel, message, decoded in reader.iter_decoded_messages():
            if channel.topic == "/telemetry/leg":
                assert message.sequence == decoded.cycle
                legs.append(decoded)
    assert [leg.cycle for leg in legs] == list(range(500))
    assert [leg.joint[2].position for leg in legs] == [cycle / 4 for cycle in range(500)]
    assert {leg.joint[0].mode for leg in legs} == {10}
    assert legs[4].state == "stand" and legs[5].state == "trot"
    assert list(legs[0].contact) == [True, False, False, False]


def test_rosbags_reads_schema_and_bytes(run: Path) -> None:
    rosbags = pytest.importorskip("rosbags.typesys", reason="needs rosbags")
    store = rosbags.get_typestore(rosbags.Stores.EMPTY)
    with run.open("rb") as file:
        reader = make_reader(file)
        for schema, channel, message in reader.iter_messages(topics=["/telemetry/leg"]):
            assert schema is not None and channel.message_encoding == "cdr"
            if schema.name not in store.types:
                store.register(rosbags.get_types_from_msg(schema.data.decode(), schema.name))
            leg = store.deserialize_cdr(message.data, schema.name)
            assert leg.joint[2].position == leg.cycle / 4
    assert store.types["telemetry/msg/LegJoint"]


def test_two_versions_of_a_struct_are_matched_by_name(tmp_path: Path) -> None:
    program = """
        from taut.telemetry import Channel

        log = Channel("leg", {fields})
        for cycle in range(10):
            log.row["position"], log.row["torque"] = cycle, cycle / 4
            log.write()
    """
    old, new = (
        [("position", "f4"), ("torque", "f8")],
        [("torque", "f4"), ("mode", "u1"), ("position", "i8")],
    )
    runs = []
    for name, fields in (("old", old), ("new", new)):
        (tmp_path / name).mkdir()
        runs.append(taut.open(record(tmp_path / name, program.format(fields=fields))))
    tables = [run.telemetry("/telemetry/leg") for run in runs]
    for table in tables:
        assert table["position"].tolist() == list(range(10))
        assert table["torque"].tolist() == [cycle / 4 for cycle in range(10)]
    assert [("mode" in table.columns) for table in tables] == [False, True], "what was not logged is not made up"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--live", "robot"], '"robot" is no address to serve at'),
        (["--live", "192.0.2.1:8765"], "cannot serve at 192.0.2.1:8765: "),
        (["--live", "--last", "3"], "cannot be used with"),
    ],
)
def test_live_view_refuses_what_it_cannot_serve(run: Path, tmp_path: Path, words: list[str], said: str) -> None:
    growing = tmp_path / "growing.mcap"
    growing.write_bytes(run.read_bytes()[:-1])
    done = subprocess.run([TAUT, "telemetry", growing, *words], capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_there_is_no_live_view_of_what_has_ended(run: Path, tmp_path: Path) -> None:
    done = subprocess.run([TAUT, "telemetry", run, "--live", "0"], capture_output=True, text=True)
    assert done.returncode == 2 and "has ended; " in done.stderr and done.stderr.count("\n") == 1, done.stderr
    (tmp_path / "no.mcap").write_bytes(bytes(5000))
    done = subprocess.run([TAUT, "telemetry", tmp_path / "no.mcap", "--live", "0"], capture_output=True, text=True)
    assert done.returncode == 2 and "no.mcap: " in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_units_and_constants_stand_in_the_schema(run: Path) -> None:
    with run.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    schemas = {schema.name: schema.data.decode() for schema in summary.schemas.values()}
    text = schemas["telemetry/msg/Leg"]
    assert "float64 position # rad\n" in text and "uint8 POSITION=10\n" in text, text


def test_taut_log_prints_one_channel_and_writes_layouts(run: Path) -> None:
    def taut(*arguments: str) -> str:
        return subprocess.run([TAUT, "telemetry", run, *arguments], capture_output=True, text=True, check=True).stdout

    channels = {channel["topic"]: channel for channel in json.loads(taut("--format", "json"))["channels"]}
    assert {topic: channel["messages"] for topic, channel in channels.items()} == {
        "/telemetry/leg": 500,
        "/telemetry/imu": 50,
    }
    last = [json.loads(line) for line in taut("--channel", "/telemetry/imu", "--last", "2").splitlines()]
    assert [line["value"]["gyro"][2] for line in last] == [480.0, 490.0]
    taut("--layouts")
    foxglove = json.loads(run.with_suffix(".foxglove.json").read_text())
    paths = [path["value"] for panel in foxglove["configById"].values() for path in panel["paths"]]
    assert "/telemetry/leg.joint[2].position" in paths
    assert "/telemetry/leg/joint[2]/position" in run.with_suffix(".plotjuggler.xml").read_text()


def test_without_a_session_a_write_goes_nowhere() -> None:
    log = Channel("nowhere", [("x", "f8")])
    log.row["x"] = 3
    log.write()
    assert log.lost() == 0


class Gait(IntEnum):
    STAND = 0
    TROT = 1


@pytest.mark.parametrize(
    ("name", "rate_hz", "says"),
    [
        ("leg", 0, "rate_hz is 0"),
        ("leg", math.nan, "nan"),
        ("leg", -1, "-1"),
        ("leg", 1e12, "up to 1e"),
        ("", 400, "needs a name"),
        (" \t", 400, "needs a name"),
    ],
)
def test_a_channel_of_no_rate_or_no_name_is_refused(name: str, rate_hz: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Channel(name, [("a", "f8")], rate_hz=rate_hz)


def test_the_description_follows_the_dtype() -> None:
    dtype = np.dtype([("gait", "i4"), ("foot", [("z", "f4")], (2, 2))], align=True)
    assert describe("quad", dtype, {"foot.z": "m"}, {"gait": Gait}) == (
        "type\tquad_foot\t4\nfield\tz\tfloat32\t0\t0\tm\n"
        "type\tquad\t20\nconstant\tgait\tGait_STAND\t0\nconstant\tgait\tGait_TROT\t1\n"
        "field\tgait\tint32\t0\t0\t\nfield\tfoot\tstruct quad_foot\t4\t4\t\n"
    )


DATACLASSES = """
    from dataclasses import dataclass, field
    from enum import IntEnum
    from typing import Annotated
    import numpy as np
    from taut.telemetry import Channel

    class Mode(IntEnum):
        STOPPED = 0
        POSITION = 10

    @dataclass
    class Joint:
        position: Annotated[float, "rad"] = 0.0
        torque: np.float32 = np.float32(0)
        mode: Mode = Mode.STOPPED
        trace: np.ndarray = field(default_factory=lambda: np.zeros((2, 3), "i2"))

    @dataclass
    class Leg:
        cycle: int = 0
        contact: bool = False
        joint: list[Joint] = field(default_factory=lambda: [Joint() for _ in range(3)])
        foot: tuple[float, float, float] = (0.0, 0.0, 0.0)
        state: Annotated[bytes, 8] = b""

    leg = Leg()
    log = Channel("leg", leg, rate_hz=400)
    for cycle in range(200):
        leg.cycle, leg.contact, leg.state = cycle, cycle % 2 == 1, b"trot"
        leg.joint[2].position = cycle / 4
        leg.joint[1] = Joint(mode=Mode.POSITION, torque=cycle / 8)
        leg.joint[0].trace[1, 2] = -cycle
        leg.foot = (1.0, 2.0, cycle)
        log.write()
    assert log.lost() == 0, log.lost()
"""


def test_a_dataclass_s_object_is_copied_field_by_field(tmp_path: Path) -> None:
    run = record(tmp_path, DATACLASSES)
    with run.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        decoded = [leg for _, channel, _, leg in reader.iter_decoded_messages() if channel.topic == "/telemetry/leg"]
        summary = reader.get_summary()
    assert summary is not None and [leg.cycle for leg in decoded] == list(range(200))
    leg = decoded[101]
    assert (leg.contact, leg.state, leg.foot) == (True, "trot", [1.0, 2.0, 101.0])
    assert [joint.position for joint in leg.joint] == [0.0, 0.0, 25.25]
    assert (leg.joint[1].mode, leg.joint[1].torque) == (10, 12.625)
    assert list(leg.joint[0].trace) == [0, 0, 0, 0, 0, -101]
    text = next(s.data.decode() for s in summary.schemas.values() if s.name == "telemetry/msg/Leg")
    assert "float64 position # rad\n" in text and "int32 MODE_POSITION=10\n" in text, text


@dataclass
class Flat:
    gait: Gait = Gait.STAND
    height: Annotated[float, "m"] = 0.0
    feet: list[float] = field(default_factory=lambda: [0.0] * 4)


def test_an_object_s_description_is_that_of_its_dtype() -> None:
    layout = Layout(Flat())
    assert layout.dtype == np.dtype([("gait", "i4"), ("height", "f8"), ("feet", "f8", (4,))])
    assert layout.units == {"height": "m"} and layout.constants == {"gait": Gait}


@dataclass
class Empty:
    feet: list[float] = field(default_factory=list)


@dataclass
class Words:
    state: str = ""


@dataclass
class Letters:
    state: bytes = b""


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (Flat, r"give an object, Flat\(…\)"),
        (Empty(), "field 'feet' is empty"),
        (Words(), "field 'state'"),
        (Letters(), r"Annotated\[bytes, 16\]"),
    ],
)
def test_an_object_that_has_no_fixed_layout_is_a_type_error(value: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        Channel("bad", value)


@pytest.mark.parametrize(
    ("dtype", "error"),
    [
        ("f8", "needs named fields"),
        ([("x", "f2")], "field 'x'"),
        ([("x", ">f8")], "byte order"),
        ([("x", "U4")], "field 'x'"),
        ([("a", [("x", "O")])], "field 'a.x'"),
    ],
)
def test_what_the_recording_cannot_hold_is_a_type_error(dtype: Any, error: str) -> None:
    with pytest.raises(TypeError, match=error):
        Channel("bad", dtype)


def test_a_unit_of_no_field_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"units names 'joint.speed'"):
        Channel("leg", [("joint", [("position", "f8")])], units={"joint.speed": "rad/s"})
