"""`taut record --serve` and `--otlp`, read by the parsers of those who scrape and collect; what idle clients change."""

import contextlib
import json
import os
import re
import resource
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32  # type: ignore[attr-defined]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as text_metrics
from reported import reported

TAUT = Path(sys.executable).with_name("taut")
PROTO = Path(__file__).parent / "data" / "metrics.proto"
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0"
MESSAGES = 300
CHAIN = 'plan "a" → arm.done'
# 300 messages over a queue, each tenth dropped; then it waits for the test to let it end.
PROGRAM = f"""
    import queue, sys, threading, time
    import taut

    inbox = queue.Queue()

    def work():
        while (i := inbox.get()) is not None:
            taut.stamp("arm.taken", i)
            if i % 10 == 9:
                taut.drop(i, "speed_limit")
                continue
            sum(range(3000))
            taut.stamp("arm.done", i)
            taut.applied(i)

    thread = threading.Thread(target=work)
    thread.start()
    taut.value("guard.armed", 1.0)
    for i in range({MESSAGES}):
        taut.stamp('plan "a"', i)
        if i == 100:
            taut.value("guard.trip", 1.2)
        inbox.put(i)
        time.sleep(0.002)
    inbox.put(None)
    thread.join()
    sys.stdin.read()
"""


# A loop that stamps until the test lets it end, and then writes how many cycles there were.
LOOP = """
    import sys, threading
    from pathlib import Path
    import taut

    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    cycles = 0
    while not over.wait(0.001):
        taut.stamp("cycle.begin", cycles)
        taut.stamp("cycle.end", cycles)
        cycles += 1
    Path("cycles").write_text(str(cycles))
"""


class Running:
    """A recorder with its command, and where it serves."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.folder = folder

    def get(self, accept: str = "", path: str = "/metrics") -> tuple[str, bytes]:
        request = urllib.request.Request(self.url + path, headers={"Accept": accept} if accept else {})
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.headers["Content-Type"], answer.read()

    def end(self) -> int:
        """Lets the command end."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.stderr
        self.process.stderr.read()
        return self.process.wait()


