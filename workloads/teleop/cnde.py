"""The controller's state stream on the wire: frames, their fields, and two ways to receive them.

A frame (all little-endian): head u16 0x5A5A, rolling count u8, type u8, length u16, data, tail u16 0xA5A5.
The client names the fields it wants in an output configuration (type 1: period in ms as u16, then the
names joined by commas), starts the stream (type 2) and gets data frames (type 4) whose bytes are the
fields in that order. Answers are messages (type 6) whose first byte is 0 for yes.

TCP keeps bytes, not frames: frames arrive joined or cut. `FramedReceiver` reads what the stream holds;
`SdkReceiver` does as the vendor's SDK does, one read is one frame, and loses what does not fit that.
The vendor's frames carry no checksum. What can be checked is checked: head, tail, a known type, and, for state
frames, exactly the length of the fields that were asked for.
"""

from __future__ import annotations

import calendar
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

HEAD, TAIL = b"\x5a\x5a", b"\xa5\xa5"
OUTPUT_CONFIG, OUTPUT_START, OUTPUT_STOP, OUTPUT_DATA, MESSAGE = 1, 2, 3, 4, 6
KINDS = (OUTPUT_CONFIG, OUTPUT_START, OUTPUT_STOP, OUTPUT_DATA, MESSAGE)
OVERHEAD_BYTES = 8
MAX_DATA_BYTES = 4096
READ_BYTES = 4096

FIELDS = {
    "robot_state": "B",
    "robot_mode": "B",
    "actual_joint_pos": "6d",
    "actual_TCP_pos": "6d",
    "actual_joint_vel": "6d",
    "actual_TCP_cmpvel": "2d",
    "motion_queue_len": "i",
    "safety_stop0_state": "B",
    "safety_stop1_state": "B",
    "rbt_enable_state": "i",
    "last_servoJ_target": "6d",
    "servoJ_cmd_num": "i",
    "robot_time": "HBBBBBH",
}
"""The fields this controller offers, with the SDK's names, units (deg, mm, deg/s) and types. `robot_time` is a
calendar time: year, month, day, hour, minute, second, millisecond."""

Values = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Frame:
    count: int
    kind: int
    data: bytes


def encode(frame: Frame) -> bytes:
    return HEAD + struct.pack("<BBH", frame.count, frame.kind, len(frame.data)) + frame.data + TAIL


def fields_bytes(names: Sequence[str]) -> int:
    return sum(struct.calcsize("<" + FIELDS[name]) for name in names)


def calendar_ns(robot_time: Sequence[float]) -> int:
    """`robot_time` as nanoseconds since 1970, in whole milliseconds."""
    *date, millisecond = (int(part) for part in robot_time)
    return (calendar.timegm((*date, 0, 0, 0)) * 1000 + millisecond) * 1_000_000


def unpack_fields(names: Sequence[str], data: bytes) -> Values:
    """Raises ValueError when the data are not exactly these fields."""
    layout = [struct.Struct("<" + FIELDS[name]) for name in names]
    if sum(part.size for part in layout) != len(data):
        raise ValueError(f"state data of {len(data)} bytes are not the {len(names)} fields asked for")
    values, offset = {}, 0
    for name, part in zip(names, layout, strict=True):
        values[name] = part.unpack_from(data, offset)
        offset += part.size
    return values


def output_config(period_ms: int, names: Sequence[str]) -> bytes:
    return struct.pack("<H", period_ms) + ",".join(names).encode()


@dataclass
class StreamCounts:
    """What a receiver saw. `gaps` are frames missing by their count, `lost_reads` reads thrown away."""

    reads: int = 0
    frames: int = 0
    gaps: int = 0
    duplicates: int = 0
    resyncs: int = 0
    lost_reads: int = 0
    joined_reads: int = 0


class Receiver(Protocol):
    counts: StreamCounts

    def feed(self, read: bytes) -> list[Frame]:
        """Frames completed by what one read brought, oldest first."""


