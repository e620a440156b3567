"""The installed wheel: module and command together, read back with stock tools."""

import json
import os
import re
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import taut
from reported import reported

TAUT = Path(sys.executable).with_name("taut")
STOCK = Path(__file__).parents[2] / "trace/taut-recording/tests/stock_reader.py"


def record(folder: Path, program: str, *options: str) -> dict:
    """Records a Python program and returns its JSON report."""
    (folder / "robot.py").write_text(textwrap.dedent(program))
    run = folder / "run.mcap"
    env = {k: v for k, v in os.environ.items() if k != "TAUT_SESSION"}
    command = [TAUT, "record", "-q", "--ignore-loss", "-o", run, *options, "--", sys.executable, folder / "robot.py"]
    subprocess.run(command, check=True, env=env)
    return json.loads(reported(run))


def test_module_and_command_are_one_version() -> None:
    version = subprocess.run([TAUT, "--version"], capture_output=True, text=True, check=True).stdout
    # Then the revision, where it was built from a checkout.
    assert re.fullmatch(rf"taut {re.escape(taut.__version__)}( \([0-9a-f]{{12}}\+?\))?\n", version)


def test_without_a_session_nothing_happens() -> None:
    taut.stamp("a", 1)
    taut.drop(1, "reason")
    taut.value("x", 1.5)
    assert taut.status() == {"attached": False, "lost": 0}
    assert taut.prepare_thread() is False


@pytest.mark.parametrize("call", ["taut.stamp('a')", "taut.stamp(1, 1)", "taut.stamp('a', 'b')", "taut.drop('a', 1)"])
def test_wrong_types_are_type_errors(tmp_path: Path, call: str) -> None:
    program = f"import taut\ntaut.stamp('a', 1); taut.stamp('b', 1)\ntry:\n    {call}\nexcept TypeError:\n    taut.applied(1)\n"
    assert record(tmp_path, program)["chains"][0]["outcomes"]["applied"] == 1


def test_ids_span_64_bits_and_no_more(tmp_path: Path) -> None:
    program = """
        import taut
        for i in (0, 2**63, 2**64 - 1):
            taut.stamp("a", i); taut.stamp("b", i); taut.applied(i)
        for i in (-1, 2**64):
            try:
                taut.stamp("a", i)
            except OverflowError:
                taut.stamp("refused", 7)
    """
    report = record(tmp_path, program)
    assert report["chains"][0]["outcomes"]["applied"] == 3
    assert report["recording"]["stamps"] == 3 * 3 + 2


def test_threads_and_forks_are_recorded(tmp_path: Path) -> None:
    program = """
        import multiprocessing, threading, taut

        def work(start):
            for i in range(start, start + 100):
                taut.stamp("work.begin", i); taut.stamp("work.end", i); taut.applied(i)

        work(0)
        threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(1, 4)]
        for t in threads: t.start()
        for t in threads: t.join()
        children = [multiprocessing.get_context("fork").Process(target=work, args=(1000 * n,)) for n in range(4, 7)]
        for c in children: c.start()
        for c in children: c.join()
    """
    report = record(tmp_path, program)
    assert report["chains"][0]["messages"] == 700
    assert report["chains"][0]["outcomes"]["applied"] == 700
    assert report["recording"]["lost_stamps"] == 0


@pytest.mark.parametrize("in_session", [True, False])
def test_threads_have_their_names_in_the_kernel(tmp_path: Path, in_session: bool) -> None:
    """As Python 3.14 does by itself: before that, all have the program's. The kernel keeps 15 bytes, and no half character."""
    program = """
        import threading

        def wait():
            names[threading.current_thread().name] = open("/proc/thread-self/comm").read().strip()
            ready.wait()
            names[threading.current_thread().name] = open("/proc/thread-self/comm").read().strip()

        names = {}
        ready = threading.Event()
        early = threading.Thread(target=wait, name="before the import")
        early.start()
        main = open("/proc/self/comm").read()
        import taut
        late = threading.Thread(target=wait, name="지휘자 follower")
        late.start()
        ready.set()
        early.join(); late.join()
        assert open("/proc/self/comm").read() == main
        print([names[early.name], names[late.name]])
    """
    env = {k: v for k, v in os.environ.items() if k != "TAUT_SESSION"} | (
        {"TAUT_SESSION": str(tmp_path)} if in_session else {}
    )
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    names = ["before the impo", "지휘자 follo"]
    assert (done.stdout.strip() == str(names)) == (in_session or sys.version_info >= (3, 14)), done.stdout


def test_more_threads_than_slots_are_counted(tmp_path: Path) -> None:
    program = """
        import threading, taut
        everybody = threading.Barrier(80)

        def work(n):
            taut.stamp("a", n); everybody.wait(); taut.stamp("b", n)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(80)]
        for t in threads: t.start()
        for t in threads: t.join()
    """
    recording = record(tmp_path, program, "--ring-records", "64")["recording"]
    assert recording["stamps"] + recording["lost_stamps"] == 160
    # Whoever found no slot may have found one at its second stamp, when others had ended.
    assert recording["lost_stamps"] >= 80 - 64


