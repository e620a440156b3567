#!/usr/bin/env python3
"""The message loop of `injector/` in Python, and the two causes that only Python has. Same command line, same truth file."""

import argparse
import ctypes
import json
import mmap
import multiprocessing
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns, thread_time_ns

import taut
from score import LEAST_NS

GAP_NS = 4_000
BASE_WORK_NS = 2_900_000, 3_100_000
SMALLEST_NS, LARGEST_NS = 200_000, 20_000_000
PLACES = 4
PAGE = 4096


def main() -> None:
    options = arguments()
    chance = random.Random(options.seed)
    if not options.quiet:
        fork("noise", options.other_cpu, lambda: make_noise(options, random.Random(options.seed + 1)))
    kinds = [KINDS[name](options) for name in options.kinds.split(",")]
    for kind in kinds:
        # Processes were forked by now; threads may be.
        kind.start()
    os.sched_setaffinity(threading.get_native_id(), {options.cpu})
    taut.prepare_thread()
    innocent = threading.Lock()
    taut.name_lock("innocent", innocent)
    time.sleep(0.3)
    with open(options.truth, "w") as truth:
        for id in range(1, options.messages + 1):
            time.sleep(chance.uniform(*options.gap_ms) / 1e3)
            print(message(id, plan(options, chance, kinds), kinds, chance, innocent), file=truth)
    sys.stdout.flush()
    # Agents end with this process; nothing needs to be waited for.
    os._exit(0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default="work")
    parser.add_argument("--messages", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1 / 3)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--other-cpu", type=int, default=0)
    parser.add_argument("--gap-ms", type=lambda text: [float(x) for x in text.split(",")], default=[5.0, 30.0])
    parser.add_argument("--truth", required=True)
    parser.add_argument("--work", default=".")
    parser.add_argument("--cgroup", default="")
    parser.add_argument("--outside", default="")
    parser.add_argument("--fifo", default="")
    return parser.parse_args()


def plan(options: argparse.Namespace, chance: random.Random, kinds: list["Kind"]) -> list[tuple["Kind", int, int]]:
    """(kind, place, size in ns): nothing for most messages, one for some, two different ones where pairs are asked for."""
    if options.off or chance.random() >= options.share:
        return []
    chosen = chance.sample(kinds, 2 if options.pairs else 1)
    size = [int(SMALLEST_NS * (LARGEST_NS / SMALLEST_NS) ** chance.random()) for _ in chosen]
    return [(kind, chance.randrange(PLACES), ns) for kind, ns in zip(chosen, size, strict=True)]


def message(id: int, planned: list, kinds: list["Kind"], chance: random.Random, innocent: threading.Lock) -> str:
    """Sends one message and returns its line of truth."""
    work_ns = int(chance.uniform(*BASE_WORK_NS))
    first_ns = int(work_ns * chance.uniform(0.2, 0.8))
    usual_place = chance.randrange(PLACES)
    for kind, _, ns in planned:
        kind.prepare(ns)
    struck = [kind for kind, _, _ in planned]
    acts: list[list[Callable[[], None]]] = [[] for _ in range(PLACES)]
    for kind, place, ns in planned:
        acts[place].append(lambda kind=kind, ns=ns: kind.strike(ns))
    for kind in kinds:
        if kind not in struck:
            acts[usual_place].append(kind.usual)
    helpers = [pid for kind in kinds for pid in kind.helpers]
    waited_ns = all_run_delays_ns(helpers)
    start_ns = monotonic_ns()
    taut.stamp("start", id)
    for act in acts[0]:
        act()
    work = Progress(), Progress()
    work[0].work(first_ns)
    for act in acts[1]:
        act()
    taut.stamp("middle", id)
    for act in acts[2]:
        act()
    work[1].work(work_ns - first_ns)
    for act in acts[3]:
        act()
    with innocent:
        pass
    taut.stamp("end", id)
    end_ns = monotonic_ns()
    taut.applied(id)
    waited_ns = all_run_delays_ns(helpers) - waited_ns
    injections = [
        {
            "kind": kind.name,
            "cause": kind.cause,
            "detail": kind.detail,
            "place": place,
            "planned_ns": ns,
            "measured_ns": max(kind.settle(), 0),
        }
        for kind, place, ns in planned
    ]
    injections += [
        {"kind": "work", "cause": "cpu", "detail": "", "place": place, "planned_ns": 0, "measured_ns": kind.worked_ns}
        for kind, place, _ in planned
        if kind.worked_ns >= LEAST_NS
    ]
    # In the usual work nothing is injected: what was taken from it was taken by others.
    gaps_ns = sum(stretch.stolen_ns for stretch in work)
    line = {"id": id, "start_ns": start_ns, "end_ns": end_ns, "work_ns": work_ns}
    line |= {"waited_ns": waited_ns, "gaps_ns": gaps_ns}
    line["injections"] = injections
    return json.dumps(line)


