"""The official moteus client, unchanged, drives our simulated servos through a pty."""

import asyncio
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import moteus
import pytest

TAUT = Path(sys.executable).with_name("taut")


@pytest.fixture
def buses() -> Iterator[list[str]]:
    """Two served buses: the paths of their ptys."""
    server = subprocess.Popen([TAUT, "bus", "sim:1-3", "sim:2,9", "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield [server.stdout.readline().strip().removeprefix("fdcanusb:") for _ in range(2)]
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=300) == 0


def transport(paths: list[str]) -> moteus.Transport:
    # On what is no USB device moteus sends a command again after 0.2 s without an answer: a console then answers twice.
    patient = {"command_timeout": 60, "response_timeout": 60}
    return moteus.Transport([moteus.FdcanusbDevice(path, **patient) for path in paths])


def test_discover_finds_every_servo_with_its_uuid(buses: list[str]) -> None:
    async def run() -> None:
        found = await transport(buses).discover()
        assert sorted(device.can_id for device in found) == [1, 2, 2, 3, 9]
        assert len({device.uuid for device in found}) == 5
        # Two servos called 2 on different buses are both addressable.
        assert all(device.address is not None for device in found)

    asyncio.run(run())


def test_servos_go_where_they_are_told_and_report(buses: list[str]) -> None:
    async def run() -> None:
        bus = transport(buses[:1])
        servos = {n: moteus.Controller(id=n, transport=bus) for n in (1, 2, 3)}
        for _ in range(5000):
            commands = [
                s.make_position(position=0.1 * n, watchdog_timeout=math.nan, query=True) for n, s in servos.items()
            ]
            results = await bus.cycle(commands)
            assert [result.id for result in results] == [1, 2, 3]
            places = [result.values[moteus.Register.POSITION] for result in results]
            if all(abs(place - 0.1 * n) < 1e-3 for place, n in zip(places, servos, strict=True)):
                break
        else:
            pytest.fail(f"they stopped at {places}")
        assert {result.values[moteus.Register.MODE] for result in results} == {moteus.Mode.POSITION}

    asyncio.run(run())


def test_a_silent_host_times_out_and_only_stop_leaves(buses: list[str]) -> None:
    async def run() -> None:
        servo = moteus.Controller(id=1, transport=transport(buses[:1]))

        async def mode() -> int:
            return (await servo.query()).values[moteus.Register.MODE]

        await servo.set_position(position=math.nan, watchdog_timeout=0.02)
        for _ in range(10_000):
            if await mode() == moteus.Mode.TIMEOUT:
                break
        await servo.set_position(position=math.nan)
        assert await mode() == moteus.Mode.TIMEOUT
        await servo.set_stop()
        assert await mode() == moteus.Mode.STOPPED

    asyncio.run(run())


def test_a_servo_is_addressed_by_its_uuid(buses: list[str]) -> None:
    async def run() -> None:
        bus = transport(buses[:1])
        device = next(d for d in await bus.discover() if d.can_id == 2)
        address = moteus.DeviceAddress(uuid=device.uuid[:4], transport_device=device.address.transport_device)
        # Not by query(): that of moteus 1.1.1 leaves the UUID out of its frame.
        result = await moteus.Controller(id=address, transport=bus).set_brake(query=True)
        assert (result.id, result.values[moteus.Register.MODE]) == (2, moteus.Mode.BRAKE)
        others = [await moteus.Controller(id=n, transport=bus).query() for n in (1, 3)]
        assert {other.values[moteus.Register.MODE] for other in others} == {moteus.Mode.STOPPED}

    asyncio.run(run())


def test_the_diagnostic_stream_answers(buses: list[str]) -> None:
    async def run(use_flow_control: bool | None) -> None:
        servo = moteus.Controller(id=2, transport=transport(buses[:1]))
        await servo.set_position(position=math.nan, watchdog_timeout=math.nan)
        stream = moteus.Stream(servo, use_flow_control=use_flow_control)
        # As moteus_tool does: the last packet of the stream before has not been acknowledged.
        await stream.flush_read()
        assert await stream.command(b"tel stop") == b""
        assert await stream.command(b"conf get id.id", allow_any_response=True) == b"2"
        with pytest.raises(moteus.moteus.CommandError, match="ERR unknown command"):
            await stream.command(b"conf write")
        assert await stream.command(b"d stop") == b""
        assert (await servo.query()).values[moteus.Register.MODE] == moteus.Mode.STOPPED

    for use_flow_control in (None, True, False):
        asyncio.run(run(use_flow_control))
