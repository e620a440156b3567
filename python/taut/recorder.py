"""Records this process, from inside: `with taut.record("run.mcap"): …`."""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar

from taut import _taut
from taut.threads import attach


class record:
    """Records this process and its children while the block runs, as `taut record` does from outside.

    The recorder is a process of its own, so that it takes no time from this one. When the block is entered it records already;
    when the block is left the file is whole. `options` are those of the command: `taut.record("run.mcap",
    options=["--profile", "99"])`. RuntimeError, in one line, when nothing can be recorded; RuntimeWarning, when data was lost.
    """

    _active: ClassVar["record | None"] = None

    def __init__(
        self, path: str | os.PathLike[str] = "taut-run.mcap", *, options: Sequence[str] = (), quiet: bool = False
    ) -> None:
        self.path = Path(path)
        """The recording."""
        self.exit_code: int | None = None
        """Of the recorder, once the block is left: 0, or 5 where data was lost."""
        # A recorder that says nothing does not say that it records.
        self._options = [option for option in options if option not in QUIET]
        self._quiet = quiet or len(self._options) < len(options)
        self._recorder: subprocess.Popen[bytes] | None = None
        self._words = -1
        self._told = 0
        self._environment: str | None = None

    def __enter__(self) -> "record":
        if record._active is not None:
            raise RuntimeError(f"this process is recorded already, into {record._active.path}; one recording at a time")
        session = _session()
        command = [_binary(), "record", "--pid", str(os.getpid()), "--session", session, "-o", str(self.path)]
        # What it says goes to memory: nobody reads a pipe meanwhile, and a recorder would wait before a full one.
        self._words, self._told = os.memfd_create("taut-record"), 0
        try:
            # In a session of its own: Ctrl-C is for this process, which then ends the recording.
            self._recorder = subprocess.Popen(
                [*command, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._words,
                start_new_session=True,
            )
            try:
                self._wait_for_start(self._recorder)
            except BaseException:
                self._recorder.kill()
                self._recorder.wait()
                raise
        except BaseException:
            os.close(self._words)
            raise
        record._active = self
        # Programs that are started meanwhile stamp, too.
        self._environment = os.environ.get("TAUT_SESSION")
        os.environ["TAUT_SESSION"] = session
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        recorder = self._recorder
        assert recorder is not None, "the block was entered"
        record._active = None
        if self._environment is None:
            os.environ.pop("TAUT_SESSION", None)
        else:
            os.environ["TAUT_SESSION"] = self._environment
        # Not SIGINT, which what runs in a script's background ignores.
        recorder.send_signal(signal.SIGTERM)
        self.exit_code = recorder.wait()
        said = self._said()
        os.close(self._words)
        self._say(said)
        if self.exit_code == DATA_LOST:
            lost = [line for line in said.splitlines() if " LOST" in line]
            text = _last("\n".join(lost)) or f"{self.path}: data was lost"
            # Where stderr is closed, this is for handlers of warnings only.
            with contextlib.suppress(OSError, ValueError):
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        elif self.exit_code != 0:
            raise RuntimeError(_last(said) or f"the recorder ended with {self.exit_code}")

    def _wait_for_start(self, recorder: "subprocess.Popen[bytes]") -> None:
        while True:
            # Asked first: of one that has ended all is said.
            code = recorder.poll()
            said = self._said()
            if any(line.startswith("taut: recording process") for line in said.split("\n")[:-1]):
                self._say(said)
                return
            if code is not None:
                raise RuntimeError(_last(said) or f"the recorder ended with {code}")
            time.sleep(LOOK_S)

    def _said(self) -> str:
        """All that the recorder has said."""
        return os.pread(self._words, os.fstat(self._words).st_size, 0).decode(errors="replace")

    def _say(self, said: str) -> None:
        """Passes on what is new."""
        new, self._told = said[self._told :], len(said)
        if not self._quiet:
            _tell(new)


# As the command's table has it.
DATA_LOST = 5
QUIET = ("-q", "--quiet")
# Between two looks at what a recorder says while it starts.
LOOK_S = 0.002


def _tell(text: str) -> None:
    """To stderr. That it takes nothing is no failure of the program, nor of its recording."""
    stream, own = sys.stderr, sys.__stderr__
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        if own is not None and stream is own:
            # Past its buffer: what stays in it fails the end of the interpreter.
            stream.flush()
            os.write(stream.fileno(), text.encode(stream.encoding, "backslashreplace"))
        else:
            stream.write(text)


def _last(said: str) -> str:
    """The line that tells what was wrong."""
    return said.strip().rsplit("\n", 1)[-1].removeprefix("taut: ")


def _binary() -> str:
    """The command, which the wheel brings along."""
    beside = Path(sysconfig.get_path("scripts"), "taut")
    found = str(beside) if beside.exists() else shutil.which("taut")
    if found is None:
        raise RuntimeError("the command `taut` is not there; install the wheel, or put it into PATH")
    return found


def _session() -> str:
    """The directory through which this process stamps, made if there is none. Stays for the life of the process: its rings are there."""
    if not _taut.status()["attached"]:
        folder = _fresh()
        if not attach(folder):
            shutil.rmtree(folder, ignore_errors=True)
            raise RuntimeError(f"{folder}: no ring can be made there, so this process cannot stamp")
        _ours.add(folder)
        atexit.register(_remove, folder, os.getpid())
    session = _taut.session() or ""
    if session not in _ours and Path(session).name.startswith(PREFIX):
        raise RuntimeError("this process is recorded already, by the `taut record` that started it")
    return session


def _remove(folder: str, owner: int) -> None:
    # A child made by fork has been told to remove it, too.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


# As `taut record` names them, so that what a killed process leaves is removed by the next recorder.
PREFIX = "taut-session-"
_ours: set[str] = set()


def _fresh() -> str:
    """A directory of its own on a tmpfs, named after the process: PID namespace, pid, start time."""
    namespace = os.stat("/proc/self/ns/pid").st_ino
    # The name in it may be any bytes.
    stat = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    for n in range(1000):
        folder = f"{shared}/{PREFIX}{namespace}-{os.getpid()}-{int(stat[19])}-{n}"
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        return folder
    raise RuntimeError(f"{shared}: no session directory can be made there")
