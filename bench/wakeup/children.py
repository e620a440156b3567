"""Programs that are measured: started, waited for, and what CPU time they took; what else must run meanwhile."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

# Interrupts and the rest of a machine's housekeeping come to the first CPU; the probes have another.
CPU, OTHER_CPU = 1, 0


@dataclass(frozen=True)
class Ended:
    stdout: str
    # User and system time of the process and what it waited for, start and end included.
    cpu_s: float
    # Longest time for which the other CPU did not run the witness, ns.
    other_cpu_away_ns: int


def run(
    command: list[str], *, cpu: int | None = None, timeout_s: float = 300, may_end_with: tuple[int, ...] = (0,)
) -> Ended:
    """Runs a command to its end; `cpu` pins all of it."""
    with tempfile.TemporaryFile() as stderr, Witness() as witness:
        pinned = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, preexec_fn=pinned) as process:
            assert process.stdout
            killer = threading.Timer(timeout_s, process.kill)
            killer.start()
            try:
                stdout = process.stdout.read()
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                raise
            finally:
                killer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in may_end_with:
            stderr.seek(0)
            said = stderr.read()[-2000:].decode(errors="replace")
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode}: {said}")
    return Ended(stdout.decode(), usage.ru_utime + usage.ru_stime, witness.longest_gap_ns)


class Witness(threading.Thread):
    """Sleeps on the other CPU, before all others: what stalls it too stalls the machine, not the probe."""

    PERIOD_S = 0.01

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest_gap_ns = 0
        self.is_over = False

    def run(self) -> None:
        # Of this thread only: Linux takes 0 for the caller.
        os.sched_setaffinity(0, {OTHER_CPU})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(85))
        last = time.monotonic_ns()
        while not self.is_over:
            time.sleep(self.PERIOD_S)
            now = time.monotonic_ns()
            self.longest_gap_ns = max(self.longest_gap_ns, now - last)
            last = now

    def __enter__(self) -> "Witness":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self.join()


@contextlib.contextmanager
def in_background(command: list[str], settle_s: float = 1.0) -> Iterator[subprocess.Popen[str]]:
    """Something that runs beside, in a session of its own as another user's work would; ended with SIGTERM."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        time.sleep(settle_s)
        if process.poll() is not None:
            raise SystemExit(f"{' '.join(command)}\nended at once: {process.communicate()[1][-2000:]}")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()
            process.wait()


@contextlib.contextmanager
def load(name: str) -> Iterator[None]:
    """`idle`, or `stress`: two workers that compute."""
    if name == "idle":
        yield
        return
    with in_background(["stress-ng", "--cpu", "2", "--quiet"]):
        yield
