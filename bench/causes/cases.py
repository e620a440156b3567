"""What is done to the messages: kinds of injection, by their cause's word in `docs/reference/causes.md`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    name: str
    says: str
    # Words that count as the right answer; the time of all of them is compared.
    causes: tuple[str, ...]
    languages: tuple[str, ...] = ("native", "python")
    # It needs a longer usual message, or takes the whole CPU: never one of two at once.
    alone: bool = False
    # The kernel counts its time as waiting for the CPU.
    waits_for_cpu: bool = False
    # Nothing but the cause differs between a message that it happens to and one that it does not.
    what_if: bool = True


KINDS = [
    Kind("work", "computes longer", ("cpu",)),
    Kind("syscall", "reads /dev/zero", ("syscall",)),
    Kind("preempted_fifo", "SCHED_FIFO hog on the same CPU", ("preempted",), waits_for_cpu=True),
    Kind("preempted_equal", "hog of equal priority on the same CPU", ("preempted",), alone=True, waits_for_cpu=True),
    Kind("throttled", "cgroup CPU quota", ("throttled",), alone=True, waits_for_cpu=True),
    Kind("irq", "softirq flood from the other CPU over the loopback", ("irq",), alone=True, what_if=False),
    Kind("stopped", "SIGSTOP and SIGCONT", ("stopped",)),
    Kind("lock_thread", "lock held over a sleep by another thread", ("lock",)),
    Kind("lock_process", "lock held over a sleep by another process", ("lock",)),
    Kind("gil_python", "GIL held by Python code of another thread", ("gil",), ("python",)),
    Kind("gil_c", "GIL held by a C call of another thread", ("gil",), ("python",)),
    Kind("io_work", "pipe to a process that asks another, which computes", ("cpu",)),
    Kind("io_sleep", "socket to a process that asks another, which sleeps", ("sleep",)),
    Kind("io_outside_socket", "TCP socket of a process that is not recorded", ("io",)),
    Kind("io_outside_pipe", "pipe of a process that is not recorded", ("io",)),
    Kind("sleep", "sleeps", ("sleep",)),
    Kind("timer_slack", "a short sleep with a large timer slack", ("timer_slack",)),
    Kind("page_fault_minor", "touches fresh pages", ("page_fault",)),
    Kind("page_fault_major", "touches dropped pages of a file", ("page_fault", "disk")),
    Kind("disk", "writes and syncs a file", ("disk",)),
]
BY_NAME = {kind.name: kind for kind in KINDS}


def pairable(language: str) -> list[str]:
    """Kinds of which any two may happen to one message."""
    return [kind.name for kind in KINDS if language in kind.languages and not kind.alone]
