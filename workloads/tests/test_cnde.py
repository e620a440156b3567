"""The state stream's parser: any joining or cutting of a valid stream yields exactly its frames."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.teleop.cnde import (
    HEAD,
    MESSAGE,
    OUTPUT_DATA,
    Frame,
    FramedReceiver,
    SdkReceiver,
    calendar_ns,
    encode,
    unpack_fields,
)

payloads = st.lists(st.binary(max_size=60), min_size=1, max_size=20)
cuts = st.lists(st.integers(min_value=1, max_value=50), min_size=1)


def data_frames(datas: list[bytes]) -> list[Frame]:
    return [Frame((250 + i) % 256, OUTPUT_DATA, data) for i, data in enumerate(datas)]


def in_pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return pieces


@given(payloads, cuts)
def test_any_cutting_and_joining_yields_exactly_the_frames(datas: list[bytes], sizes: list[int]) -> None:
    frames = data_frames(datas)
    receiver = FramedReceiver()
    stream = b"".join(map(encode, frames))
    seen = [frame for piece in in_pieces(stream, sizes) for frame in receiver.feed(piece)]
    assert seen == frames
    assert (receiver.counts.gaps, receiver.counts.duplicates, receiver.counts.resyncs) == (0, 0, 0)


@given(st.binary(max_size=80).filter(lambda b: b"\x5a" not in b), payloads, cuts)
def test_garbage_costs_one_resync_and_no_frame(garbage: bytes, datas: list[bytes], sizes: list[int]) -> None:
    frames = data_frames(datas)
    receiver = FramedReceiver()
    stream = garbage + b"".join(map(encode, frames))
    assert [f for piece in in_pieces(stream, sizes) for f in receiver.feed(piece)] == frames
    assert receiver.counts.resyncs == (1 if garbage else 0)


@given(st.lists(st.binary(max_size=300)))
def test_no_bytes_make_a_receiver_fail(reads: list[bytes]) -> None:
    for receiver in (FramedReceiver(), SdkReceiver()):
        for read in reads:
            receiver.feed(read)


def test_a_missing_count_is_a_gap_and_a_repeated_one_a_duplicate() -> None:
    receiver = FramedReceiver()
    stream = [encode(Frame(count, OUTPUT_DATA, b"x")) for count in (254, 255, 0, 0, 3)]
    assert [f.count for read in stream for f in receiver.feed(read)] == [254, 255, 0, 3]
    assert (receiver.counts.gaps, receiver.counts.duplicates) == (2, 1)


def test_the_sdk_loses_both_frames_of_a_joined_read_and_all_of_a_cut_one() -> None:
    one, two, three, four = (encode(f) for f in data_frames([b"a", b"b", b"c", b"d"]))
    receiver = SdkReceiver()
    assert len(receiver.feed(one)) == 1
    assert receiver.feed(two + three) == []
    assert receiver.feed(four[:5]) == [] == receiver.feed(four[5:])
    assert receiver.counts.lost_reads == 3


def test_messages_are_not_counted_as_state() -> None:
    receiver = FramedReceiver()
    assert receiver.feed(encode(Frame(9, MESSAGE, b"\x00"))) == [Frame(9, MESSAGE, b"\x00")]
    assert receiver.counts.frames == 0


def test_fields_come_in_the_order_asked_for_and_no_others() -> None:
    joints = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    packed = struct.pack("<B6d", 2, *joints)
    assert unpack_fields(["robot_state", "actual_joint_pos"], packed) == {
        "robot_state": (2,),
        "actual_joint_pos": joints,
    }
    with pytest.raises(ValueError, match="not the 1 fields"):
        unpack_fields(["actual_joint_pos"], packed)


SIZE = 40
garbled = st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=1, max_size=12)), max_size=8)


@given(st.lists(st.binary(min_size=SIZE, max_size=SIZE), min_size=1, max_size=30), garbled, cuts)
def test_overwritten_bytes_cost_the_frames_they_touch_and_no_other(
    datas: list[bytes], damage: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    # A head inside a payload may hide the frame behind a garbled one for a while; that is the next test.
    frames = [Frame(i % 256, OUTPUT_DATA, data.replace(b"\x5a", b"\x00")) for i, data in enumerate(datas)]
    whole = b"".join(map(encode, frames))
    stream = bytearray(whole)
    touched = set()
    length = len(encode(frames[0]))
    for at, noise in damage:
        noise = noise.replace(b"\x5a", b"\x00")
        at %= len(stream)
        for offset, byte in enumerate(noise):
            if at + offset < len(stream) and stream[at + offset] != byte:
                stream[at + offset] = byte
        touched |= {place // length for place in range(at, min(at + len(noise), len(stream)))}
    receiver = FramedReceiver(SIZE)
    seen = [frame for piece in in_pieces(bytes(stream), sizes) for frame in receiver.feed(piece)]
    untouched = [frame for at, frame in enumerate(frames) if at not in touched]
    # A garbled count or payload cannot be told; a frame that was not touched is not lost, unless a garbled count
    # made it look like a repetition.
    missing = [frame for frame in untouched if frame not in seen]
    assert len(missing) <= receiver.counts.duplicates
    assert len(seen) + receiver.counts.duplicates <= len(frames)


@given(st.lists(st.binary(min_size=SIZE, max_size=SIZE), min_size=4, max_size=30), st.integers(0, 65535), cuts)
def test_a_garbled_length_never_makes_the_receiver_wait(datas: list[bytes], length: int, sizes: list[int]) -> None:
    frames = [Frame(i % 256, OUTPUT_DATA, data.replace(HEAD, b"\x00\x00")) for i, data in enumerate(datas)]
    stream = bytearray(b"".join(map(encode, frames)))
    stream[4:6] = length.to_bytes(2, "little")
    receiver = FramedReceiver(SIZE)
    seen = [frame for piece in in_pieces(bytes(stream), sizes) for frame in receiver.feed(piece)]
    assert seen[-len(frames) + 2 :] == frames[2:]


def test_the_robots_calendar_is_read_in_milliseconds() -> None:
    assert calendar_ns((2024, 2, 29, 0, 0, 0, 123)) == 1_709_164_800_123_000_000