class Progress:
    """A stretch of computation, and what was taken from it."""

    def __init__(self) -> None:
        self.done_ns = self.stolen_ns = 0
        self.last_ns = 0

    def work(self, ns: int) -> None:
        """Computes for `ns` in all, not counting the time that others take."""
        done, last = self.done_ns, self.last_ns or monotonic_ns()
        while done < ns:
            now = monotonic_ns()
            step = now - last
            last = now
            if step < GAP_NS:
                done += step
            else:
                self.gap(step)
        self.done_ns, self.last_ns = done, last

    def work_until(self, enough: Callable[[], bool]) -> None:
        last = monotonic_ns()
        done = False
        while not done:
            # Asked first: what happens in the meantime counts.
            done = enough()
            now = monotonic_ns()
            if now - last >= GAP_NS:
                self.gap(now - last)
            last = now

    def gap(self, ns: int) -> None:
        self.stolen_ns += ns


# ---- agents: threads and processes that act when rung for


class Mailbox:
    """What agent and message loop tell each other; shared also across `fork`."""

    def __init__(self) -> None:
        self.words = memoryview(mmap.mmap(-1, PAGE)).cast("Q")

    # order, ready, ended, enough, felt
    def order(self, ns: int) -> None:
        self.words[1] = self.words[2] = self.words[3] = 0
        self.words[0] = ns

    def ready(self) -> None:
        self.words[1] = monotonic_ns()

    def ended(self) -> None:
        self.words[2] = monotonic_ns()

    def enough(self) -> None:
        self.words[3] = 1

    def wait_ready(self) -> int:
        while not self.words[1]:
            time.sleep(20e-6)
        return self.words[1]

    def wait_ended(self) -> int:
        while not self.words[2]:
            time.sleep(20e-6)
        return self.words[2]


class Agent:
    """Runs `act(ns, mailbox)` each time it is rung for, in a process or a thread."""

    def __init__(self, name: str, cpu: int, act: Callable[[int, Mailbox], None], thread: bool = False) -> None:
        self.mailbox = Mailbox()
        ears, self.bell = os.pipe()

        def answer() -> None:
            while os.read(ears, 1):
                act(self.mailbox.words[0], self.mailbox)

        def pinned() -> None:
            os.sched_setaffinity(threading.get_native_id(), {cpu})
            answer()

        if thread:
            self.pid = 0
            threading.Thread(target=pinned, name=name, daemon=True).start()
        else:
            self.pid = fork(name, cpu, lambda: (os.close(self.bell), answer()))

    def ring(self, ns: int) -> None:
        self.mailbox.order(ns)
        os.write(self.bell, b"!")


