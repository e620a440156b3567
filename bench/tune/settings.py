"""Settings of a machine and of every thread on it, to be compared before and after.

python settings.py   prints them as JSON
"""

import contextlib
import json
import os
import pathlib
import struct

# Files with one setting each; those that are not there are left out.
FILES = [
    "/proc/irq/*/smp_affinity",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/*",
    "/proc/sys/vm/*",
    "/sys/class/net/*/queues/*/*ps_cpus",
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_*",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/online",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/*/nice",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/transparent_hugepage/*",
    "/sys/kernel/tracing/current_tracer",
    "/sys/kernel/tracing/tracing_on",
    "/sys/module/*/parameters/halt_poll*",
]
# Of control groups.
OF_GROUPS = {
    "cpu.cfs_period_us",
    "cpu.cfs_quota_us",
    "cpu.max",
    "cpu.shares",
    "cpu.weight",
    "cpuset.cpus",
    "cpuset.mems",
}
# Controllers that schedule; version 2 names none.
OF_SCHEDULING = {"", "cpu", "cpuset"}
# They are no settings: the kernel counts in them, or reading them does something.
NO_SETTINGS = {"ns_last_pid", "stat_refresh", "scaling_cur_freq"}
AWAKE = pathlib.Path("/dev/cpu_dma_latency")


def settings() -> dict[str, str]:
    """Each setting's value by its name; threads by number and start, since numbers are used again."""
    return files() | groups() | threads() | {"cpu_dma_latency": awake(), "trace instances": instances()}


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What differs. Threads, groups and interrupts that have come or gone meanwhile have no settings to compare."""
    both = sorted(before.keys() & after.keys())
    return [f"{name}: {before[name]} → {after[name]}" for name in both if before[name] != after[name]]


def files() -> dict[str, str]:
    found = {}
    for pattern in FILES:
        for path in pathlib.Path("/").glob(pattern[1:]):
            if path.is_file() and path.name not in NO_SETTINGS:
                with contextlib.suppress(OSError, ValueError):
                    found[str(path)] = path.read_text()
    return found


def groups() -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk("/sys/fs/cgroup"):
        for name in OF_GROUPS & set(names):
            with contextlib.suppress(OSError):
                found[f"{folder}/{name}"] = pathlib.Path(folder, name).read_text()
    return found


def threads() -> dict[str, str]:
    found = {}
    for task in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
        try:
            # The name may have brackets in it.
            words = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()
            tid, started = int(task.name), words[19]
            scheduling = (os.sched_getscheduler(tid), os.sched_getparam(tid).sched_priority)
            nice, cpus = os.getpriority(os.PRIO_PROCESS, tid), sorted(os.sched_getaffinity(tid))
            of = [line.split(":", 2) for line in (task / "cgroup").read_text(errors="replace").splitlines()]
            group = [path for _, controllers, path in of if OF_SCHEDULING & set(controllers.split(","))]
        except OSError:
            continue
        found[f"thread {tid} of {started}"] = f"policy {scheduling}, nice {nice}, CPU {cpus}, groups {group}"
    return found


def awake() -> str:
    """The latency that the kernel keeps to, in µs: what all who hold the file open ask for."""
    try:
        with AWAKE.open("rb", buffering=0) as file:
            return str(struct.unpack("i", file.read(4))[0])
    except OSError:
        return ""


def instances() -> str:
    try:
        return str(sorted(os.listdir("/sys/kernel/tracing/instances")))
    except OSError:
        return ""


if __name__ == "__main__":
    print(json.dumps(settings(), indent=1))