@contextlib.contextmanager
def recorder(folder: Path, *options: object, program: str = PROGRAM) -> Iterator[Running]:
    (folder / "robot.py").write_text(textwrap.dedent(program))
    # A busy machine may lose kernel events. Of lost stamps the tests have counts.
    words = ["record", "--ignore-loss", *options, "--serve", "127.0.0.1:0", "--", sys.executable, folder / "robot.py"]
    with subprocess.Popen(
        [str(word) for word in (TAUT, *words)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        assert process.stderr
        try:
            for line in process.stderr:
                if found := re.search(r"metrics at (http://127\.0\.0\.1:\d+)/metrics", line):
                    yield Running(process, found[1], folder)
                    break
            else:
                raise AssertionError("it does not serve")
        finally:
            process.kill()


def wait_for(condition: Any) -> Any:
    """Until it holds; a machine that is busy may take its time."""
    for _ in range(3000):
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come to be")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("metrics")
    with recorder(folder, "-o", "run.mcap") as running:

        def is_all_there() -> bool:
            families = text_metrics(running.get()[1].decode())
            ended = [s.value for f in families if f.name == "taut_messages" for s in f.samples]
            return sum(ended) == MESSAGES

        wait_for(is_all_there)
        yield running


def samples(families: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


@pytest.mark.parametrize("accept", ["", OPEN_METRICS])
def test_text_reads_as_prometheus_and_open_metrics_have_it(running: Running, accept: str) -> None:
    kind, body = running.get(accept)
    parse = open_metrics if accept else text_metrics
    assert kind.startswith("application/openmetrics-text; version=1.0.0" if accept else "text/plain; version=0.0.4")
    families = list(parse(body.decode()))
    types = {family.name: (family.type, family.unit) for family in families}
    assert types["taut_chain_latency_nanoseconds"] == ("histogram", "nanoseconds" if accept else "")
    found = samples(families)
    assert found["taut_messages_total", labelled(chain=CHAIN, outcome="applied")] == 270
    assert found["taut_messages_total", labelled(chain=CHAIN, outcome="speed_limit")] == 30
    assert found["taut_partial_messages_total", labelled(chain=CHAIN)] == 0
    assert found["taut_lost_total", labelled(what="stamps")] == 0
    assert found["taut_guard_trips_total", labelled()] == 1 and found["taut_guard_armed", labelled()] == 1
    whole = found["taut_chain_latency_nanoseconds_sum", labelled(chain=CHAIN)]
    assert found["taut_chain_latency_nanoseconds_count", labelled(chain=CHAIN)] == 270
    hops = [('plan "a"', "arm.taken", 300), ("arm.taken", "arm.done", 270)]
    of_hops = 0.0
    for start, end, count in hops:
        of_hop = labelled(chain=CHAIN, **{"from": start, "to": end})
        assert found["taut_hop_latency_nanoseconds_count", of_hop] == count
        of_hops += found["taut_hop_latency_nanoseconds_sum", of_hop]
        # What a hop's time was spent on is all of its time, whoever it is told by.
        of_cause = [key for key in found if key[0] == "taut_hop_cause_nanoseconds_sum" and of_hop < key[1]]
        assert sum(found[key] for key in of_cause) == found["taut_hop_latency_nanoseconds_sum", of_hop] > 0
    assert of_hops >= whole > 0


def message_class(name: str) -> Any:
    """Of the official .proto."""
    folder = PROTO.parent
    protoc = Path(sys.executable).with_name("protoc")
    command = [protoc, f"-I{folder}", "--include_imports", "--descriptor_set_out=/dev/stdout", PROTO]
    described = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def delimited(kind: Any, body: bytes) -> list[Any]:
    messages, at = [], 0
    while at < len(body):
        length, at = _DecodeVarint32(body, at)
        messages.append(kind.FromString(body[at : at + length]))
        at += length
    return messages


def native_buckets(histogram: Any) -> dict[int, int]:
    """By index, as Prometheus reads spans and deltas."""
    buckets, index, count = {}, 0, 0
    deltas = iter(histogram.positive_delta)
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            count += next(deltas)
            buckets[index] = count
            index += 1
    assert not list(deltas)
    return buckets


def test_native_histograms_read_by_the_official_schema(running: Running) -> None:
    kind, body = running.get(f"{PROTOBUF};q=0.7,{OPEN_METRICS};q=0.5,*/*;q=0.1")
    assert kind.startswith("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily")
    families = {family.name: family for family in delimited(message_class("io.prometheus.client.MetricFamily"), body)}
    latency = families["taut_chain_latency_nanoseconds"]
    assert (latency.type, latency.unit) == (4, "nanoseconds")
    (metric,) = latency.metric
    assert [(label.name, label.value) for label in metric.label] == [("chain", CHAIN)]
    histogram = metric.histogram
    assert (histogram.schema, histogram.sample_count) == (6, 270)
    buckets = native_buckets(histogram)
    assert all(count > 0 for count in buckets.values())
    assert sum(buckets.values()) + histogram.zero_count == 270
    # Bucket i holds what is above 2^((i − 1)/64) and up to 2^(i/64): the sum lies between.
    low, high = (sum(n * 2 ** ((i - off) / 64) for i, n in buckets.items()) for off in (1, 0))
    assert low <= histogram.sample_sum <= high * (1 + 1e-9)
    classic = [(bucket.upper_bound, bucket.cumulative_count) for bucket in histogram.bucket]
    assert classic == sorted(classic) and len(classic) == 22
    for bound, cumulative in classic:
        assert cumulative == sum(n for i, n in buckets.items() if 2 ** (i / 64) <= bound * (1 + 1e-12))
    counts = {m.label[1].value: m.counter.value for m in families["taut_messages_total"].metric}
    assert counts == {"applied": 270, "speed_limit": 30}


def test_what_is_not_served_is_said(running: Running) -> None:
    assert b"/metrics" in running.get(path="/")[1]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        running.get(path="/favicon.ico")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(running.url + "/metrics", data=b"x", timeout=300)


class Sink(HTTPServer):
    """A collector that keeps what it gets; it refuses the first push."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, ExportMetricsServiceRequest]] = []
        self.refusals = 1
        super().__init__(("127.0.0.1", 0), Receiver)


class Receiver(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.refusals -= 1
        if self.server.refusals >= 0:
            self.send_error(503)
            return
        pushed = ExportMetricsServiceRequest.FromString(body)
        self.server.got.append((self.path, self.headers["Content-Type"], pushed))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_collector_gets_exponential_histograms_and_the_last_messages(tmp_path: Path) -> None:
    with Sink() as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{sink.server_port}"
        with recorder(tmp_path, "--no-file", "--otlp", url, "--otlp-period", "0.2") as running:
            wait_for(lambda: sink.got)
            # What comes at the very end is pushed, too.
            assert running.end() == 0
        sink.shutdown()
    assert not list(tmp_path.glob("*.mcap")), "nobody wanted a file"
    path, kind, last = sink.got[-1]
    assert (path, kind) == ("/v1/metrics", "application/x-protobuf")
    (of_resource,) = last.resource_metrics
    resource = {a.key: a.value.string_value for a in of_resource.resource.attributes}
    assert resource["service.name"] == "taut" and "robot.py" in resource["process.command_line"]
    (scope,) = of_resource.scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    latency = metrics["taut.chain.latency"]
    assert latency.unit == "ns"
    assert latency.exponential_histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = latency.exponential_histogram.data_points
    assert {a.key: a.value.string_value for a in point.attributes} == {"chain": CHAIN}
    assert (point.scale, point.count) == (6, 270)
    counts = list(point.positive.bucket_counts)
    assert sum(counts) + point.zero_count == 270 and counts[0] > 0 and counts[-1] > 0
    # Bucket i holds what is above 2^(i/64) and up to 2^((i + 1)/64).
    first, final = point.positive.offset, point.positive.offset + len(counts) - 1
    assert 2 ** (first / 64) < point.min <= 2 ** ((first + 1) / 64) * (1 + 1e-9)
    assert 2 ** (final / 64) < point.max <= 2 ** ((final + 1) / 64) * (1 + 1e-9)
    assert 0 < point.start_time_unix_nano < point.time_unix_nano <= time.time_ns()
    outcomes = metrics["taut.messages"].sum
    assert outcomes.is_monotonic
    ended = {a.value.string_value: p.as_int for p in outcomes.data_points for a in p.attributes if a.key == "outcome"}
    assert ended == {"applied": 270, "speed_limit": 30}
    assert metrics["taut.guard.armed"].gauge.data_points[0].as_double == 1


def test_metrics_and_report_agree(running: Running) -> None:
    """One analysis: what was served is what the report says, up to the start-up that only the report sets apart."""
    served = samples(text_metrics(running.get()[1].decode()))
    assert running.end() == 0
    outcomes = json.loads(reported(running.folder / "run.mcap"))["chains"][0]["outcomes"]
    assert outcomes["applied"] == served["taut_messages_total", labelled(chain=CHAIN, outcome="applied")]
    assert outcomes["dropped"] == {"speed_limit": 30}


def children(pid: int) -> list[str]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


def schedule(pid: int) -> list[tuple[str, int, int, int]]:
    """Name, policy, real-time priority and nice value of each thread (proc(5), fields 19, 40 and 41 of stat)."""
    threads = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # An analysis has helpers for a moment, under its name.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            text = (task / "stat").read_text()
            fields = text[text.rindex(")") + 2 :].split()
            threads.append(
                (text[text.index("(") + 1 : text.rindex(")")], int(fields[38]), int(fields[37]), int(fields[16]))
            )
    return sorted(threads)


def test_five_thousand_idle_clients_change_nothing_for_the_recorder(tmp_path: Path) -> None:
    """And nothing for the loop beside, which stamps while they come."""
    clients = 5000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < clients + 200:
        pytest.skip(f"{hard} open files at most: {clients} clients take more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, clients + 200), hard))
    with (
        recorder(tmp_path, "-o", "run.mcap", "--tier", "stamps", program=LOOP) as running,
        contextlib.ExitStack() as idle,
    ):
        # Its threads are there by then.
        wait_for(lambda: b"cycle.end" in running.get()[1])
        robot = wait_for(lambda: [int(pid) for pid in children(running.process.pid)])[0]
        before = set(schedule(running.process.pid)), schedule(robot)
        host, port = running.url.removeprefix("http://").split(":")
        for number in range(clients):
            client = idle.enter_context(socket.create_connection((host, int(port)), timeout=300))
            # Every other one begins a request and never ends it.
            if number % 2:
                with contextlib.suppress(OSError):
                    client.sendall(b"GET /metrics HTTP/1.1\r\nx: ")
            if number % 500 == 0:
                assert (set(schedule(running.process.pid)), schedule(robot)) == before
        # It still answers, from one thread, under the same policies, with few descriptors.
        assert b"taut_lost_total" in running.get()[1]
        assert (set(schedule(running.process.pid)), schedule(robot)) == before
        names = Counter(name for name, *_ in schedule(running.process.pid))
        # An analysis has at most as many helpers as there are hops or CPUs; a client has no thread.
        assert names["taut-serve"] == 1 and names.total() < 20, names
        assert len(list(Path(f"/proc/{running.process.pid}/fd").iterdir())) < 100
        assert running.end() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found = json.loads(reported(tmp_path / "run.mcap"))
    cycles = int((tmp_path / "cycles").read_text())
    assert found["recording"]["lost_stamps"] == 0 and found["chains"][0]["messages"] == cycles > 0


# What a viewer says first; RFC 6455 section 1.3 has the key.
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n"
)


def test_silent_viewers_change_nothing_for_the_loop_beside(tmp_path: Path) -> None:
    with (
        recorder(tmp_path, "-o", "run.mcap", "--tier", "stamps", program=LOOP) as running,
        contextlib.ExitStack() as silent,
    ):
        wait_for(lambda: b"cycle.end" in running.get()[1])
        robot = wait_for(lambda: [int(pid) for pid in children(running.process.pid)])[0]
        before = set(schedule(running.process.pid)), schedule(robot)
        command = [TAUT, "telemetry", tmp_path / "run.mcap", "--live", "127.0.0.1:0"]
        live = silent.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        silent.callback(live.kill)
        assert live.stderr
        lines = (re.search(r"live at ws://127\.0\.0\.1:(\d+)", line) for line in live.stderr)
        address = next(filter(None, lines))
        answers = Counter[bytes]()
        for _ in range(300):
            viewer = silent.enter_context(socket.create_connection(("127.0.0.1", int(address[1])), timeout=300))
            # The places are taken after 64 of them.
            with contextlib.suppress(ConnectionError):
                viewer.sendall(HANDSHAKE)
                answers[viewer.recv(12)] += 1
        assert answers[b"HTTP/1.1 101"] >= 64, answers
        # One thread for all of them; it and the command's own give way.
        threads = schedule(live.pid)
        assert [name for name, *_ in threads] == ["taut", "taut-live"]
        assert {tuple(policy) for _, *policy in threads} == {(os.SCHED_BATCH, 0, os.nice(0))}
        assert (set(schedule(running.process.pid)), schedule(robot)) == before
        assert running.end() == 0
    found = json.loads(reported(tmp_path / "run.mcap"))
    cycles = int((tmp_path / "cycles").read_text())
    assert found["recording"]["lost_stamps"] == 0 and found["chains"][0]["messages"] == cycles > 0


def test_a_web_page_sees_live_telemetry_where_its_origin_is_allowed(tmp_path: Path) -> None:
    with recorder(tmp_path, "-o", "run.mcap", "--tier", "stamps", program=LOOP) as running:
        wait_for(lambda: b"cycle.end" in running.get()[1])
        words = ["--live", "127.0.0.1:0", "--allow-origin", "https://app.example"]
        command = [TAUT, "telemetry", tmp_path / "run.mcap", *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as live:
            try:
                assert live.stderr
                lines = (re.search(r"live at ws://127\.0\.0\.1:(\d+)", line) for line in live.stderr)
                port = int(next(filter(None, lines))[1])
                answers = []
                for origin in (b"https://app.example", b"https://evil.example"):
                    with socket.create_connection(("127.0.0.1", port), timeout=300) as page:
                        page.sendall(HANDSHAKE.replace(b"\r\n\r\n", b"\r\nOrigin: " + origin + b"\r\n\r\n"))
                        answers.append(page.recv(12))
            finally:
                live.kill()
        assert answers == [b"HTTP/1.1 101", b"HTTP/1.1 403"]
        assert running.end() == 0


def test_what_cannot_be_served_costs_no_run(tmp_path: Path) -> None:
    def says(*options: str) -> str:
        command = [
            str(TAUT),
            "record",
            *options,
            "-o",
            str(tmp_path / "run.mcap"),
            "--",
            "touch",
            str(tmp_path / "ran"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 125
        assert not (tmp_path / "ran").exists() and not (tmp_path / "run.mcap").exists()
        return done.stderr

    with HTTPServer(("127.0.0.1", 0), Receiver) as taken:
        said = says("--serve", f"127.0.0.1:{taken.server_port}")
        assert f"cannot serve at 127.0.0.1:{taken.server_port}" in said and "choose another port" in said
    assert "no address to serve at" in says("--serve", "nowhere")
    assert "plain http" in says("--otlp", "https://collector.example")