def fork(name: str, cpu: int, body: Callable[[], object]) -> int:
    """Runs `body` in a forked process that ends with this one."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.sched_setaffinity(0, {cpu})
        LIBC.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        body()
    finally:
        os._exit(0)


def make_noise(options: argparse.Namespace, chance: random.Random) -> None:
    while True:
        time.sleep(chance.expovariate(1 / 30e-3))
        os.sched_setaffinity(0, {options.cpu if chance.random() < 0.05 else options.other_cpu})
        Progress().work(int(chance.uniform(50_000, 600_000)))


LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_TIMERSLACK = 1, 15, 29


def set_timer_slack(ns: int) -> None:
    LIBC.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(ns), 0, 0, 0)


def run_delay_ns(who: int | str = "thread-self") -> int:
    """How long a thread could have run but waited for the CPU, so far."""
    with open(f"/proc/{who}/schedstat") as file:
        return int(file.read().split()[1])


def all_run_delays_ns(helpers: list[int]) -> int:
    """The same of this thread and its helpers: who else is on the machine."""
    return run_delay_ns() + sum(run_delay_ns(pid) for pid in helpers)


def process_cpu_ns(pid: int) -> int:
    """CPU time that a process of ours has used so far, exact also while it runs."""
    return time.clock_gettime_ns((~pid << 3) | 2)


# ---- kinds


class Kind:
    name = cause = detail = ""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.taken_ns = 0
        # What the message computed until it happened: an injection of its own.
        self.worked_ns = 0
        # Processes whose waiting for the CPU is a part of the message.
        self.helpers: list[int] = []

    def start(self) -> None:
        """Threads begin here, after every fork."""

    def prepare(self, ns: int) -> None:
        """Before the message starts."""

    def strike(self, ns: int) -> None:
        """In the message."""

    def usual(self) -> None:
        """In the messages to which nothing happens."""

    def settle(self) -> int:
        """After the message: how long it took."""
        return self.taken_ns


class Work(Kind):
    name, cause = "work", "cpu"

    def strike(self, ns: int) -> None:
        progress = Progress()
        progress.work(ns)
        self.taken_ns = progress.done_ns


class Hog(Kind):
    cause = "preempted"
    realtime = False
    # Sharing a CPU needs something to share: with equal priority every message has this much work more.
    shared_work_ns = 6_000_000

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        prepared = False

        def burn(ns: int, mailbox: Mailbox) -> None:
            nonlocal prepared
            if self.realtime and not prepared:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
                prepared = True
            until = thread_time_ns() + ns
            mailbox.ready()
            while not mailbox.words[3] and thread_time_ns() < until:
                pass
            mailbox.ended()

        self.agent = Agent(self.detail, options.cpu, burn)
        self.agent.ring(1)
        self.agent.mailbox.wait_ended()
        self.before_ns = 0

    def strike(self, ns: int) -> None:
        self.before_ns = process_cpu_ns(self.agent.pid)
        self.agent.ring(ns)
        self.usual()

    def usual(self) -> None:
        if not self.realtime:
            Progress().work(self.shared_work_ns)

    def settle(self) -> int:
        taken_ns = process_cpu_ns(self.agent.pid) - self.before_ns
        self.agent.mailbox.enough()
        self.agent.mailbox.wait_ended()
        return taken_ns


class FifoHog(Hog):
    name, detail, realtime = "preempted_fifo", "hog_fifo", True


class EqualHog(Hog):
    name, detail = "preempted_equal", "hog_equal"


class Throttle(Kind):
    name, cause = "throttled", "throttled"
    quota_ns, work_ns, step_ns = 1_000_000, 1_500_000, 50_000

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.cgroup = Path(options.cgroup)
        self.is_v2 = (self.cgroup / "cpu.max").exists()
        members = "cgroup.procs" if self.is_v2 else "tasks"
        (self.cgroup / members).write_text(str(os.getpid()))
        self.progress = Progress()
        self.taken_ns = 0

    def throttled_ns(self) -> int:
        """By the kernel's own count for the group: a wait for the CPU that others have is none of it."""
        counts = dict(line.split() for line in (self.cgroup / "cpu.stat").read_text().splitlines())
        return int(counts["throttled_usec"]) * 1000 if self.is_v2 else int(counts["throttled_time"])

    def limit(self, period_ns: int | None) -> None:
        quota_us, period_us = self.quota_ns // 1000, min(max((period_ns or 0) // 1000, 1000), 1_000_000)
        if self.is_v2:
            (self.cgroup / "cpu.max").write_text(f"{quota_us} {period_us}" if period_ns else "max 100000")
        elif period_ns:
            (self.cgroup / "cpu.cfs_period_us").write_text(str(period_us))
            (self.cgroup / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (self.cgroup / "cpu.cfs_quota_us").write_text("-1")

    def strike(self, ns: int) -> None:
        # Here, not before the message: its other work would use the quota up.
        before_ns = self.throttled_ns()
        self.limit(ns + self.quota_ns)
        self.usual()
        self.limit(None)
        self.taken_ns = self.throttled_ns() - before_ns

    def usual(self) -> None:
        self.progress = Progress()
        for step in range(self.step_ns, self.work_ns + 1, self.step_ns):
            self.progress.work(step)
            # The kernel looks at the quota at its tick, and when it is asked for the next task.
            os.sched_yield()
        self.progress.work(self.work_ns + self.step_ns)

    def settle(self) -> int:
        return self.taken_ns


class Flood(Kind):
    name, cause = "irq", "irq"
    group = "239.66.66.66"
    # (port, members): some 150 and 400 µs of softirq a datagram; see the native injector.
    small, large, large_from_ns = (36_668, 2000), (36_669, 5000), 700_000
    # After `lost_ns` a datagram did not arrive; after `after_ns` the last one is through.
    patience_ns, lost_ns, after_ns = 100_000_000, 1_000_000, 30_000

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
        self.sockets = [self.member(port) for port, members in (self.small, self.large) for _ in range(members)]
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))

        def flood(ns: int, mailbox: Mailbox) -> None:
            mailbox.ready()
            port, _ = self.small if ns < self.large_from_ns else self.large
            until = monotonic_ns() + self.patience_ns
            while not mailbox.words[3] and monotonic_ns() < until:
                felt, sent_ns = mailbox.words[4], monotonic_ns()
                sender.sendto(b"12345678", (self.group, port))
                # The next one as soon as the other CPU is through with this one.
                while mailbox.words[4] == felt and not mailbox.words[3] and monotonic_ns() - sent_ns < self.lost_ns:
                    pass
            mailbox.ended()

        self.agent = Agent("flooder", options.other_cpu, flood)

    def member(self, port: int) -> socket.socket:
        member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        member.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        member.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        member.bind((self.group, port))
        both = socket.inet_aton(self.group) + socket.inet_aton("127.0.0.1")
        member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, both)
        return member

    def strike(self, ns: int) -> None:
        progress = Progress()
        until = monotonic_ns() + self.patience_ns
        self.agent.ring(ns)
        words = self.agent.mailbox.words
        felt_ns = 0

        def enough() -> bool:
            nonlocal felt_ns
            if progress.stolen_ns != felt_ns:
                words[4] += 1
                felt_ns = progress.stolen_ns
            return progress.stolen_ns >= ns or monotonic_ns() > until

        progress.work_until(enough)
        self.agent.mailbox.enough()
        progress.work_until(lambda: words[2] != 0)
        after = monotonic_ns()
        progress.work_until(lambda: monotonic_ns() - after > self.after_ns)
        self.taken_ns = progress.stolen_ns

    def settle(self) -> int:
        self.agent.mailbox.wait_ended()
        return self.taken_ns


