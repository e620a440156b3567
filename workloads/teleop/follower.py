"""The follower's process of the split arrangement: setpoints in, commands out every 8 ms. One thread, so nothing here
waits for a lock or an interpreter.

The mailbox has depth 1: of the setpoints that wait the newest is taken, the others are superseded. Commands are
clamped against the last *sent* one. A setpoint counts as delivered when the arm's own state shows that the commands
made from it were taken. Without an answer of the guard's, motion stops and stays stopped.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import taut
from taut import guard

from . import realtime
from .account import Account
from .arms import FR20
from .commands import CallError, Commands
from .guards import Heartbeat
from .links import Control, Numbers, Setpoint, Setpoints
from .pacing import COMMAND_NS, SETPOINT_PERIOD_NS, Command, Pacing
from .processes import StartError
from .safety import VALIDATORS, ClampValidator, Limits, RejectValidator
from .stream import State, StateStream

AGE_MAX_NS = 200_000_000
"""An older setpoint is stale: it says where the operator was."""
ECHO_TIMEOUT_NS = 100_000_000
ATTEMPTS_MAX = 3
START_TIMEOUT_S = 10.0
SETTLE_S = 0.3

Stopped = Literal["guard_latched", "not_enabled"]


@dataclass
class Carried:
    """A setpoint on its way through the path. `number` is the newest command made from it."""

    setpoint: Setpoint
    after_ns: int
    number: int = 0
    sent_ns: int = 0
    modified: guard.Reason | None = None
    is_done: bool = False


class Follower:
    """`validator` is a `RejectValidator` (of setpoints, as they come) or a `ClampValidator` (of commands)."""

    def __init__(
        self,
        commands: Commands,
        stream: StateStream,
        setpoints: Setpoints,
        heartbeat: Numbers,
        asker: Heartbeat,
        validator: RejectValidator | ClampValidator,
    ) -> None:
        self._commands, self._stream, self._setpoints = commands, stream, setpoints
        self._heartbeat, self._asker, self._validator = heartbeat, asker, validator
        self._pacing = Pacing(axes=6)
        self._retry = guard.Retry(SETPOINT_PERIOD_NS, ATTEMPTS_MAX)
        self._carried: deque[Carried] = deque()
        self._newest_source_ns = 0
        self._number = 0
        self._stopped: Stopped | None = None
        self.account = Account()
        self.commands_sent = 0
        self.retries = 0
        self.stops: list[str] = []
        self.added_delay_ns: list[int] = []
        self.arm_is_gone = False

    def timeout_s(self, now_ns: int) -> float:
        """How long nothing is due."""
        due_ns = self._pacing.due_ns if self._pacing.due_ns and not self._stopped else now_ns + COMMAND_NS
        return max(0, min(due_ns - now_ns, COMMAND_NS)) / 1e9

    def turn(self) -> None:
        """Take what came, send what is due."""
        states = [] if self.arm_is_gone else self._stream.read(wait=False)
        if states is None:
            self.arm_is_gone = True
            self._stop("not_enabled")
        elif states:
            self._confirm(states[-1])
        self._hear_guard()
        self._take(self._setpoints.waiting())
        now_ns = time.monotonic_ns()
        if self._stopped is None and self._pacing.due_ns is not None and now_ns >= self._pacing.due_ns:
            command = self._pacing.next(now_ns)
            if command is not None:
                self._send(command)
        self.account.check(now_ns)

    def finish(self, produced: int) -> None:
        """Sends nothing more; what the arm has taken is confirmed, the rest ends with its reason."""
        ends = time.monotonic() + SETTLE_S
        while any(one.number for one in self._carried) and time.monotonic() < ends and not self.arm_is_gone:
            time.sleep(0.002)
            states = self._stream.read(wait=False)
            self.arm_is_gone = states is None
            for one in self._carried:
                one.is_done = one.is_done or one.number > 0
            if states:
                self._confirm(states[-1])
        while self._carried:
            self._end(self._carried.popleft())
        self._take(self._setpoints.waiting(), is_over=True)
        self.account.close(produced)

    def _take(self, waiting: list[Setpoint], is_over: bool = False) -> None:
        arrived_ns = time.monotonic_ns()
        for setpoint in waiting:
            self.account.enter(setpoint.id, setpoint.produced_ns)
        for setpoint in waiting[:-1]:
            self.account.drop(setpoint.id, "superseded", "superseded")
        for setpoint in waiting[-1:]:
            taut.stamp("follower.command_parsed", setpoint.id)
            if is_over:
                self.account.drop(setpoint.id, "superseded", "superseded")
            elif self._stopped:
                self.account.drop(setpoint.id, "rejected", self._stopped)
            elif arrived_ns - setpoint.produced_ns > AGE_MAX_NS:
                self.account.drop(setpoint.id, "rejected", "stale")
            else:
                self._accept(setpoint, arrived_ns)

    def _accept(self, setpoint: Setpoint, arrived_ns: int) -> None:
        if not np.isfinite(setpoint.joints_deg).all():
            self.account.drop(setpoint.id, "rejected", "malformed")
            return
        if isinstance(self._validator, RejectValidator):
            verdict = self._validator.validate(np.array(setpoint.joints_deg), arrived_ns, setpoint.source_ns)
            if verdict.reason:
                # The ledger knows no rejection for a limit: what this validator drops is lost.
                self.account.drop(
                    setpoint.id, "superseded" if verdict.reason == "duplicate" else "lost", verdict.reason
                )
                return
        if not self._pacing.push(setpoint, arrived_ns):
            is_again = setpoint.source_ns == self._newest_source_ns
            self.account.drop(
                setpoint.id, "superseded" if is_again else "lost", "duplicate" if is_again else "out_of_order"
            )
            return
        self._carried.append(Carried(setpoint, self._newest_source_ns))
        self._newest_source_ns = setpoint.source_ns
        taut.stamp("follower.command_pre_hardware_write", setpoint.id)

    def _send(self, command: Command) -> None:
        joints, modified = np.array(command.joints_deg), None
        if isinstance(self._validator, ClampValidator):
            verdict = self._validator.clamp(joints, command.limit_ns / 1e9)
            assert verdict.joints_deg is not None
            joints, modified = verdict.joints_deg, verdict.changed
        newest = self._carried[-1].setpoint.id if self._carried else 0
        code = self._call(joints.tolist(), command.period_ns / 1e9, newest)
        if code is None:
            self._lose_carried()
            return
        if code != 0:
            self._stop("not_enabled")
            return
        self.commands_sent += 1
        self._number += 1
        self.added_delay_ns.append(command.added_delay_ns)
        sent_ns = time.monotonic_ns()
        for one in self._carried:
            if command.path_ns > one.after_ns:
                if one.number == 0:
                    taut.stamp("follower.command_applied", one.setpoint.id)
                one.number, one.sent_ns = self._number, sent_ns
                one.modified = one.modified or modified
                one.is_done = command.path_ns >= one.setpoint.source_ns

    def _call(self, joints: list[float], period_s: float, setpoint: int) -> int | None:
        """The controller's code, or nothing: it did not answer within one setpoint's period."""
        self._retry.begin(time.monotonic_ns())
        while True:
            try:
                left_s = max(1, self._retry.left_ns(time.monotonic_ns())) / 1e9
                return self._commands.servo_j(joints, period_s, setpoint, left_s)
            except CallError:
                self.retries += 1
                if not self._retry.again(time.monotonic_ns()):
                    return None

    def _lose_carried(self) -> None:
        """The command did not get through: setpoints that no other command carried are lost."""
        for one in [one for one in self._carried if one.number == 0]:
            self._carried.remove(one)
            self.account.drop(one.setpoint.id, "lost", "transport")

    def _confirm(self, state: State) -> None:
        """Holds what was sent against the arm's own count and target."""
        executed = int(state.values["servoJ_cmd_num"][0])
        if executed > self._number:
            self._number = executed  # a call that was given up had got through
        now_ns = time.monotonic_ns()
        while self._carried and self._carried[0].is_done:
            one = self._carried[0]
            if executed < one.number and now_ns - one.sent_ns < ECHO_TIMEOUT_NS:
                break
            self._carried.popleft()
            if executed < one.number:
                self.account.drop(one.setpoint.id, "lost", "not_executed")
            else:
                self.account.deliver(one.setpoint.id, one.modified)
        stopped = state.values["safety_stop0_state"][0] or state.values["safety_stop1_state"][0]
        if stopped and self._stopped is None:
            self._stop("not_enabled")

    def _hear_guard(self) -> None:
        now_ns = time.monotonic_ns()
        for answer in self._heartbeat.waiting():
            self._asker.hear(answer, now_ns)
        question = self._asker.question(now_ns)
        if question is not None:
            self._heartbeat.send(question)
        if self._stopped != "guard_latched" and not self._asker.beats(now_ns):
            self._stop("guard_latched")

    def _stop(self, why: Stopped) -> None:
        """A controlled stop where the arm is. Latched: only a new start leaves it."""
        self._stopped = why
        self.stops.append(why)
        for one in list(self._carried):
            if one.number == 0:
                self._carried.remove(one)
                self.account.drop(one.setpoint.id, "rejected", why)
            else:
                one.is_done = True
        try:
            self._commands.call("StopMotion", timeout_s=SETPOINT_PERIOD_NS / 1e9)
        except CallError:
            self.retries += 1  # commands have ended, and with them the arm's motion

    def _end(self, one: Carried) -> None:
        if one.number:
            self.account.drop(one.setpoint.id, "lost", "not_executed")
        else:
            self.account.drop(one.setpoint.id, "superseded", "superseded")


