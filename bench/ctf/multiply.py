"""Makes a long LTTng trace of ROS 2 out of a short one: the same events again and again, later each time.

Only for traces of LTTng's user space on little-endian machines with the large event header, as the sample of the tests is.
What the programs made at their start is said once; of what they do then every copy is later by the same time, source
timestamps too, so that no two messages share one.
"""

import argparse
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path

PACKET_MAGIC, METADATA_HEAD, HEAD, PAGE = 0xC1FC1FC1, 37, 84, 4096
COMPACT, EXTENDED = 32, 65535
# Lower bits of a time stay as they are, and with them the compact timestamps.
SHIFT_NS = 1 << 33
STAMPS = {"source_stamp", "source_timestamp", "message_timestamp", "timestamp"}


@dataclass
class Template:
    """Events of a stream as bytes, with the places of the 64-bit times in them."""

    body: bytearray = field(default_factory=bytearray)
    stamps: list[tuple[int, int]] = field(default_factory=list)
    begin: int = 0
    end: int = 0
    events: int = 0

    def add(self, event: int, time: int, payload: bytes, stamps: list[tuple[int, int]]) -> None:
        last, self.end = (self.end if self.events else time), time
        self.begin = self.begin if self.events else time
        if event < EXTENDED and time - last < 1 << COMPACT:
            self.body += struct.pack("<HI", event, time & ((1 << COMPACT) - 1))
        else:
            self.body += struct.pack("<HI", EXTENDED, event)
            self.stamps.append((len(self.body), time))
            self.body += struct.pack("<Q", time)
        self.stamps += [(len(self.body) + at, value) for at, value in stamps]
        self.body += payload
        self.events += 1

    def packet(self, head: bytes, cpu: int, sequence: int, shift: int) -> bytes:
        body = bytearray(self.body)
        for at, value in self.stamps:
            struct.pack_into("<Q", body, at, value + shift)
        content = HEAD + len(body)
        size = -(-content // PAGE) * PAGE
        fields = (self.begin + shift, self.end + shift, content * 8, size * 8, sequence, 0, cpu)
        return head + struct.pack("<6QI", *fields) + body + bytes(size - content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder of the trace: that with the file metadata")
    parser.add_argument("to", type=Path, help="folder to write")
    parser.add_argument("--events", type=int, help="at least so many events")
    parser.add_argument("--bytes", type=int, help="at least so many bytes of streams")
    options = parser.parse_args()
    print(multiply(options.source, options.to, options.events or 0, options.bytes or 0))


def multiply(source: Path, to: Path, events: int, size: int) -> int:
    """Writes a trace of at least so many events and bytes; returns how many events it has."""
    types = event_types(metadata_text((source / "metadata").read_bytes()))
    started = min(times(source, types, {"ros2:callback_start"}))
    to.mkdir(parents=True, exist_ok=True)
    (to / "metadata").write_bytes((source / "metadata").read_bytes())
    streams = []
    for path in sorted(path for path in source.iterdir() if path.is_file() and path.name != "metadata"):
        once, again = Template(), Template()
        head, cpu = b"", 0
        for of_packet, event, time, payload, stamps in decoded(path.read_bytes(), types):
            head, cpu = of_packet
            (again if time >= started else once).add(event, time, payload, stamps)
        streams.append((path.name, head, cpu, once, again))
    each = sum(again.events for *_, again in streams)
    bytes_each = sum(-(-(HEAD + len(again.body)) // PAGE) * PAGE for *_, again in streams)
    copies = max(1, -(-events // each), -(-size // bytes_each))
    for name, head, cpu, once, again in streams:
        with (to / name).open("wb") as file:
            if once.events:
                file.write(once.packet(head, cpu, 0, 0))
            for copy in range(copies if again.events else 0):
                file.write(again.packet(head, cpu, copy + bool(once.events), copy * SHIFT_NS))
    return sum(once.events for *_, once, _ in streams) + each * copies


def metadata_text(packed: bytes) -> str:
    """The text in metadata packets."""
    text, at = b"", 0
    while at + METADATA_HEAD <= len(packed):
        content, size = struct.unpack_from("<II", packed, at + 24)
        text += packed[at + METADATA_HEAD : at + content // 8]
        at += size // 8
    return text.decode()


def event_types(text: str) -> dict[int, tuple[str, list[tuple[str, int]]]]:
    """Of each event: its name, and its fields with their bytes (0: a string), those of every event's context first."""
    integer = r"integer \{ size = (\d+);[^}]*\} _(\w+)(?:\[(\d+)\])?;|string _(\w+);"

    def fields(struct_text: str) -> list[tuple[str, int]]:
        found = re.findall(integer, struct_text)
        return [(name or string, int(size or 0) // 8 * int(count or 1)) for size, name, count, string in found]

    context = re.search(r"event\.context := struct \{(.*?)\n\t\};", text, re.S)
    common = fields(context[1]) if context else []
    pattern = r'event \{\n\tname = "([^"]+)";\n\tid = (\d+);.*?fields := struct \{(.*?)\n\t\};'
    return {int(number): (name, common + fields(body)) for name, number, body in re.findall(pattern, text, re.S)}


def times(source: Path, types: dict, names: set[str]) -> list[int]:
    """When events of these names happened."""
    paths = (path for path in source.iterdir() if path.is_file() and path.name != "metadata")
    events = (event for path in paths for event in decoded(path.read_bytes(), types))
    return [time for _, event, time, *_ in events if types[event][0] in names]


def decoded(stream: bytes, types: dict):
    """Each event: its packet's head and CPU, its number, time, payload, and where in that source timestamps are."""
    start = 0
    while start < len(stream):
        (magic,) = struct.unpack_from("<I", stream, start)
        assert magic == PACKET_MAGIC, f"no packet at byte {start}"
        begin, _, content, size, _, _, cpu = struct.unpack_from("<6QI", stream, start + 32)
        at, clock, end = start + HEAD, begin, start + content // 8
        while at < end:
            event, low = struct.unpack_from("<HI", stream, at)
            if event == EXTENDED:
                event, clock = struct.unpack_from("<IQ", stream, at + 2)
                at += 14
            else:
                moved = clock & ~((1 << COMPACT) - 1) | low
                clock, at = moved + (1 << COMPACT if moved < clock else 0), at + 6
            payload_at, stamps = at, []
            for name, length in types[event][1]:
                if name in STAMPS:
                    (value,) = struct.unpack_from("<Q", stream, at)
                    stamps += [(at - payload_at, value)] if value else []
                at += length or stream.index(0, at) + 1 - at
            yield (stream[start : start + 32], cpu), event, clock, stream[payload_at:at], stamps
        start += size // 8


if __name__ == "__main__":
    main()