class Stop(Kind):
    name, cause = "stopped", "stopped"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        victim = os.getpid()

        def stop(ns: int, mailbox: Mailbox) -> None:
            os.kill(victim, signal.SIGSTOP)
            mailbox.ready()
            time.sleep(ns / 1e9)
            mailbox.ended()
            os.kill(victim, signal.SIGCONT)

        self.agent = Agent("stopper", options.other_cpu, stop)

    def strike(self, ns: int) -> None:
        self.agent.ring(ns)
        while not self.agent.mailbox.words[1]:
            pass

    def settle(self) -> int:
        return self.agent.mailbox.wait_ended() - self.agent.mailbox.wait_ready()


class ThreadLock(Kind):
    name, cause, detail = "lock_thread", "lock", "thread_lock"
    lead_ns = 150_000
    in_thread = True

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.lock = self.make_lock()
        self.asked_ns = 0

    def make_lock(self):
        return threading.Lock()

    def start(self) -> None:
        named = False

        def hold(ns: int, mailbox: Mailbox) -> None:
            nonlocal named
            if not named:
                taut.name_lock(self.detail, self.lock)
                named = True
            with self.lock:
                mailbox.ready()
                time.sleep(ns / 1e9)
                mailbox.ended()

        self.agent = Agent("holder", self.options.other_cpu, hold, thread=self.in_thread)
        taut.name_lock(self.detail, self.lock)

    def prepare(self, ns: int) -> None:
        self.agent.ring(ns + self.lead_ns)
        self.agent.mailbox.wait_ready()

    def strike(self, ns: int) -> None:
        self.asked_ns = monotonic_ns()
        self.usual()

    def usual(self) -> None:
        with self.lock:
            pass

    def settle(self) -> int:
        return self.agent.mailbox.wait_ended() - self.asked_ns


