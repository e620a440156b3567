"""One recording for all who look at one, and one fleet."""

import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import pytest

TAUT = Path(sys.executable).with_name("taut")
MESSAGES = 120
# Two threads and a queue; a few messages are dropped on the way, and one lock is fought for.
PROGRAM = f"""
    import queue, threading, time
    import taut

    inbox = queue.Queue()
    lock = taut.Lock("plan_lock")

    def work():
        while (i := inbox.get()) is not None:
            taut.stamp("b.taken", i)
            if i % 40 == 39:
                taut.drop(i, "stale")
                continue
            with lock:
                sum(range(2000))
            taut.stamp("c.done", i)
            taut.applied(i)

    thread = threading.Thread(target=work)
    thread.start()
    for i in range({MESSAGES}):
        taut.stamp("a.put", i)
        inbox.put(i)
        with lock:
            time.sleep(0.002)
    inbox.put(None)
    thread.join()
"""


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "robot.py").write_text(textwrap.dedent(PROGRAM))
    command = [
        TAUT,
        "record",
        "-q",
        "--ignore-loss",
        "-o",
        folder / "run.mcap",
        "--",
        sys.executable,
        folder / "robot.py",
    ]
    subprocess.run(command, check=True)
    return folder / "run.mcap"


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """14 robots over three weeks, a result every third day, with a bad robot and an upgrade in the middle."""
    from bench.fleet import made  # which needs DuckDB

    folder = tmp_path_factory.mktemp("fleet")
    made.partitioned(made.Fleet(14, date(2026, 10, 5), runs=7, hours=72, messages_an_hour=400, rollout=(2, 6)), folder)
    return folder
