"""What `taut export` writes, read by the tools that it is for."""

import csv
import shutil
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

TAUT = Path(sys.executable).with_name("taut")
MESSAGES = 60
PROGRAM = """
    import queue, threading, time
    import taut

    inbox = queue.Queue()

    def work():
        while (i := inbox.get()) is not None:
            taut.stamp("b.taken", i)
            sum(range(2000))
            taut.stamp("c.done", i)
            taut.applied(i)

    thread = threading.Thread(target=work)
    thread.start()
    for i in range(60):
        taut.stamp("a.put", i)
        inbox.put(i)
        time.sleep(0.002)
    inbox.put(None)
    thread.join()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    (folder / "robot.py").write_text(textwrap.dedent(PROGRAM))
    command = [TAUT, "record", "-q", "-o", folder / "run.mcap", "--", sys.executable, folder / "robot.py"]
    subprocess.run(command, check=True)
    return folder / "run.mcap"


def export(form: str, run: Path, ending: str) -> Path:
    to = run.with_suffix(ending)
    subprocess.run([TAUT, "export", form, run, "-o", to], check=True)
    return to


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
    assert len(flows) == shown(run) >= MESSAGES / 2
    assert {tracks[t.parent_uuid].name for t in tracks.values() if t.parent_uuid} == {"a.put → c.done"}
    switches = [e for p in trace.packet for e in p.ftrace_events.event if e.HasField("sched_switch")]
    if not switches:
        pytest.skip("no kernel events here, so no thread states to look at")
    assert any(e.sched_switch.next_comm.startswith("python") for e in switches)


def test_trace_processor_joins_hops_and_knows_the_threads_states(run: Path) -> None:
    shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if shell is None:
        pytest.skip("no trace_processor in PATH: get it at get.perfetto.dev/trace_processor")
    path = str(export("perfetto", run, ".pftrace"))
    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shell)) as processor:

        def one(query: str) -> int:
            return int(next(iter(processor.query(f"select count(*) as n from {query}"))).n)

        assert one("slice where name = 'a.put → b.taken'") == one("flow") == shown(run)
        assert one("stats where severity = 'error' and value > 0") == 0
        if one("sched") > 0:
            assert one("thread_state join thread using (utid) where name glob 'python*' and state = 'S'") > 0


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