class ProcessLock(ThreadLock):
    name, detail, in_thread = "lock_process", "process_lock", False

    def make_lock(self):
        return multiprocessing.get_context("fork").Lock()


HELPERS_C = r"""
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Computes until *word is set, 100 ms at the most; returns when that was. A thread that sets it later holds the GIL in another message. */
int64_t spin_until(volatile int32_t *word) {
    int64_t limit = now() + 100000000;
    while (!*word && now() < limit) {}
    return now();
}

/* Sleeps until somebody wakes it. */
void park(int32_t *word) {
    while (!__atomic_load_n(word, __ATOMIC_SEQ_CST)) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
}

void unpark(int32_t *word) {
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

/* Computes for ns, and says when it was done before anybody can take the GIL away. */
void compute(int64_t ns, int64_t *done) {
    int64_t until = now() + ns;
    while (now() < until) {}
    *done = now();
}
"""


class Gil(Kind):
    """Another thread takes the GIL while the message computes in C without it, and keeps it: in a C call."""

    name, cause = "gil_c", "gil"
    in_c = True

    def start(self) -> None:
        folder = tempfile.mkdtemp()
        source, library = Path(folder, "helpers.c"), Path(folder, "helpers.so")
        source.write_text(HELPERS_C)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        free, holding = ctypes.CDLL(str(library)), ctypes.PyDLL(str(library))
        self.spin_until, self.unpark, park, compute = free.spin_until, free.unpark, free.park, holding.compute
        self.spin_until.restype = ctypes.c_int64
        self.bell, self.taken, self.over = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_int32()
        self.released_ns = ctypes.c_int64()
        self.order_ns = self.asked_ns = 0
        in_c, released = self.in_c, self.released_ns

        def hold() -> None:
            os.sched_setaffinity(threading.get_native_id(), {self.options.other_cpu})
            while True:
                park(ctypes.byref(self.bell))
                self.taken.value = 1
                if in_c:
                    compute(ctypes.c_int64(self.order_ns), ctypes.byref(released))
                    continue
                last = monotonic_ns()
                until = last + self.order_ns
                over = self.over
                # Pure Python: the kernel of the switch interval takes the GIL away after 5 ms.
                while last < until and not over.value:
                    released.value = last = monotonic_ns()

        threading.Thread(target=hold, name="burner", daemon=True).start()

    def strike(self, ns: int) -> None:
        self.order_ns, self.released_ns.value = ns, 0
        self.taken.value = self.over.value = 0
        # Without the GIL until the other one has it: that may have to wait for its CPU.
        self.unpark(ctypes.byref(self.bell))
        rung_ns = monotonic_ns()
        self.asked_ns = self.spin_until(ctypes.byref(self.taken))
        self.worked_ns = self.asked_ns - rung_ns
        # Here again with the GIL. What the other did last, it did before it lost it.
        self.taken_ns = self.released_ns.value - self.asked_ns
        self.over.value = 1


