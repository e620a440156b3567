"""What `taut export` writes, read by the tools that it is for."""

import base64
import csv
import socket
import subprocess
import sys
import time
import zlib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from report_figures import figures
from reported import reported
from trace_processor import trace_processor

TAUT = Path(sys.executable).with_name("taut")


def export(form: str, run: Path, ending: str) -> Path:
    to = run.with_suffix(ending)
    subprocess.run([TAUT, "export", form, run, "-o", to], check=True)
    return to


def report(run: Path) -> dict[str, Any]:
    return figures(reported(run))


def shown(run: Path) -> int:
    """Messages without the start-up, which is left out."""
    with export("csv", run, ".csv").open(newline="") as file:
        return len({row["message"] for row in csv.DictReader(file)})


def test_perfetto_s_own_schema_reads_the_trace(run: Path) -> None:
    trace = Trace.FromString(export("perfetto", run, ".pftrace").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    open_slices: dict[int, list[str]] = defaultdict(list)
    flows: dict[int, list[str]] = defaultdict(list)
    last: dict[int, int] = defaultdict(int)
    for packet in trace.packet:
        # A field that Perfetto does not know would be one that taut numbers wrongly.
        assert len(UnknownFieldSet(packet)) == 0
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= last[event.track_uuid], "a track goes on in time"
        last[event.track_uuid] = packet.timestamp
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append(event.name)
            for flow in [*event.flow_ids, *event.terminating_flow_ids]:
                flows[flow].append(event.name)
        else:
            open_slices[event.track_uuid].pop()
    assert not any(open_slices.values())
    assert all(names == ["a.put → b.taken", "b.taken → c.done"] for names in flows.values())
    assert len(flows) == shown(run) >= 60
    assert {tracks[t.parent_uuid].name for t in tracks.values() if t.parent_uuid} == {"a.put → c.done"}
    switches = [e for p in trace.packet for e in p.ftrace_events.event if e.HasField("sched_switch")]
    assert bool(switches) == has_scheduling(run)
    if not switches:
        pytest.skip("no kernel events here, so no thread states to look at")
    assert any(e.sched_switch.next_comm.startswith("python") for e in switches)


def has_scheduling(run: Path) -> bool:
    """Of the full tier all tasks' switches are recorded, of the others none."""
    return bool(report(run)["recording"]["tier"] == "full")


def missing_switches(trace: Trace) -> int:
    """How often a thread leaves a CPU that another one came to last: there a switch is missing. Full buffers lose some, and Linux 6.18 leaves
    some out (docs/reference/kernel-events.md). The export adds none, since nothing says when they were."""
    of_cpus: dict[int, list[Any]] = defaultdict(list)
    for packet in trace.packet:
        events = packet.ftrace_events.event
        of_cpus[packet.ftrace_events.cpu] += [event for event in events if event.HasField("sched_switch")]
    missing = 0
    for events in of_cpus.values():
        events.sort(key=lambda event: event.timestamp)
        switches = [event.sched_switch for event in events]
        missing += sum(one.next_pid != other.prev_pid for one, other in pairwise(switches))
    return missing


def test_trace_processor_joins_hops_and_knows_the_threads_states(run: Path) -> None:
    exported = export("perfetto", run, ".pftrace")
    with trace_processor(exported) as processor:

        def one(query: str) -> int:
            return int(processor.query(f"select count(*) as n from {query}")[0].n)

        assert one("slice where name = 'a.put → b.taken'") == one("flow") == shown(run) >= 60
        errors = processor.query("select name, value from stats where severity = 'error' and value > 0")
        missing = missing_switches(Trace.FromString(exported.read_bytes()))
        expected = {"mismatched_sched_switch_tids": missing} if missing else {}
        assert {error.name: error.value for error in errors} == expected
        # A hop's end is where the next one begins, as the flow says.
        apart = """flow join slice a on a.id = slice_out join slice b on b.id = slice_in
                   where a.name != 'a.put → b.taken' or b.name != 'b.taken → c.done' or a.ts + a.dur != b.ts"""
        assert one(apart) == 0
        assert (one("sched") > 0) == has_scheduling(run)
        slept = one("thread_state join thread using (utid) where name glob 'python*' and state = 'S'")
        assert (slept > 0) == has_scheduling(run)


def test_a_row_s_causes_sum_to_its_duration(run: Path) -> None:
    with export("csv", run, ".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["from"], row["to"], row["hop"]) for row in rows} == {
        ("a.put", "b.taken", "1"),
        ("b.taken", "c.done", "2"),
    }
    for row in rows:
        causes = sum(
            int(value)
            for name, value in row.items()
            if name.endswith("_ns") and name not in ("start_ns", "duration_ns")
        )
        assert causes == int(row["duration_ns"])


def test_tables_of_parquet_say_what_the_report_says(run: Path) -> None:
    """Read by polars; quantiles of rows are the report's, causes sum to hops, hops to ways."""
    import polars as pl

    folder = export("parquet", run, ".tables")
    tables = {path.stem: pl.read_parquet(path) for path in folder.iterdir()}
    assert sorted(tables) == ["causes", "hops", "messages", "thread_states"]
    [chain] = report(run)["chains"]
    messages = tables["messages"]
    assert len(messages) == chain["messages"] == messages["nth"].n_unique()
    assert messages.filter(pl.col("outcome") == "stale").height == chain["outcomes"]["dropped"]["stale"] == 3
    warm = messages.filter(~pl.col("startup"))
    assert warm["way_ns"].drop_nulls().len() == chain["end_to_end"]["n"]
    assert warm["way_ns"].max() == chain["end_to_end"]["max_ns"]
    hops = tables["hops"].filter(~pl.col("startup"))
    for hop in chain["hops"]:
        of_hop = hops.filter((pl.col("from") == hop["from"]) & (pl.col("to") == hop["to"]))["duration_ns"]
        assert (of_hop.len(), of_hop.min(), of_hop.max()) == (hop["n"], hop["min_ns"], hop["max_ns"])
    of_message = tables["hops"].group_by("chain", "nth").agg(pl.col("duration_ns").sum())
    ways = messages.filter(pl.col("way_ns").is_not_null()).join(of_message, on=["chain", "nth"])
    assert (ways["way_ns"] == ways["duration_ns"]).all()
    key = ["chain", "nth", "hop"]
    causes = tables["causes"].group_by(key).agg(pl.col("duration_ns").sum().alias("spent_ns"))
    spent = tables["hops"].filter(pl.col("duration_ns") > 0).join(causes, on=key, how="left")
    assert (spent["spent_ns"] == spent["duration_ns"]).all()
    states = tables["thread_states"]
    if states.height == 0:
        pytest.skip("no kernel events here, so no thread states to look at")
    own = states.filter(pl.col("recorded"))
    assert {"running", "blocked"} <= set(own["state"].unique())
    gap = own.sort("tid", "start_ns").select(
        pl.col("tid"), gap=pl.col("start_ns").shift(-1).over("tid") - pl.col("start_ns") - pl.col("duration_ns")
    )
    assert gap["gap"].drop_nulls().min() == 0


def test_latencies_are_plain_messages_of_the_copy(run: Path) -> None:
    """Read by the stock packages, and by taut, which finds the same in the copy."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    copy = export("foxglove", run, ".foxglove.mcap")
    found: dict[str, dict[int, float]] = defaultdict(dict)
    periods_us: dict[str, list[float]] = defaultdict(list)
    times = []
    with copy.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            if channel.topic.startswith("/latency/"):
                assert schema.name == "taut/msg/Latency" and schema.encoding == "ros2msg"
                found[channel.topic][decoded.message] = decoded.duration_us
                times.append(message.log_time)
            if channel.topic.startswith("/period/"):
                periods_us[channel.topic].append(decoded.duration_us)
    [chain] = report(run)["chains"]
    name = chain["name"]
    assert set(found) == {
        f"/latency/{name}",
        *(f"/latency/{name}/{hop['from']} → {hop['to']}" for hop in chain["hops"]),
    }
    periods = periods_us[f"/period/{name}"]
    # Also of messages that were dropped and so have no latency of the whole way.
    assert len(periods) == chain["messages"] - 1 > len(found[f"/latency/{name}"]) - 1 and min(periods) > 0
    # A layout shows the delays and the periods, and no ids.
    subprocess.run([TAUT, "telemetry", copy, "--layouts"], check=True, capture_output=True)
    layout = copy.with_suffix(".foxglove.json").read_text()
    assert "/period/" in layout and ".duration_us" in layout and ".message" not in layout
    for message, way_us in found[f"/latency/{name}"].items():
        hops_us = sum(found[topic][message] for topic in found if topic.count("→") == 2)
        assert abs(way_us - hops_us) < 1e-6
    recording = report(run)["recording"]
    start = recording["start_realtime_ns"]
    assert all(start <= time <= start + recording["duration_s"] * 1e9 for time in times)
    assert report(copy)["chains"] == report(run)["chains"]
    done = subprocess.run([TAUT, "export", "foxglove", run, "-o", run], capture_output=True, text=True)
    assert done.returncode == 2 and "cannot copy a recording onto itself" in done.stderr


def test_an_interval_log_has_every_delay_once(run: Path) -> None:
    log = export("hlog", run, ".hlog").read_text()
    [chain] = report(run)["chains"]
    counted: dict[str, int] = defaultdict(int)
    for line in log.splitlines():
        if line.startswith("Tag="):
            tag, _, _, _, packed = line.split(",")
            counted[tag.removeprefix("Tag=")] += values(packed)
    assert counted == {
        "a.put→c.done": chain["end_to_end"]["n"],
        **{f"a.put→c.done/{hop['from']}→{hop['to']}": hop["n"] for hop in chain["hops"]},
    }


def values(packed: str) -> int:
    """How many values a histogram holds: V2 encoding, HdrHistogram's own documentation of it."""
    data = zlib.decompress(base64.b64decode(packed)[8:])
    at, end, total = 40, 40 + int.from_bytes(data[4:8], "big"), 0
    while at < end:
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            # Seven bits a byte; the ninth byte, if there is one, has eight.
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift == 63:
                break
        count = (number >> 1) ^ -(number & 1)
        # A negative one is a run of empty places.
        total += max(count, 0)
    return total


def test_a_bad_recording_leaves_no_file_behind(tmp_path: Path) -> None:
    (tmp_path / "no.mcap").write_text("hello\n")
    for form in ("perfetto", "parquet", "csv", "foxglove", "hlog", "folded"):
        done = subprocess.run([TAUT, "export", form, tmp_path / "no.mcap"], capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1 and "no.mcap" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["no.mcap"]


def test_perfetto_has_a_machine_for_each_host(tmp_path: Path) -> None:
    # A port of its own: the page of two hosts runs the same programs beside this test.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    for example in (Path(__file__).parents[2] / "examples/two_hosts").glob("*.py"):
        code = example.read_text()
        assert "4711" in code
        (tmp_path / example.name).write_text(code.replace("4711", str(port)))
    record = [TAUT, "record", "-q", "--ignore-loss", "--host-name"]
    robot = subprocess.Popen([*record, "robot", "-o", "robot.mcap", "--", sys.executable, "robot.py"], cwd=tmp_path)
    # The desk waits for answers, so the robot has to listen before it sends.
    while f":{port:04X} " not in Path("/proc/net/udp").read_text():
        assert robot.poll() is None
        time.sleep(0.05)
    desk = [sys.executable, "desk.py", "--seconds", "1"]
    subprocess.run([*record, "desk", "-o", "desk.mcap", "--", *desk], cwd=tmp_path, check=True)
    assert robot.wait(timeout=60) == 0
    subprocess.run([TAUT, "merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"], cwd=tmp_path, check=True)
    with trace_processor(export("perfetto", tmp_path / "run.mcap", ".pftrace")) as processor:
        assert [row.raw_id for row in processor.query("select raw_id from machine order by raw_id")] == [0, 1]
        programs = processor.query("select name, machine_id from process where pid > 0 and name != ''")
        hosts = {(row.name.split(":")[0], row.machine_id) for row in programs}
        assert hosts == {("desk", None), ("robot", 1)}
        errors = processor.query("select name from stats where severity = 'error' and value > 0")
        assert {error.name for error in errors} <= {"mismatched_sched_switch_tids"}
