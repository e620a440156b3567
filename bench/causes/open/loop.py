#!/usr/bin/env python3
"""The open loop of loop.cpp in Python: an asyncio service that handles requests of a client which sends at its own times, or,
with --threads, a thread that takes them from a queue. Kinds: sleep (a handler blocks now and then), work (it computes), gil
(another thread computes in Python); of threads lock (another thread holds it), and queue and condition (a helper thread is asked
for half of the work, and now and then computes longer). With --log, a line of each message as loop.cpp writes it."""

import argparse
import asyncio
import os
import queue
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import taut

# Its number, and when it was due.
MESSAGE = struct.Struct("<QQ")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--period-us", type=float, default=2000)
    parser.add_argument("--poisson", action="store_true")
    parser.add_argument("--work-us", type=float, default=300)
    parser.add_argument("--size-us", type=float, default=15_000)
    parser.add_argument("--every-us", type=float, default=100_000)
    parser.add_argument("--kind", default="sleep", choices=["sleep", "work", "gil", "lock", "queue", "condition"])
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("--threads", action="store_true", help="instead of asyncio")
    parser.add_argument("--log", default="")
    options = parser.parse_args()
    if options.priority:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.priority))
    if options.threads:
        serve_by_threads(options)
        return
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
        threading.Thread(target=hold_gil, args=(options,), daemon=True, name="holder").start()
    asyncio.run(serve(service, options))
    os.waitpid(pid, 0)


def send(to: socket.socket, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed)
    period_s = options.period_us / 1e6
    due = time.monotonic() + 1
    for number in range(1, options.messages + 1):
        due += chance.expovariate(1 / period_s) if options.poisson else period_s
        time.sleep(max(due - time.monotonic(), 0))
        due_ns = round(due * 1e9)
        taut.stamp_at("client.sent", number, due_ns)
        to.sendall(MESSAGE.pack(number, due_ns))


async def serve(connection: socket.socket, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed + 1)
    reader, _writer = await asyncio.open_connection(sock=connection)
    strike = time.monotonic()
    log = Log(options.log)
    for _ in range(options.messages):
        number, due_ns = MESSAGE.unpack(await reader.readexactly(MESSAGE.size))
        taut.stamp("service.received", number)
        log.take(due_ns)
        compute(options.work_us)
        if options.kind != "gil" and not options.off and time.monotonic() > strike:
            strike = time.monotonic() + options.every_us / 1e6 * chance.uniform(0.5, 1.5)
            if options.kind == "sleep":
                time.sleep(options.size_us / 1e6)
                log.wait(int(options.size_us * 1e3))
            else:
                compute(options.size_us)
                log.put_in(options.size_us)
        taut.stamp("service.done", number)
        taut.applied(number)
        log.done()
    log.write()


def serve_by_threads(options: argparse.Namespace) -> None:
    """The source is a thread of its own too: it sleeps nearly always."""
    chance = random.Random(options.seed + 1)
    inbox: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    lock = threading.Lock()
    taut.name_lock("cfg_lock", lock)
    threading.Thread(target=send_by_queue, args=(inbox, options), daemon=True, name="source").start()
    if options.kind == "lock" and not options.off:
        threading.Thread(target=hold_lock, args=(lock, options), daemon=True, name="holder").start()
    helper = {"queue": by_queue, "condition": by_condition}.get(options.kind, lambda: compute)()
    os.sched_setaffinity(0, {options.cpu})
    strike = time.monotonic()
    log = Log(options.log)
    for _ in range(options.messages):
        number, due_ns = inbox.get()
        taut.stamp("service.received", number)
        log.take(due_ns)
        strikes = time.monotonic() > strike
        if strikes:
            strike = time.monotonic() + options.every_us / 1e6 * chance.uniform(0.5, 1.5)
        compute(options.work_us / 2)
        extra_us = options.size_us * (strikes and not options.off and options.kind != "lock")
        log.ask(helper, options.work_us / 2, extra_us)
        asks_ns = time.monotonic_ns()
        with lock:
            pass
        if options.kind == "lock":
            log.wait(time.monotonic_ns() - asks_ns)
        taut.stamp("service.done", number)
        taut.applied(number)
        log.done()
    log.write()