class PythonGil(Gil):
    name, in_c = "gil_python", False


class Chain(Kind):
    """A question to `near`, which asks `far`, which computes (pipes) or sleeps (sockets) and says for how long."""

    works = True
    detail = "far"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        (self.answers, self.questions), near = self.link()
        (near_answers, near_questions), far = self.link()

        def serve_far() -> None:
            while question := os.read(far[0], 8):
                ns = struct.unpack("<Q", question)[0]
                if self.works:
                    progress = Progress()
                    progress.work(ns)
                    ns = progress.done_ns
                else:
                    time.sleep(ns / 1e9)
                os.write(far[1], struct.pack("<Q", ns))

        def serve_near() -> None:
            while question := os.read(near[0], 8):
                os.write(near_questions, question)
                os.write(near[1], os.read(near_answers, 8))

        self.helpers.append(fork("far", options.other_cpu, serve_far))
        # Beside the message, which waits; see the native injector.
        self.helpers.append(fork("near", options.cpu, serve_near))

    def link(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """((in, out) of one side, (in, out) of the other)."""
        if self.works:
            (there_in, there_out), (back_in, back_out) = os.pipe(), os.pipe()
            return (back_in, there_out), (there_in, back_out)
        one, other = socket.socketpair()
        ours, theirs = one.detach(), other.detach()
        return (ours, ours), (theirs, theirs)

    def strike(self, ns: int) -> None:
        os.write(self.questions, struct.pack("<Q", ns))
        self.taken_ns = struct.unpack("<Q", os.read(self.answers, 8))[0]

    def usual(self) -> None:
        """Asks as well, for nothing."""
        self.strike(0)


class ChainToWork(Chain):
    name, cause = "io_work", "cpu"


class ChainToSleep(Chain):
    name, cause, works = "io_sleep", "sleep", False


class OutsideSocket(Kind):
    name, cause, detail = "io_outside_socket", "io", "socket"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        host, port = options.outside.split(":")
        # How long it takes when nothing is to be waited for.
        self.usually_ns: list[int] = []
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, question: bytes) -> None:
        self.socket.sendall(question)

    def answer(self) -> bytes:
        return self.socket.recv(8)

    def strike(self, ns: int) -> None:
        self.ask(struct.pack("<Q", ns))
        asked_ns = monotonic_ns()
        self.taken_ns = struct.unpack("<Q", self.answer())[0] - asked_ns

    def usual(self) -> None:
        """Asks as well, for nothing."""
        self.strike(0)
        self.usually_ns.append(self.taken_ns)

    def settle(self) -> int:
        return self.taken_ns - sorted(self.usually_ns or [0])[len(self.usually_ns) // 2]


class OutsidePipe(OutsideSocket):
    name, detail = "io_outside_pipe", "pipe"

    def __init__(self, options: argparse.Namespace) -> None:
        Kind.__init__(self, options)
        self.usually_ns = []
        self.questions = os.open(options.fifo + ".in", os.O_WRONLY)
        self.answers = os.open(options.fifo + ".out", os.O_RDONLY)

    def ask(self, question: bytes) -> None:
        os.write(self.questions, question)

    def answer(self) -> bytes:
        return os.read(self.answers, 8)


class Sleep(Kind):
    name, cause = "sleep", "sleep"

    def strike(self, ns: int) -> None:
        self.taken_ns = ns
        time.sleep(ns / 1e9)


class Slack(Kind):
    name, cause = "timer_slack", "timer_slack"
    short_ns = 50_000
    usually_ns = 0

    def overslept(self, slack_ns: int) -> int:
        set_timer_slack(slack_ns)
        before = monotonic_ns()
        time.sleep(self.short_ns / 1e9)
        overslept = monotonic_ns() - before - self.short_ns
        set_timer_slack(0)
        return overslept

    def prepare(self, ns: int) -> None:
        # What a sleep without slack oversleeps: the way from the timer to the CPU.
        self.usually_ns = self.usually_ns or sorted(self.overslept(1) for _ in range(51))[25]

    def strike(self, ns: int) -> None:
        self.taken_ns = self.overslept(ns) - self.usually_ns

    def usual(self) -> None:
        """Sleeps as well, without slack."""
        self.overslept(1)


class FreshPages(Kind):
    name, cause = "page_fault_minor", "page_fault"
    bytes = 256 << 20

    def prepare(self, ns: int) -> None:
        self.memory = mmap.mmap(-1, self.bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)

    def strike(self, ns: int) -> None:
        # Many pages a call, so that the time is the kernel's and not the interpreter's.
        block = bytes(16 * PAGE)
        before = thread_time_ns()
        for at in range(0, self.bytes, len(block)):
            self.memory[at : at + len(block)] = block
            if thread_time_ns() - before >= ns:
                break
        self.taken_ns = thread_time_ns() - before

    def settle(self) -> int:
        self.memory.close()
        return self.taken_ns


class DroppedPages(Kind):
    name, cause = "page_fault_major", "page_fault"
    bytes = 128 << 20

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.file = os.open(Path(options.work, "pages.bin"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for _ in range(self.bytes >> 20):
            os.write(self.file, b"Z" * (1 << 20))
        os.fsync(self.file)
        self.chance = random.Random(7)

    def prepare(self, ns: int) -> None:
        os.posix_fadvise(self.file, 0, self.bytes, os.POSIX_FADV_DONTNEED)
        self.memory = mmap.mmap(self.file, self.bytes, prot=mmap.PROT_READ)
        self.memory.madvise(mmap.MADV_RANDOM)

    def strike(self, ns: int) -> None:
        waited_ns, before = run_delay_ns(), monotonic_ns()
        while monotonic_ns() - before < ns:
            self.memory[self.chance.randrange(self.bytes)]
        until = monotonic_ns()
        self.taken_ns = until - before - (run_delay_ns() - waited_ns)

    def settle(self) -> int:
        self.memory.close()
        return self.taken_ns


class Sync(Kind):
    name, cause = "disk", "disk"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.file = os.open(Path(options.work, "synced.bin"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.bytes_per_ms, self.written = 2e6, 0
        for _ in range(4):
            self.prepare(4_000_000)
            self.strike(4_000_000)
            self.settle()

    def prepare(self, ns: int) -> None:
        self.written = min(max(int(self.bytes_per_ms * ns / 1e6), PAGE), 64 << 20)
        os.pwrite(self.file, bytes(self.written), 0)

    def strike(self, ns: int) -> None:
        waited_ns, on_cpu_ns, before = run_delay_ns(), thread_time_ns(), monotonic_ns()
        os.fsync(self.file)
        until, on_cpu_ns = monotonic_ns(), thread_time_ns() - on_cpu_ns
        self.taken_ns = until - before - on_cpu_ns - (run_delay_ns() - waited_ns)

    def settle(self) -> int:
        per_ms = self.written / max(self.taken_ns / 1e6, 0.1)
        self.bytes_per_ms = 0.8 * self.bytes_per_ms + 0.2 * per_ms
        return self.taken_ns


class Zeros(Kind):
    name, cause, detail = "syscall", "syscall", "read"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.file = os.open("/dev/zero", os.O_RDONLY)
        self.buffer = bytearray(b"1") * (1 << 20)

    def strike(self, ns: int) -> None:
        before = monotonic_ns()
        while monotonic_ns() - before < ns:
            os.readv(self.file, [self.buffer])
        self.taken_ns = monotonic_ns() - before


KINDS = {
    kind.name: kind
    for kind in [
        Work,
        Zeros,
        FifoHog,
        EqualHog,
        Throttle,
        Flood,
        Stop,
        ThreadLock,
        ProcessLock,
        PythonGil,
        Gil,
        ChainToWork,
        ChainToSleep,
        OutsideSocket,
        OutsidePipe,
        Sleep,
        Slack,
        FreshPages,
        DroppedPages,
        Sync,
    ]
}

if __name__ == "__main__":
    main()
