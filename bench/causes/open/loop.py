#!/usr/bin/env python3
"""The open loop of loop.c in Python: an asyncio service that handles requests of a client which sends at its own times. Kinds:
sleep (a handler blocks the event loop now and then), work (it computes), gil (another thread computes in Python)."""

import argparse
import asyncio
import os
import random
import socket
import struct
import threading
import time

import taut

ID = struct.Struct("<Q")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--period-us", type=float, default=2000)
    parser.add_argument("--poisson", action="store_true")
    parser.add_argument("--work-us", type=float, default=300)
    parser.add_argument("--size-us", type=float, default=15_000)
    parser.add_argument("--every-us", type=float, default=100_000)
    parser.add_argument("--kind", default="sleep", choices=["sleep", "work", "gil"])
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=1)
    options = parser.parse_args()
    service, client = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        service.close()
        os.sched_setaffinity(0, {1 - options.cpu})
        send(client, options)
        os._exit(0)
    client.close()
    os.sched_setaffinity(0, {options.cpu})
    if options.kind == "gil" and not options.off:
        threading.Thread(target=hold_gil, args=(options,), daemon=True).start()
    asyncio.run(serve(service, options))
    os.waitpid(pid, 0)


def send(to: socket.socket, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed)
    period_s = options.period_us / 1e6
    due = time.monotonic() + 0.3
    for number in range(1, options.messages + 1):
        due += chance.expovariate(1 / period_s) if options.poisson else period_s
        time.sleep(max(due - time.monotonic(), 0))
        taut.stamp("client.sent", number)
        to.sendall(ID.pack(number))


async def serve(connection: socket.socket, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed + 1)
    reader, _ = await asyncio.open_connection(sock=connection)
    strike = time.monotonic()
    for _ in range(options.messages):
        (number,) = ID.unpack(await reader.readexactly(ID.size))
        taut.stamp("service.received", number)
        compute(options.work_us)
        if options.kind != "gil" and not options.off and time.monotonic() > strike:
            strike = time.monotonic() + options.every_us / 1e6 * chance.uniform(0.5, 1.5)
            if options.kind == "sleep":
                time.sleep(options.size_us / 1e6)
            else:
                compute(options.size_us)
        taut.stamp("service.done", number)
        taut.applied(number)


def hold_gil(options: argparse.Namespace) -> None:
    chance = random.Random(options.seed + 2)
    while True:
        time.sleep(options.every_us / 1e6 * chance.uniform(0.5, 1.5))
        compute(options.size_us)


def compute(us: float) -> None:
    """For so long by the thread's own clock."""
    until = time.thread_time_ns() + int(us * 1e3)
    while time.thread_time_ns() < until:
        pass


if __name__ == "__main__":
    main()
