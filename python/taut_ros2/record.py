"""The launch action `Record`: it prepares the environment of the nodes after it, starts `taut record`, and ends it with the launch."""

import atexit
import datetime
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import launch.logging
from launch.action import Action
from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
from launch.frontend import expose_action
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

# Seconds; the recorder needs well below one for either.
MOST_TO_START, MOST_TO_END = 20.0, 30.0


@expose_action("taut_record")
class Record(Action):
    """Records the nodes that are launched after it, until the last of them has ended.

    A failure of the recorder is an error in launch's log, and the launch goes on: what is recorded must not depend on who records.

    :param output: the recording [default: ~/.ros/taut/TIME.mcap; $ROS_HOME takes the place of ~/.ros]
    :param arguments: more options of `taut record`, such as "--tier stamps --depth sched"
    :param command: the program taut [default: the one beside Python, or of PATH]
    """

    def __init__(self, *, output=None, arguments="", command="", **kwargs):
        super().__init__(**kwargs)
        self._output = None if output is None else normalize_to_list_of_substitutions(output)
        self._arguments = normalize_to_list_of_substitutions(arguments)
        self._command = normalize_to_list_of_substitutions(command)
        self._logger = launch.logging.get_logger("taut_record")
        self._recorder = None
        self._said = []
        self._is_started = threading.Event()
        self._running = set()
        self._is_shutting_down = False
        self.path = None

    @classmethod
    def parse(cls, entity, parser):
        """`<taut_record output="run.mcap"/>` in XML, `- taut_record: {output: run.mcap}` in YAML."""
        _, kwargs = super().parse(entity, parser)
        for name in ("output", "arguments", "command"):
            value = entity.get_attr(name, optional=True)
            if value is not None:
                kwargs[name] = parser.parse_substitution(value)
        return cls, kwargs

    def execute(self, context):
        """Sets TAUT_SESSION and LD_PRELOAD for what is launched from now on, and starts the recorder."""
        command = perform_substitutions(context, self._command) or beside_python()
        arguments = shlex.split(perform_substitutions(context, self._arguments))
        self.path = self._path(context)
        try:
            session = tempfile.mkdtemp(prefix="taut-launch-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
            atexit.register(shutil.rmtree, session, ignore_errors=True)
            variables = nodes_environment(command, session, context.environment)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            words = [
                command,
                "record",
                "--pid",
                str(os.getpid()),
                "--session",
                session,
                "-o",
                str(self.path),
                *arguments,
            ]
            self._start(words)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            self._logger.error(f"nothing is recorded: {said.strip()}")
            return None
        context.environment.update(variables)
        atexit.register(self._end)
        context.register_event_handler(OnProcessStart(on_start=self._on_start))
        context.register_event_handler(OnProcessExit(on_exit=self._on_exit))
        context.register_event_handler(OnShutdown(on_shutdown=self._on_shutdown))
        return None

    def _path(self, context):
        if self._output is not None:
            return Path(perform_substitutions(context, self._output)).expanduser().absolute()
        home = Path(context.environment.get("ROS_HOME") or "~/.ros").expanduser()
        return home / "taut" / f"{datetime.datetime.now():%Y-%m-%d-%H-%M-%S}.mcap"

    def _start(self, words):
        # A session of its own: Ctrl-C reaches the launch, which ends its nodes first and then the recorder.
        self._recorder = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, args=[self._recorder.stderr], daemon=True).start()
        # What nodes do before it is there is not recorded.
        if not self._is_started.wait(MOST_TO_START) or self._recorder.poll() is not None:
            self._recorder.kill()
            raise RuntimeError(" ".join(self._said) or f"{shlex.join(words)} does not start")

    def _listen(self, lines):
        # launch is a node, too, as soon as it loads components; it is not recorded.
        own = f"taut: warning: process {os.getpid()} "
        for line in lines:
            if line.startswith(own):
                continue
            self._said.append(line.strip())
            if line.startswith("taut: recording "):
                self._is_started.set()
            if self._is_started.is_set():
                self._logger.info(line.strip().removeprefix("taut: "))
        self._is_started.set()

    def _on_start(self, event, context):
        self._running.add(event.pid)

    def _on_exit(self, event, context):
        self._running.discard(event.pid)
        self._end_if_all_have_ended()

    def _on_shutdown(self, event, context):
        self._is_shutting_down = True
        self._end_if_all_have_ended()

    def _end_if_all_have_ended(self):
        if self._is_shutting_down and not self._running:
            self._end()

    def _end(self):
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.send_signal(signal.SIGINT)
        try:
            code = recorder.wait(MOST_TO_END)
        except subprocess.TimeoutExpired:
            recorder.kill()
            code = recorder.wait()
        if code:
            self._logger.error(f"taut record ended with {code}: {self._said[-1] if self._said else 'it said nothing'}")


def beside_python():
    """pip puts the program where it puts Python's; else it is of PATH."""
    path = Path(sys.executable).parent / "taut"
    return str(path) if path.exists() else "taut"


def nodes_environment(command, session, environment):
    """What `taut ros2 env` says, which keeps what LD_PRELOAD holds already."""
    said = subprocess.run(
        [command, "ros2", "env", "--session", session], env=environment, check=True, capture_output=True, text=True
    ).stdout
    words = shlex.split(said)
    return dict(word.split("=", 1) for word in words if word != "export")