def send_by_queue(inbox: queue.SimpleQueue, options: argparse.Namespace) -> None:
    os.sched_setaffinity(0, {1 - options.cpu})
    if options.priority:
        # Before the helper, which may be on its CPU.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(options.priority + 1))
    chance = random.Random(options.seed)
    due = time.monotonic() + 1
    for number in range(1, options.messages + 1):
        due += chance.expovariate(1e6 / options.period_us) if options.poisson else options.period_us / 1e6
        time.sleep(max(due - time.monotonic(), 0))
        due_ns = round(due * 1e9)
        taut.stamp_at("source.sent", number, due_ns)
        inbox.put((number, due_ns))


def by_queue():
    """A helper that is asked and answers by queues."""
    jobs: queue.Queue[float] = queue.Queue()
    answers: queue.Queue[bool] = queue.Queue()

    def help_out() -> None:
        while True:
            compute(jobs.get())
            answers.put(True)

    threading.Thread(target=help_out, daemon=True, name="helper").start()

    def ask(us: float) -> None:
        jobs.put(us)
        answers.get()

    return ask


def by_condition():
    """The same by a condition variable."""
    changed = threading.Condition()
    job = 0.0

    def help_out() -> None:
        nonlocal job
        while True:
            with changed:
                while not job:
                    changed.wait()
                us = job
            compute(us)
            with changed:
                job = 0.0
                changed.notify_all()

    threading.Thread(target=help_out, daemon=True, name="helper").start()

    def ask(us: float) -> None:
        nonlocal job
        with changed:
            job = us
            changed.notify_all()
            while job:
                changed.wait()

    return ask


def hold_lock(lock: threading.Lock, options: argparse.Namespace) -> None:
    chance = random.Random(options.seed + 2)
    while True:
        time.sleep(options.every_us / 1e6 * chance.uniform(0.5, 1.5))
        with lock:
            time.sleep(options.size_us / 1e6)


def hold_gil(options: argparse.Namespace) -> None:
    chance = random.Random(options.seed + 2)
    # On the loop's CPU it would keep the loop from asking for the GIL; beside the client it comes after it.
    os.sched_setaffinity(0, {1 - options.cpu})
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    while True:
        time.sleep(options.every_us / 1e6 * chance.uniform(0.5, 1.5))
        compute(options.size_us)


class Log:
    """What is known of each message without any recording: when it was due, taken and done, and how long it kept the thread by itself:
    what that computed, or waited for its helper, less what was put in."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: list[tuple[int, int, int, int, int]] = []
        self.before_ns = time.thread_time_ns()

    def take(self, due_ns: int) -> None:
        self.due_ns, self.taken_ns, self.beside_ns, self.put_in_ns = due_ns, time.monotonic_ns(), 0, 0

    def put_in(self, us: float) -> None:
        self.beside_ns -= int(us * 1e3)
        self.wait(int(us * 1e3))

    def wait(self, ns: int) -> None:
        """What was put in and is not counted by the thread's clock."""
        self.put_in_ns += ns

    def ask(self, helper: Callable[[float], None], us: float, extra_us: float) -> None:
        wall_ns, own_ns = time.monotonic_ns(), time.thread_time_ns()
        helper(us + extra_us)
        wall_ns, own_ns = time.monotonic_ns() - wall_ns, time.thread_time_ns() - own_ns
        self.beside_ns += max(wall_ns - own_ns - int(extra_us * 1e3), 0)
        self.put_in_ns += int(extra_us * 1e3)

    def done(self) -> None:
        done_ns, own_ns = time.monotonic_ns(), time.thread_time_ns()
        usual_ns = own_ns - self.before_ns + self.beside_ns
        self.lines.append((self.due_ns, self.taken_ns, done_ns, usual_ns, self.put_in_ns))
        self.before_ns = own_ns

    def write(self) -> None:
        if self.path:
            Path(self.path).write_text("".join(" ".join(map(str, line)) + "\n" for line in self.lines))


def compute(us: float) -> None:
    """For so long by the thread's own clock."""
    until = time.thread_time_ns() + int(us * 1e3)
    while time.thread_time_ns() < until:
        pass


if __name__ == "__main__":
    main()