def run(control: Control, settings: dict[str, object], setpoints: Setpoints, heartbeat: Numbers) -> None:
    host = str(settings["host"])
    stream = StateStream(host, int(str(settings["states"])), str(settings["receiver"]))
    commands = Commands(host, int(str(settings["commands"])))
    stream.start()
    commands.must("RobotEnable", 1)
    commands.must("ServoMoveStart")
    measured = np.array(_first(stream).values["actual_joint_pos"])
    validator = VALIDATORS[str(settings["validator"])](FR20, Limits(), measured)
    asker = Heartbeat(int(str(settings["parameters_hash"])), int(str(settings["heartbeat_lapse_ns"])))
    _await_guard(heartbeat, asker, stream)
    follower = Follower(commands, stream, setpoints, heartbeat, asker, validator)
    priority = realtime.ask(realtime.FOLLOWER)
    taut.prepare_thread()
    realtime.without_collections()
    control.say("ready")
    # Epoll's time-outs are whole milliseconds, rounded up; a command is not to be late for that.
    with selectors.SelectSelector() as selector:
        for source in (stream, setpoints, heartbeat, control):
            selector.register(source, selectors.EVENT_READ)
        while control not in {key.fileobj for key, _ in selector.select(follower.timeout_s(time.monotonic_ns()))}:
            follower.turn()
            gone = [link for link in (setpoints, heartbeat) if not link.is_open]
            for source in [*gone, *([stream] if follower.arm_is_gone else [])]:
                if source in {key.fileobj for key in selector.get_map().values()}:
                    selector.unregister(source)
    word = control.hear()
    follower.finish(produced=int(str(word[1]["produced"])) if word else 0)
    delays = sorted(follower.added_delay_ns) or [0]
    control.say(
        "result",
        setpoints=follower.account.summary(),
        commands=follower.commands_sent,
        servo_retries=follower.retries,
        stops=follower.stops,
        added_delay_ms={"p50": delays[len(delays) // 2] / 1e6, "max": delays[-1] / 1e6},
        priority=priority,
        stream=asdict(stream.receiver.counts),
        failures=[follower.account.failure] if follower.account.failure else [],
    )
    control.hear(timeout_s=5.0)


def _first(stream: StateStream) -> State:
    ends = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < ends:
        states = stream.read()
        if states is None:
            break
        if states:
            return states[-1]
    raise StartError("no state of the follower arrived")


def _await_guard(heartbeat: Numbers, asker: Heartbeat, stream: StateStream) -> None:
    """A guard enables motion after 100 ms of fresh frames, not before."""
    ends = time.monotonic() + START_TIMEOUT_S
    while not asker.beats(time.monotonic_ns()):
        if time.monotonic() > ends:
            raise StartError("the guard does not enable motion")
        question = asker.question(time.monotonic_ns())
        if question is not None:
            heartbeat.send(question)
        time.sleep(0.002)
        stream.read(wait=False)
        for answer in heartbeat.waiting():
            asker.hear(answer, time.monotonic_ns())