def test_threads_one_after_another_reuse_slots(tmp_path: Path) -> None:
    program = """
        import threading, time, taut
        n = refused = tries = 0
        while n < 200 and tries < 4000:
            tries += 1
            t = threading.Thread(target=lambda: (taut.stamp("a", n), taut.stamp("b", n)))
            t.start(); t.join()
            # The slots of those that ended are free once the recorder has come by, whenever this machine lets it.
            if taut.status()["lost"] == refused:
                n += 1
            else:
                refused = taut.status()["lost"]
                time.sleep(0.05)
    """
    recording = record(tmp_path, program, "--ring-records", "64")["recording"]
    # Of a thread that was refused the second stamp may be in.
    assert recording["stamps"] >= 400


def test_values_and_marks_do_not_disturb_the_chain(tmp_path: Path) -> None:
    program = """
        import taut
        for i in range(50):
            taut.begin("plan"); taut.stamp("a", i); taut.value("speed", i / 2); taut.lock_wait("l"); taut.lock_acquired("l")
            taut.stamp("b", i); taut.end("plan")
    """
    report = record(tmp_path, program)
    assert [hop["from"] for hop in report["chains"][0]["hops"]] == ["a"]


def test_a_stock_reader_reads_stamps_and_values(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    record(
        tmp_path,
        'import taut\nfor i in range(100): taut.stamp("a", i); taut.value("speed", i / 4); taut.stamp("b", i)\n',
    )
    out = subprocess.run(
        [sys.executable, STOCK, tmp_path / "run.mcap"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in out.splitlines()]
    stamps = [(int(row[1]), row[2]) for row in rows if row[-1] == "1"]
    assert stamps == [(i, name) for i in range(100) for name in "ab"]
    times = [int(row[0]) for row in rows]
    assert times == sorted(times)
    with open(tmp_path / "run.mcap", "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        values = [m.value for *_, m in reader.iter_decoded_messages(topics=["/value/speed"])]
    assert values == [i / 4 for i in range(100)]


def test_the_page_of_the_docs_shows_the_reader_that_is_tested() -> None:
    docs = (Path(__file__).parents[2] / "docs/reference/recording.md").read_text()
    shown = docs.split("```python\n")[1].split("```")[0]
    tested = "".join(line for line in STOCK.read_text().splitlines(True) if not line.startswith("#"))
    assert shown.split() == tested.split()


def test_a_bad_session_never_raises(tmp_path: Path) -> None:
    program = "import taut\nfor i in range(10): taut.stamp('a', i)\nprint(*taut.status().values())"
    for session in ("/no/such/directory", "/proc", "/dev/null"):
        env = os.environ | {"TAUT_SESSION": session}
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
        assert out.stdout == "False 10\n"


def stamps_of(run: Path, point: str) -> list[tuple[int, int]]:
    """Message id and value of the stamps at a point, read with stock packages."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    names, stamps = {}, []
    with run.open("rb") as file:
        for _, channel, _, message in make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages():
            if channel.topic == "/taut/raw/names":
                names[message.id] = message.name
            elif channel.topic == "/taut/raw/stamps":
                values = dict(zip(message.value_at, message.value_bits, strict=True))
                id_ = message.first_message_id
                deltas = list(message.delta_message_id) or list(message.wide_delta_message_id)
                for at, (delta, number) in enumerate(zip(deltas, message.point, strict=True)):
                    id_ += delta
                    stamps.append((number, id_, values.get(at, 0)))
    return [(id_, value) for number, id_, value in stamps if names[number] == point]


def test_a_stamp_carries_the_time_that_it_was_due(tmp_path: Path) -> None:
    program = """
        import taut, time
        due = time.monotonic_ns()
        taut.stamp_at("loop.released", 1, due)
        taut.stamp_at("loop.released", 2, 0)
        taut.stamp("loop.released", 3)
        taut.value("due", due / 2**20)
        for wrong in (-1, 2**64, "soon", None):
            try:
                taut.stamp_at("loop.released", 4, wrong)
            except (OverflowError, TypeError):
                taut.stamp("refused", 4)
    """
    record(tmp_path, program)
    run = tmp_path / "run.mcap"
    (first, due), *rest = stamps_of(run, "loop.released")
    assert rest == [(2, 0), (3, 0)] and first == 1
    assert len(stamps_of(run, "refused")) == 4
    [(_, bits)] = stamps_of(run, "due")
    assert due / 2**20 == struct.unpack("<d", struct.pack("<Q", bits))[0]


def test_threads_that_ended_before_the_recorder_came_leave_their_slots(tmp_path: Path) -> None:
    program = """
        import sys, taut, threading

        def short_life(n):
            taut.stamp("short.life", n)

        def control():
            assert taut.prepare_thread()
            for n in range(100):
                taut.stamp("control", n)

        def run(target, *arguments):
            thread = threading.Thread(target=target, args=arguments)
            thread.start()
            thread.join()

        for n in range(100):
            run(short_life, n)
        before = taut.status()["lost"]
        with taut.record("run.mcap", options=["--tier", "stamps"], quiet=True):
            run(control)
        print(before, taut.status()["lost"])
    """
    (tmp_path / "robot.py").write_text(textwrap.dedent(program))
    session = tmp_path / "session"
    session.mkdir(mode=0o700)
    env = os.environ | {"TAUT_SESSION": str(session)}
    done = subprocess.run([sys.executable, "robot.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Those that gave way: 36 of 100 threads.
    assert done.stdout.split() == ["36", "36"]
    assert [id_ for id_, _ in stamps_of(tmp_path / "run.mcap", "control")] == list(range(100))
