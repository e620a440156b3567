"""`taut.record`, `taut.traced` and the instrumented locks, each in a program of its own."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import taut


def program(folder: Path, text: str, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs a program that is not yet in a session."""
    (folder / "robot.py").write_text(textwrap.dedent(text))
    env = {k: v for k, v in os.environ.items() if k != "TAUT_SESSION"} | environment
    command = [sys.executable, folder / "robot.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)


def test_a_process_records_itself_twice(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        """
        import os, subprocess, sys, time
        import taut

        def loop(first):
            for i in range(first, first + 50):
                taut.stamp("loop.begin", i)
                time.sleep(0.001)
                taut.stamp("loop.end", i)

        loop(0)                                       # to nobody
        with taut.record("one.mcap", quiet=True) as recording:
            loop(1000)
            child = "import taut; taut.stamp('loop.begin', 7); taut.stamp('loop.end', 7)"
            subprocess.run([sys.executable, "-c", child], check=True)
            try:
                with taut.record("other.mcap"):
                    pass
            except RuntimeError as error:
                print(error)
        loop(2000)                                    # to nobody
        with taut.record("two.mcap", quiet=True):
            loop(3000)
        print(recording.path, taut.status()["attached"], "TAUT_SESSION" in os.environ)
        """,
    )
    assert done.returncode == 0, done.stderr
    said = "this process is recorded already, into one.mcap; one recording at a time\none.mcap True False\n"
    assert done.stdout == said
    for name, ids in [("one.mcap", [7, *range(1000, 1050)]), ("two.mcap", list(range(3000, 3050)))]:
        run = taut.open(tmp_path / name)
        assert sorted(run.messages["message"].tolist()) == ids
        assert run.report["recording"]["lost_stamps"] == 0
        # The recorder, its child, is none of those that it records.
        own = set(run.thread_states["thread"][run.thread_states["recorded"]])
        assert not any(thread.startswith("taut/") for thread in own)


def test_an_exception_leaves_a_whole_recording_and_goes_on(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        """
        import taut
        with taut.record("run.mcap", options=["--tier", "stamps"]):
            for i in range(10):
                taut.stamp("a", i), taut.stamp("b", i)
            raise KeyError("robot")
        """,
    )
    assert done.returncode == 1 and "KeyError: 'robot'" in done.stderr
    assert "taut: recording process" in done.stderr and "taut: run.mcap: 20 stamps" in done.stderr
    assert len(taut.open(tmp_path / "run.mcap").messages) == 10


def test_what_cannot_be_recorded_is_an_error_of_one_line(tmp_path: Path) -> None:
    text = """
        import taut
        try:
            with taut.record("no/such/folder/run.mcap"):
                print("inside")
        except RuntimeError as error:
            said = str(error)
            print(said.count("\\n"), said.count("no/such/folder/run.mcap"), said.count("os error"))
    """
    done = program(tmp_path, text)
    assert done.stdout == "0 1 1\n", done.stdout + done.stderr


def test_who_is_recorded_already_is_told(tmp_path: Path) -> None:
    (tmp_path / "robot.py").write_text("import taut\nwith taut.record('inner.mcap'):\n    pass\n")
    command = [
        Path(sys.executable).with_name("taut"),
        "record",
        "-q",
        "-o",
        "outer.mcap",
        "--",
        sys.executable,
        "robot.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "RuntimeError: this process is recorded already, by the `taut record` that started it" in done.stderr


def marks(folder: Path, text: str) -> list[str]:
    """What a program stamps, in order, as "begin plan" and so on."""
    read = """
        import struct, sys
        from pathlib import Path

        def told():
            # docs/reference/protocol.md: the records of the only slot that wrote.
            [path] = Path(sys.argv[1]).glob("*.taut")
            data = path.read_bytes()
            names, slots, rings = struct.unpack_from("<QQQ", data, 48)
            [head] = struct.unpack_from("<Q", data, slots + 64)
            for at in range(head):
                _, message, point, kind, _ = struct.unpack_from("<QQIIQ", data, rings + 32 * at)
                [length] = struct.unpack_from("<I", data, names + 128 * (point - 1))
                start = names + 128 * (point - 1) + 8
                name = data[start : start + length].decode()
                word = {1: f"stamp {message}", 2: "begin", 3: "end", 6: "wait", 7: "had"}.get(kind)
                if word:
                    print(word, name)
    """
    session = folder / "session"
    session.mkdir(0o700)
    text = textwrap.dedent(read) + textwrap.dedent(text) + "\ntold()\n"
    done = program(folder, text, session, TAUT_SESSION=str(session), TAUT_RING_RECORDS="128")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_traced_function_is_work(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import taut

        @taut.traced
        def plan(a, *, b=2):
            "Plans."
            return a + b

        class Robot:
            @taut.traced("robot.step")
            def step(self):
                assert plan(1, b=3) == 4
                raise KeyError

        assert (plan.__name__, plan.__doc__) == ("plan", "Plans.")
        try:
            Robot().step()
        except KeyError:
            pass
        """,
    )
    assert told == ["begin robot.step", "begin plan", "end plan", "end robot.step"]


def test_of_a_coroutine_its_steps_are_work_and_its_waits_are_not(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import asyncio, inspect
        import taut

        @taut.traced("fetch")
        async def fetch(gate):
            await gate.wait()
            return 7

        @taut.traced("other")
        async def other():
            await asyncio.sleep(0)

        @taut.traced("fails")
        async def fails():
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:
                raise ValueError("cancelled") from None

        async def main():
            gate = asyncio.Event()
            task = asyncio.create_task(fetch(gate))
            await asyncio.sleep(0)
            await other()
            gate.set()
            assert await task == 7
            late = asyncio.create_task(fails())
            await asyncio.sleep(0)
            late.cancel()
            try:
                await late
            except ValueError as error:
                assert str(error) == "cancelled"

        assert inspect.iscoroutinefunction(fetch)
        asyncio.run(main())
        """,
    )
    steps = ["fetch", "other", "other", "fetch", "fails", "fails"]
    assert told == [f"{word} {name}" for name in steps for word in ("begin", "end")]


LOOP = """
    import asyncio, functools
    {imports}
    import taut, taut.tasks

    taut.tasks.MOST_NAMES = 3
    taut.name_tasks()
    taut.name_tasks()

    class Robot:
        def tick(self, times):
            pass

    async def camera_poll():
        await asyncio.sleep(0)

    async def main():
        asyncio.get_running_loop().call_soon(functools.partial(Robot().tick, 1))
        names = [None, "left \\udcff", "right"]
        tasks = [asyncio.create_task(camera_poll(), name=name) for name in names]
        for task in tasks:
            await task

    asyncio.set_event_loop({loop})
    asyncio.get_event_loop().run_until_complete(main())
"""


def test_what_an_event_loop_runs_is_work(tmp_path: Path) -> None:
    told = marks(tmp_path, LOOP.format(imports="", loop="asyncio.new_event_loop()"))
    # The third name is one too many.
    poll = ["task camera_poll", "task left ?", "task camera_poll"]
    work = ["task main", "callback Robot.tick", *poll, *poll, "task main"]
    assert told[: 2 * len(work)] == [f"{word} {name}" for name in work for word in ("begin", "end")]


def test_so_are_the_tasks_of_uvloop(tmp_path: Path) -> None:
    pytest.importorskip("uvloop")
    told = marks(tmp_path, LOOP.format(imports="import uvloop", loop="uvloop.new_event_loop()"))
    poll = ["task camera_poll", "task left ?", "task camera_poll"]
    work = ["task main", "callback Robot.tick", *poll, *poll, "task main"]
    assert told[: 2 * len(work)] == [f"{word} {name}" for name in work for word in ("begin", "end")]


def test_a_callback_without_any_name_stops_no_loop(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import asyncio
        import taut

        class Proxy:
            def __getattr__(self, name):
                raise RuntimeError("of nothing")
            def __call__(self):
                print("called")

        taut.name_tasks()
        loop = asyncio.new_event_loop()
        loop.call_soon(Proxy())
        loop.call_soon(loop.stop)
        loop.run_forever()
        """,
    )
    assert told[:3] == ["called", "begin callback", "end callback"]


def test_tasks_are_marked_from_the_session_on(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        """
        import asyncio
        import taut

        before = asyncio.Handle._run
        taut.name_tasks()
        print(asyncio.Handle._run is before)
        with taut.record("run.mcap", quiet=True):
            print(asyncio.Handle._run is before)
        """,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_of_generators_too(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import asyncio
        import taut

        @taut.traced("count")
        def count():
            got = yield 1
            try:
                yield got
            except KeyError:
                yield "caught"
            return "done"

        def all_of_it():
            return (yield from count())

        steps = all_of_it()
        assert (next(steps), steps.send(5), steps.throw(KeyError())) == (1, 5, "caught")
        try:
            next(steps)
        except StopIteration as stop:
            assert stop.value == "done"

        closed = []

        @taut.traced("rows")
        async def rows():
            try:
                for i in range(3):
                    await asyncio.sleep(0)
                    yield i
            finally:
                closed.append(True)

        async def main():
            assert [row async for row in rows()] == [0, 1, 2]
            some = rows()
            assert await anext(some) == 0
            await some.aclose()

        asyncio.run(main())
        assert closed == [True, True]
        """,
    )
    assert told[:8] == ["begin count", "end count"] * 4
    assert set(told[8:]) == {"begin rows", "end rows"}
    assert told[8::2] == ["begin rows"] * (len(told[8:]) // 2)


def test_a_call_that_handles_a_message_is_stamped(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import asyncio
        import taut

        @taut.traced("plan", message="target")
        def plan(state, target=3):
            if target == 9:
                raise KeyError

        plan(None)
        plan(None, 4)
        plan(None, target=5)
        try:
            plan(None, 9)
        except KeyError:
            pass

        @taut.traced(message=lambda state: state["seq"])
        async def send(state):
            await asyncio.sleep(0)

        asyncio.run(send({"seq": 6}))

        for wrong in (lambda: taut.traced("x", message="seq")(plan), lambda: taut.traced("g", message="n")(generator)):
            def generator(n):
                yield n
            try:
                wrong()
            except TypeError as error:
                print(error)
        """,
    )
    assert told == [
        "x has no parameter 'seq'; it has state, target",
        "g: a generator handles no single message; stamp within it",
        *(f"stamp {i} plan.{end}" for i in (3, 4, 5) for end in ("begin", "end")),
        "stamp 9 plan.begin",
        "stamp 6 send.begin",
        "stamp 6 send.end",
    ]


def test_an_instrumented_lock_is_a_lock_and_marks_only_waits(tmp_path: Path) -> None:
    told = marks(
        tmp_path,
        """
        import threading
        import taut

        lock = taut.Lock("sdk")
        with lock:
            assert lock.locked() and not lock.acquire(blocking=False)
            assert not lock.acquire(timeout=0.001)         # a wait
        lock.acquire(), lock.release()
        again = taut.RLock("state")
        with again, again:
            pass
        ready = threading.Condition(again)
        with ready:
            assert not ready.wait(0.001)                   # waits for the condition, not for the lock
            ready.notify_all()
        try:
            lock.acquire(blocking=False, timeout=5)
        except ValueError:
            print("as threading.Lock")
        unnamed = taut.Lock()
        print(unnamed.name)
        """,
    )
    assert told[0] == "as threading.Lock"
    assert re.fullmatch(r"lock robot\.py:\d+", told[1])
    assert told[2:] == ["wait sdk", "had sdk"]


def test_a_program_whose_name_is_no_text_records_itself(tmp_path: Path) -> None:
    # The kernel keeps 15 bytes of a name, the last of them a part of a character.
    done = program(
        tmp_path,
        """
        import ctypes, pathlib, taut

        ctypes.CDLL(None).prctl(15, "x로봇팔제어".encode(), 0, 0, 0)
        try:
            pathlib.Path("/proc/self/comm").read_bytes().decode()
        except UnicodeDecodeError:
            with taut.record("run.mcap"):
                taut.stamp("loop.begin", 1)
            print("recorded")
        """,
    )
    assert done.stdout == "recorded\n", done.stderr


def test_a_loss_is_reported_however_quiet(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        """
        import warnings
        import taut

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with taut.record("run.mcap", options=["--tier", "stamps", "-q"]) as recording:
                for i in range(200_000):
                    taut.stamp("loop", i)
        print(recording.exit_code, [str(one.message) for one in caught if one.category is RuntimeWarning])
        """,
        TAUT_RING_RECORDS="64",
    )
    assert re.fullmatch(r"5 \['run\.mcap: .* stamps LOST.*'\]\n", done.stdout), done.stdout + done.stderr
    assert done.stderr == ""


def test_stderr_that_takes_nothing_is_no_failure_of_the_program(tmp_path: Path) -> None:
    text = """
        import os, sys
        import taut

        if sys.argv[1] == "full":
            os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
        elif sys.argv[1] == "closed":
            sys.stderr.close()
        elif sys.argv[1] == "none":
            sys.stderr = None
        else:
            class Refuses:
                def write(self, text):
                    raise OSError
                def flush(self):
                    pass
            sys.stderr = Refuses()
        with taut.record("run.mcap", options=["--tier", "stamps"]) as recording:
            taut.stamp("a", 1), taut.stamp("b", 1)
        print(recording.exit_code)
    """
    for stderr in ("full", "closed", "none", "refuses"):
        done = program(tmp_path, text, stderr)
        assert (done.returncode, done.stdout) == (0, "0\n"), (stderr, done.stderr)
        assert len(taut.open(tmp_path / "run.mcap").messages) == 1


def test_a_recorder_that_says_much_is_not_held(tmp_path: Path) -> None:
    # More than a pipe takes, before it is asked to end.
    line = "taut: saved run-1.mcap: the last 30.0 s, because a message took 20.000 ms"
    script = f"""
        echo 'taut: recording process 1, stamps tier' >&2
        trap 'echo "taut: run.mcap: 1 stamps, 3 stamps LOST" >&2; exit 5' TERM
        i=0; while [ $i -lt 2000 ]; do echo '{line}' >&2; i=$((i + 1)); done
        touch said
        while :; do sleep 0.05; done
    """
    (tmp_path / "recorder").write_text("#!/bin/sh\n" + textwrap.dedent(script))
    (tmp_path / "recorder").chmod(0o755)
    done = program(
        tmp_path,
        """
        import os, time
        import taut, taut.recorder

        taut.recorder._binary = lambda: "./recorder"
        with taut.record("run.mcap") as recording:
            until = time.monotonic() + 600
            while not os.path.exists("said"):
                assert time.monotonic() < until, "it is held"
                time.sleep(0.01)
        print(recording.exit_code)
        """,
    )
    assert done.stdout == "5\n", done.stderr
    assert done.stderr.count(line) == 2000
    assert "RuntimeWarning: run.mcap: 1 stamps, 3 stamps LOST" in done.stderr
