"""`taut top` in a real terminal: tmux."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reported import reported

TAUT = Path(sys.executable).with_name("taut")
# Looks at what is waited for, 100 ms apart: an end to waiting for what will not come, on however busy a machine.
PATIENCE = 3000
# An escape sequence that sets the colour of what follows, and not back to the terminal's own.
COLOUR = re.compile(r"\x1b\[(\d+;)*(3[0-8]|9[0-7])[;m]")
# A chain of two hops at some 200 Hz, each tenth message dropped, until it is told to stop.
PROGRAM = """
    import queue, sys, threading, time
    import taut

    inbox = queue.Queue()
    over = threading.Event()

    def work():
        while (i := inbox.get()) is not None:
            taut.stamp("arm.taken", i)
            if i % 10 == 9:
                taut.drop(i, "speed_limit")
                continue
            sum(range(3000))
            taut.stamp("arm.done", i)
            taut.applied(i)

    def loop():
        i = 0
        while not over.wait(0.005):
            i += 1
            taut.stamp("plan.made", i)
            inbox.put(i)
        inbox.put(None)

    threads = [threading.Thread(target=body) for body in (loop, work)]
    for thread in threads:
        thread.start()
    print("runs", flush=True)
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
"""


class Tmux:
    """A terminal of 80 × 24 with a shell in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmux.conf").write_text("set -g status off\n")
        shell = "env -u TMUX PS1='$ ' ENV= sh"
        self("new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), shell)
        # Until then tmux still sets the terminal up.
        self.wait_for("$")

    def __call__(self, *words: str) -> str:
        command = ["tmux", "-u", "-S", str(self.folder / "tmux"), "-f", str(self.folder / "tmux.conf"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def type(self, *keys: str) -> None:
        self("send-keys", *keys)

    def screen(self, *options: str) -> str:
        return self("capture-pane", "-p", *options)

    def wait_for(self, *texts: str) -> str:
        """The screen, once it shows all of these."""
        for _ in range(PATIENCE):
            screen = self.screen()
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"no {texts} on:\n{screen}")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    terminal = Tmux(tmp_path)
    yield terminal
    terminal("kill-server")


@contextlib.contextmanager
def robot(folder: Path, recorded: bool = True) -> Iterator["subprocess.Popen[str]"]:
    """A robot in a session, recorded into run.mcap or not."""
    (folder / "robot.py").write_text(textwrap.dedent(PROGRAM))
    session = folder / "session"
    session.mkdir(0o700)
    command = [sys.executable, str(folder / "robot.py")]
    if recorded:
        command = [str(TAUT), "record", "-q", "-o", str(folder / "run.mcap"), "--session", str(session), "--", *command]
    environment = os.environ | {"TAUT_SESSION": str(session)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "runs\n"
        yield process
        process.stdin.close()
        code = process.wait()
    if code == 5:
        # A busy machine may lose kernel events, and nothing else.
        reported = subprocess.run([TAUT, "report", folder / "run.mcap", "--format", "json"], capture_output=True)
        recording = json.loads(reported.stdout)["recording"]
        assert recording["lost_kernel_events"] > 0 and recording["lost_stamps"] == 0, recording
    else:
        assert code == 0


def children(tmux: Tmux) -> list[int]:
    """What the shell runs."""
    shell = tmux("display-message", "-p", "#{pane_pid}").strip()
    return [int(pid) for pid in Path(f"/proc/{shell}/task/{shell}/children").read_text().split()]


def wait_until_idle(tmux: Tmux) -> None:
    """Until what the shell ran has ended: the terminal is given back before that."""
    for _ in range(PATIENCE):
        if not children(tmux):
            return
        time.sleep(0.1)
    raise AssertionError(f"the shell still runs {children(tmux)}")


def is_given_back(tmux: Tmux) -> Callable[[], None]:
    """Remembers the terminal's settings; what it returns holds the terminal against them."""

    def settings() -> str:
        tty = tmux("display-message", "-p", "#{pane_tty}").strip()
        return subprocess.run(["stty", "-F", tty, "-a"], check=True, capture_output=True, text=True).stdout

    before = settings()

    def check() -> None:
        for _ in range(PATIENCE):
            modes = tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split()
            if settings() == before and modes == ["0", "1"]:
                return
            time.sleep(0.1)
        raise AssertionError(f"{settings()} is not {before}; alternate screen, cursor: {modes}")

    return check


def test_it_looks_on_while_a_recorder_runs(tmp_path: Path, tmux: Tmux) -> None:
    with robot(tmp_path):
        check = is_given_back(tmux)
        tmux.type(f"{TAUT} top run.mcap", "Enter")
        screen = tmux.wait_for("plan.made → arm.done", "speed_limit", "THREADS", "python")
        lines = screen.splitlines()
        assert len(lines) == 24 and lines[0].startswith("taut top · run.mcap") and "stamps/s" in lines[0]
        assert all(len(line) <= 80 for line in lines)
        # A busy machine may lose kernel events.
        assert re.match(r"(nothing lost|LOST [\d ]+ kernel events) · no guard", lines[1])
        assert "HOPS from plan.made" in screen and "→ arm.taken" in screen and "→ arm.done" in screen
        # Into the second hop, and back.
        tmux.type("Enter", "Down", "Enter")
        tmux.wait_for("HOP 2 of plan.made", "since the start", "DISTRIBUTION")
        tmux.type("Escape")
        tmux.wait_for("HOPS from plan.made")
        # Into a thread.
        tmux.type("Tab", "Enter")
        tmux.wait_for("THREAD Thread-", "running", "turn by turn")
        tmux.type("Escape")
        tmux.wait_for("HOPS from plan.made")
        tmux.type("?")
        tmux.wait_for("Any key closes this.")
        tmux.type("x", "s")
        tmux.wait_for("CHAINS, 10 s, by p99")
        tmux.type("p")
        tmux.wait_for("PAUSED")
        tmux.type("p", "r")
        tmux.wait_for("recording taut-top-1.mcap")
        assert COLOUR.search(tmux.screen("-e"))
        tmux.type("q")
        tmux.wait_for("taut: recorded taut-top-1.mcap", "next: taut report taut-top-1.mcap")
        check()
    # What was kept reads as a recording, with the names that were told before it began.
    (chain,) = json.loads(reported(tmp_path / "taut-top-1.mcap"))["chains"]
    assert [(hop["from"], hop["to"]) for hop in chain["hops"]] == [
        ("plan.made", "arm.taken"),
        ("arm.taken", "arm.done"),
    ]


def test_without_a_recorder_it_is_one_and_keeps_nothing(tmp_path: Path, tmux: Tmux) -> None:
    with robot(tmp_path, recorded=False) as process:
        check = is_given_back(tmux)
        tmux.type(f"NO_COLOR=1 {TAUT} top --pid {process.pid}", "Enter")
        tmux.wait_for("plan.made → arm.done", f"process {process.pid}, nothing kept")
        assert not COLOUR.search(tmux.screen("-e"))
        tmux.type("C-c")
        check()
        wait_until_idle(tmux)
        # The recorder is gone with it: another one may come.
        run = tmp_path / "run.mcap"
        subprocess.run(
            [TAUT, "record", "-q", "--ignore-loss", "--pid", str(process.pid), "--duration", "1", "-o", run], check=True
        )
        assert not list(tmp_path.glob("taut-top*"))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(tmp_path: Path, tmux: Tmux, how: signal.Signals) -> None:
    with robot(tmp_path):
        check = is_given_back(tmux)
        # By the session's note of its recorder.
        tmux.type(f"{TAUT} top --session session", "Enter")
        tmux.wait_for("plan.made → arm.done")
        (top,) = children(tmux)
        os.kill(top, how)
        check()


def test_it_goes_with_its_terminal(tmp_path: Path, tmux: Tmux) -> None:
    with robot(tmp_path):
        tmux.type(f"{TAUT} top --session session", "Enter")
        tmux.wait_for("plan.made → arm.done")
        (top,) = children(tmux)
        process = Path(f"/proc/{top}")
        tmux("respawn-pane", "-k")
        for _ in range(PATIENCE):
            if not process.exists():
                return
            time.sleep(0.1)
        os.kill(top, signal.SIGKILL)
        raise AssertionError("taut top outlives its terminal")


def test_the_end_of_the_recording_is_said(tmp_path: Path, tmux: Tmux) -> None:
    check = is_given_back(tmux)
    with robot(tmp_path):
        tmux.type(f"{TAUT} top run.mcap", "Enter")
        tmux.wait_for("plan.made → arm.done")
    tmux.wait_for("the recording has ended")
    tmux.type("q")
    check()
    tmux.type(f"{TAUT} top run.mcap", "Enter")
    tmux.wait_for("taut: run.mcap: has ended; next: taut report")


def test_what_it_cannot_show_it_says(tmp_path: Path, tmux: Tmux) -> None:
    done = subprocess.run([TAUT, "top", "x.mcap"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "draws on a terminal" in done.stderr
    tmux.type(f"{TAUT} top nothing.mcap", "Enter")
    tmux.wait_for("taut: nothing.mcap: No such file or directory")
    tmux.type(f"{TAUT} top --pid 4194304", "Enter")
    tmux.wait_for("taut: no process 4194304")
    (tmp_path / "no.mcap").write_bytes(bytes(4096))
    tmux.type(f"{TAUT} top no.mcap", "Enter")
    tmux.wait_for("no.mcap: is not a recording")