class FramedReceiver:
    """Finds every whole frame, across joined and cut reads; skips garbage to the next frame that fits.

    With `data_bytes`, the length of a state frame's data, no garbled length can make it wait for bytes that
    never come: what is lost to garbage is the frames that it touched.
    """

    def __init__(self, data_bytes: int | None = None) -> None:
        self.counts = StreamCounts()
        self._data_bytes = data_bytes
        self._buffer = bytearray()
        self._order = _CountOrder(self.counts)
        self._in_garbage = False

    def feed(self, read: bytes) -> list[Frame]:
        self.counts.reads += 1
        self._buffer += read
        frames: list[Frame] = []
        offset = 0
        while True:
            frame, consumed, whole = self._next(offset)
            offset += consumed
            if frame is not None:
                self._in_garbage = False
                frames.append(frame)
            elif whole:
                break
        del self._buffer[:offset]
        self.counts.joined_reads += len(frames) > 1
        return [frame for frame in frames if self._order.admit(frame)]

    def _next(self, offset: int) -> tuple[Frame | None, int, bool]:
        """A frame if one is whole at `offset`, the bytes used up, and whether more must be read first."""
        buffer = self._buffer
        if len(buffer) - offset < OVERHEAD_BYTES:
            return None, 0, True
        kind, length = struct.unpack_from("<BH", buffer, offset + 3)
        end = offset + OVERHEAD_BYTES + length
        if buffer[offset : offset + 2] != HEAD or not self._may_be(kind, length):
            return None, self._skip(offset), False
        if len(buffer) < end:
            return None, 0, True
        if buffer[end - 2 : end] != TAIL:
            return None, self._skip(offset), False
        frame = Frame(buffer[offset + 2], kind, bytes(buffer[offset + 6 : end - 2]))
        return frame, end - offset, False

    def _may_be(self, kind: int, length: int) -> bool:
        if kind == OUTPUT_DATA and self._data_bytes is not None:
            return length == self._data_bytes
        return kind in KINDS and length <= MAX_DATA_BYTES

    def _skip(self, offset: int) -> int:
        """Bytes to the next possible head; one garbage stretch counts as one resynchronisation."""
        self.counts.resyncs += not self._in_garbage
        self._in_garbage = True
        found = self._buffer.find(HEAD, offset + 1)
        return (found if found >= 0 else len(self._buffer) - 1) - offset


class SdkReceiver:
    """One read, one frame: anything else is thrown away without a word, as the vendor's SDK does."""

    def __init__(self, data_bytes: int | None = None) -> None:
        self.counts = StreamCounts()
        self._order = _CountOrder(self.counts)

    def feed(self, read: bytes) -> list[Frame]:
        self.counts.reads += 1
        if len(read) >= OVERHEAD_BYTES:
            (length,) = struct.unpack_from("<H", read, 4)
            if read[:2] == HEAD and length == len(read) - OVERHEAD_BYTES and read[-2:] == TAIL:
                frame = Frame(read[2], read[3], read[6:-2])
                self._order.admit(frame)  # only to count: the SDK does not look at the count
                return [frame]
        self.counts.lost_reads += 1
        return []


RECEIVERS: dict[str, type[SdkReceiver] | type[FramedReceiver]] = {
    "sdk": SdkReceiver,
    "framed": FramedReceiver,
}


class _CountOrder:
    """Follows the rolling count of the data frames: gaps and duplicates."""

    def __init__(self, counts: StreamCounts) -> None:
        self._counts = counts
        self._newest: int | None = None

    def admit(self, frame: Frame) -> bool:
        """False for a frame that was seen before."""
        if frame.kind != OUTPUT_DATA:
            return True
        if self._newest is not None:
            step = (frame.count - self._newest) % 256
            if step == 0:
                self._counts.duplicates += 1
                return False
            self._counts.gaps += step - 1
        self._newest = frame.count
        self._counts.frames += 1
        return True
