"""A named lock is the lock that the kernel sees: a thread blocked on it sleeps at the address that was named."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import taut
from taut.locks import HAVE_SEMAPHORES

# A second thread waits for a lock that the first holds; the kernel says in which futex it sleeps. The thread may
# wait for the GIL first, on another futex, so all it is seen in are collected until the named one is among them.
CONTEND = """
    import ctypes, json, multiprocessing, struct, sys, threading, time
    from pathlib import Path
    import taut

    FUTEX = {"x86_64": "202", "aarch64": "98"}[__import__("platform").machine()]
    lock = eval(sys.argv[1])
    said = taut.name_lock("sdk_lock", lock)

    def named():
        # docs/reference/protocol.md: the records of the only slot that wrote.
        [path] = Path(sys.argv[2]).glob("*.taut")
        data = path.read_bytes()
        names, slots, rings = struct.unpack_from("<QQQ", data, 48)
        [head] = struct.unpack_from("<Q", data, slots + 64)
        for at in range(head):
            _, size, point, kind, address = struct.unpack_from("<QQIIQ", data, rings + 32 * at)
            if kind == 8:
                [length] = struct.unpack_from("<I", data, names + 128 * (point - 1))
                start = names + 128 * (point - 1) + 8
                return data[start : start + length].decode(), size, address

    name, size, address = named() if said else ("", 0, 0)
    seen = set()
    with lock:
        waiter = threading.Thread(target=lambda: lock.acquire() and lock.release())
        waiter.start()
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not any(address <= word < address + size for word in seen):
            call = Path(f"/proc/self/task/{waiter.native_id}/syscall").read_text().split()
            if call[0] == FUTEX:
                seen.add(int(call[1], 16))
            if not said and seen:
                break
    waiter.join()
    print(json.dumps({"said": said, "name": name, "size": size, "address": address, "seen": sorted(seen)}))
"""

THREAD_LOCKS = ["threading.Lock()", "threading.RLock()", "threading.Condition()", "threading._PyRLock()"]
PROCESS_LOCKS = ["multiprocessing.Lock()", "multiprocessing.RLock()", "multiprocessing.BoundedSemaphore(1)"]


def contend(lock: str, session: Path) -> dict:
    env = os.environ | {"TAUT_SESSION": str(session), "TAUT_RING_RECORDS": "64"}
    command = [sys.executable, "-c", textwrap.dedent(CONTEND), lock, session]
    return json.loads(subprocess.run(command, capture_output=True, check=True, env=env, text=True).stdout)


@pytest.mark.parametrize("lock", [*THREAD_LOCKS, *PROCESS_LOCKS])
def test_a_waiter_sleeps_where_the_named_lock_is(tmp_path: Path, lock: str) -> None:
    if lock in THREAD_LOCKS and not HAVE_SEMAPHORES:
        pytest.skip("thread locks of this Python have no futex word of their own")
    done = contend(lock, tmp_path)
    assert (done["said"], done["name"], done["size"]) == (True, "sdk_lock", 32)
    assert done["address"] in done["seen"]


def test_what_cannot_be_named_is_refused_and_left_alone(tmp_path: Path) -> None:
    program = """
        import threading, types, taut
        class Sub(type(threading.RLock())): pass
        others = [object(), None, 7, "lock", Sub(), threading.Event(), types.SimpleNamespace(acquire=print)]
        assert [taut.name_lock("x", other) for other in others] == [False] * len(others)
        taut.locks.HAVE_SEMAPHORES = False  # As on 3.14, where the same object holds something else.
        lock = threading.Lock()
        assert taut.name_lock("x", lock) is False and taut.name_lock("x", threading.Condition(lock)) is False
        with lock:
            pass
        try:
            taut.name_lock(7, lock)
        except TypeError:
            print(taut.status()["lost"])
    """
    env = os.environ | {"TAUT_SESSION": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    assert subprocess.run(command, capture_output=True, check=True, env=env, text=True).stdout == "0\n"


def test_without_a_session_no_lock_is_named() -> None:
    import threading

    assert taut.name_lock("sdk_lock", threading.Lock()) is False


def test_work_ends_also_when_it_raises(tmp_path: Path) -> None:
    program = """
        import struct, sys, taut
        from pathlib import Path
        try:
            with taut.work("plan"):
                with taut.work("search"):
                    raise KeyError
        except KeyError:
            [path] = Path(sys.argv[1]).glob("*.taut")
            data = path.read_bytes()
            rings = struct.unpack_from("<Q", data, 64)[0]
            print([struct.unpack_from("<II", data, rings + 32 * at + 16) for at in range(5)])
    """
    env = os.environ | {"TAUT_SESSION": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(program), tmp_path]
    out = subprocess.run(command, capture_output=True, check=True, env=env, text=True).stdout
    assert out == "[(1, 2), (2, 2), (2, 3), (1, 3), (0, 0)]\n"


def test_a_recording_shows_waits_at_the_named_lock(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    program = """
        import ctypes, threading, time, taut
        from pathlib import Path
        lock = threading.Lock()
        if not taut.name_lock("sdk_lock", lock):
            raise SystemExit(3)
        semaphore = hex(ctypes.c_size_t.from_address(id(lock) + 16).value)
        with lock:
            waiter = threading.Thread(target=lambda: (taut.lock_wait("sdk_lock"), lock.acquire(), lock.release()))
            waiter.start()
            deadline = time.monotonic() + 300
            while time.monotonic() < deadline:
                if semaphore in Path(f"/proc/self/task/{waiter.native_id}/syscall").read_text():
                    break
        waiter.join()
    """
    if not HAVE_SEMAPHORES:
        pytest.skip("thread locks of this Python have no futex word of their own")
    (tmp_path / "robot.py").write_text(textwrap.dedent(program))
    run, taut_command = tmp_path / "run.mcap", Path(sys.executable).with_name("taut")
    command = [taut_command, "record", "-q", "--ignore-loss", "-o", run, "--", sys.executable, tmp_path / "robot.py"]
    subprocess.run(command, check=True, env={k: v for k, v in os.environ.items() if k != "TAUT_SESSION"})
    names, named, waits, info = {}, [], set(), {}
    with open(run, "rb") as file:
        for _, channel, _, m in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            match channel.topic:
                case "/taut/raw/info":
                    info = json.loads(m.json)
                case "/taut/raw/names":
                    names[m.id] = m.name
                case "/taut/raw/stamps":
                    values = dict(zip(m.value_at, m.value_bits, strict=True))
                    ids, deltas = m.first_message_id, m.delta_message_id or m.wide_delta_message_id
                    for at, (point, kind, delta) in enumerate(zip(m.point, m.kind, deltas, strict=True)):
                        ids += delta
                        if kind == 8:
                            named.append((point, ids, values[at]))
                case "/taut/raw/kernel":
                    rows = zip(m.event, m.arg0, m.arg1, strict=True)
                    waits |= {address for event, number, address in rows if event == 8 and number in (202, 98)}
    [(point, size, address)] = named
    assert (names[point], size) == ("sdk_lock", 32)
    if info["tier"] != "Full":
        pytest.skip(f"no kernel events here: {info['tier_reason']}")
    assert address in waits
