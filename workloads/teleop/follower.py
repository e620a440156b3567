"""The follower's process of the split arrangement: setpoints in, commands out every 8 ms. One thread, so nothing here
waits for a lock or an interpreter.

The latest wins: of the setpoints that wait the newest says where to be, and when. Those that waited behind it are
merged into the path that leads there; what the path leaves out is superseded. What goes to the servo has a mailbox of
depth 1, the path itself: a command is made when it can be sent, from where the path is then. Commands are clamped against
the last *sent* one. A setpoint counts as delivered when the arm's own state shows that the commands made from it were
taken. Without an answer of the guard's, motion stops and stays stopped,
unless there is an operator who looks, and presses reset.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import taut
from taut import guard

from . import realtime
from .account import Account
from .arms import FR20, Array
from .commands import CallError, Commands
from .guards import REARM_NS, Heartbeat
from .links import Control, Numbers, Setpoint, Setpoints
from .pacing import COMMAND_NS, DELAY_MOST_NS, SETPOINT_PERIOD_NS, Command, Pacing
from .processes import StartError
from .safety import VALIDATORS, ClampValidator, Limits, RejectValidator
from .stream import State, StateStream

AGE_MAX_NS = 200_000_000
"""An older setpoint is stale: it says where the operator was."""
ECHO_TIMEOUT_NS = 100_000_000
"""By the arm's own time: a state that was sampled so long after a command must show it."""
ECHO_DEG = 1e-6
ECHOES_KEPT = 64
HEADROOM = 0.94
"""Of the limits, for commands: a servo makes up for its lag faster than it was told to move, and the guard trips at the
limits themselves."""
SPEEDING_UP_DEG_S2, SLOWING_DOWN_DEG_S2 = 1700.0, 1000.0
"""The hand's own is 740; its way in straight lines of 20 ms asks for twice that at their ends. The arm's is 1500: what it
cannot follow it makes up for by going too fast."""
ATTEMPTS_MAX = 3
MALFORMED_MAX = 5
"""Setpoints in a row that are no numbers; then something is broken."""
START_TIMEOUT_S = 30.0
PLAY_OUT_NS, SETTLE_NS = DELAY_MOST_NS + 5 * SETPOINT_PERIOD_NS, 1_000_000_000

Stopped = Literal["guard_latched", "not_enabled", "malformed"]


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
        has_operator: bool = False,
    ) -> None:
        self._commands, self._stream, self._setpoints = commands, stream, setpoints
        self._heartbeat, self._asker, self._validator = heartbeat, asker, validator
        self._has_operator = has_operator
        self._pacing = Pacing(axes=6)
        self._retry = guard.Retry(SETPOINT_PERIOD_NS, ATTEMPTS_MAX)
        self._carried: deque[Carried] = deque()
        self._newest_source_ns = 0
        self._number = 0
        self._sent: deque[tuple[int, Array]] = deque(maxlen=ECHOES_KEPT)
        self._is_numbered = True
        self._arm_floor_ns: int | None = None
        self._malformed = 0
        self._stopped: Stopped | None = None
        self._stopped_ns = 0
        self._state: State | None = None
        self.account = Account()
        self.commands_sent = 0
        self.retries = 0
        self.diverged = 0
        self.stops: list[str] = []
        self.added_delay_ns: list[int] = []
        self.arm_is_gone = False

    def timeout_s(self, now_ns: int) -> float:
        """How long nothing is due."""
        due_ns = self._pacing.due_ns if self._pacing.due_ns and not self._stopped else now_ns + COMMAND_NS
        return max(0, min(due_ns - now_ns, COMMAND_NS)) / 1e9

    def turn(self) -> None:
        """Take what came, send what is due; then what is in no hurry, the arm's echo and the guard's answers."""
        self._take(self._setpoints.waiting())
        now_ns = time.monotonic_ns()
        if not self._asker.beats(now_ns):
            self._hear_guard()  # a good answer may be waiting
        if self._stopped is None and self._pacing.due_ns is not None and now_ns >= self._pacing.due_ns:
            command = self._pacing.next(now_ns)
            if command is not None:
                self._send(command)
        self._hear_arm()
        self._hear_guard()
        self.account.check(now_ns)

    def finish(self, produced: int) -> None:
        """The leader has ended: plays the path to its end, confirms what the arm has taken, and closes the account."""
        self.turn()
        ends_ns = time.monotonic_ns() + PLAY_OUT_NS
        while not all(one.is_done for one in self._carried) and self._stopped is None and time.monotonic_ns() < ends_ns:
            time.sleep(self.timeout_s(time.monotonic_ns()))
            self.turn()
        for one in self._carried:
            one.is_done = one.is_done or one.number > 0
        ends_ns = time.monotonic_ns() + SETTLE_NS
        while any(one.number for one in self._carried) and time.monotonic_ns() < ends_ns and not self.arm_is_gone:
            time.sleep(0.002)
            states = self._stream.read(wait=False)
            self.arm_is_gone = states is None
            if states:
                self._confirm(states[-1])
        while self._carried:
            self._end(self._carried.popleft())
        self.account.close(produced)

    def _take(self, waiting: list[Setpoint]) -> None:
        arrived_ns = time.monotonic_ns()
        for setpoint in waiting:
            self.account.enter(setpoint.id, setpoint.produced_ns)
            taut.stamp("follower.command_parsed", setpoint.id)
            if self._stopped:
                self.account.drop(setpoint.id, "rejected", self._stopped)
            elif arrived_ns - setpoint.produced_ns > AGE_MAX_NS:
                self.account.drop(setpoint.id, "rejected", "stale")
            else:
                self._accept(setpoint, arrived_ns, waited=setpoint is not waiting[-1])

    def _accept(self, setpoint: Setpoint, arrived_ns: int, waited: bool) -> None:
        if not np.isfinite(setpoint.joints_deg).all():
            self.account.drop(setpoint.id, "rejected", "malformed")
            self._malformed += 1
            if self._malformed >= MALFORMED_MAX:
                self._stop("malformed")
            return
        self._malformed = 0
        if isinstance(self._validator, RejectValidator):
            verdict = self._validator.validate(np.array(setpoint.joints_deg), arrived_ns, setpoint.source_ns)
            if verdict.reason:
                # The ledger knows no rejection for a limit: what this validator drops is lost.
                self.account.drop(
                    setpoint.id, "superseded" if verdict.reason == "duplicate" else "lost", verdict.reason
                )
                return
        if not self._pacing.push(setpoint, arrived_ns, waited):
            is_again = setpoint.source_ns == self._newest_source_ns
            self.account.drop(
                setpoint.id, "superseded" if is_again else "lost", "duplicate" if is_again else "out_of_order"
            )
            return
        self._carried.append(Carried(setpoint, self._newest_source_ns, modified="superseded" if waited else None))
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
        self._pacing.answered(time.monotonic_ns())
        if code is None:
            if isinstance(self._validator, ClampValidator):
                self._validator.lose()
            self._drop_passed(command.path_ns, "lost", "transport")
            return
        if code != 0:
            self._stop("not_enabled")
            return
        self.commands_sent += 1
        self._number += 1
        self._sent.append((self._number, joints))
        self.added_delay_ns.append(command.added_delay_ns)
        sent_ns = time.monotonic_ns()
        # Where the path was begun anew beyond some of them.
        self._drop_passed(command.from_ns, "superseded", "superseded")
        for one in self._carried:
            if command.path_ns <= one.after_ns:
                break
            if one.number == 0:
                taut.stamp("follower.command_applied", one.setpoint.id)
            one.number, one.sent_ns = self._number, sent_ns
            one.modified = one.modified or modified
            one.is_done = command.path_ns >= one.setpoint.source_ns

    def _drop_passed(self, path_ns: int, fate: guard.Fate, reason: guard.Reason) -> None:
        """Setpoints that no command carried, and none will: the path is beyond the stretch to them and the one from them."""
        carried = list(self._carried)
        for one, following in pairwise(carried):
            if one.number == 0 and following.setpoint.source_ns <= path_ns:
                self._carried.remove(one)
                self.account.drop(one.setpoint.id, fate, reason)

    def _call(self, joints: list[float], period_s: float, setpoint: int) -> int | None:
        """The controller's code, or nothing: it did not answer within one setpoint's period."""
        self._retry.begin(time.monotonic_ns())
        while True:
            try:
                left_s = max(1, self._retry.left_ns(time.monotonic_ns())) / 1e9
                return self._commands.servo_j(joints, period_s, setpoint, left_s)
            except CallError:
                self.retries += 1
                # It may have got through all the same: from here on the arm's count may be ahead of ours, and its
                # targets are not those of our numbers.
                self._is_numbered = False
                if not self._retry.again(time.monotonic_ns()):
                    return None

    def _hear_arm(self) -> None:
        states = [] if self.arm_is_gone else self._stream.read(wait=False)
        if states is None:
            self.arm_is_gone = True
            self._stop("not_enabled")
        elif states:
            self._confirm(states[-1])

    def _confirm(self, state: State) -> None:
        """Holds what was sent against the arm's own count and target."""
        self._state = state
        executed = int(state.values["servoJ_cmd_num"][0])
        if executed > self._number:
            self._number = executed  # a call that was given up had got through
        is_other = self._is_other_target(executed, state)
        # A state may be held up on its way: when it was sampled counts, by the least time that one ever took.
        offset_ns = state.arrived_ns - state.source_ns
        self._arm_floor_ns = offset_ns if self._arm_floor_ns is None else min(self._arm_floor_ns, offset_ns)
        sampled_ns = state.source_ns + self._arm_floor_ns
        while self._carried and self._carried[0].is_done:
            one = self._carried[0]
            if executed < one.number and sampled_ns - one.sent_ns < ECHO_TIMEOUT_NS:
                break
            self._carried.popleft()
            if executed < one.number or (executed == one.number and is_other):
                self.account.drop(one.setpoint.id, "lost", "not_executed")
            else:
                self.account.deliver(one.setpoint.id, one.modified)
        stopped = state.values["safety_stop0_state"][0] or state.values["safety_stop1_state"][0]
        if stopped and self._stopped is None:
            self._stop("not_enabled")

    def _is_other_target(self, executed: int, state: State) -> bool:
        """Whether the arm's target is not what was sent under this number: it was bent there, or came from elsewhere."""
        sent = next((joints for number, joints in self._sent if number == executed), None)
        if sent is None or not self._is_numbered:
            return False
        is_other = bool(np.abs(sent - np.array(state.values["last_servoJ_target"])).max() > ECHO_DEG)
        self.diverged += is_other
        return is_other

    def _hear_guard(self) -> None:
        now_ns = time.monotonic_ns()
        for answer in self._heartbeat.waiting():
            self._asker.hear(answer, now_ns)
        question = self._asker.question(now_ns)
        if question is not None:
            self._heartbeat.send(question)
        is_guarded = self._asker.beats(now_ns)
        if self._stopped != "guard_latched" and not is_guarded:
            self._stop("guard_latched")
        elif self._stopped == "guard_latched" and is_guarded and self._has_operator:
            self._go_on_if_looked_after(now_ns)

    def _go_on_if_looked_after(self, now_ns: int) -> None:
        """Somebody presses reset a second after a stop. The arm joins the hand's path from where it is, at what the validator
        lets through."""
        if now_ns - self._stopped_ns < REARM_NS or self._state is None:
            return
        if isinstance(self._validator, ClampValidator):
            self._validator.rehome(np.array(self._state.values["actual_joint_pos"]))
            self._pacing = Pacing(axes=6)
            self._stopped = None

    def _stop(self, why: Stopped) -> None:
        """A controlled stop where the arm is. Latched: only a new start leaves it, or an operator where it was the guard's."""
        self._stopped, self._stopped_ns = why, time.monotonic_ns()
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
    kind = str(settings["validator"])
    limits = Limits() if kind == "reject" else command_limits()
    validator = VALIDATORS[kind](FR20, limits, measured)
    asker = Heartbeat(int(str(settings["parameters_hash"])), int(str(settings["heartbeat_lapse_ns"])))
    _await_guard(heartbeat, asker, stream)
    follower = Follower(commands, stream, setpoints, heartbeat, asker, validator, bool(settings["operator"]))
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
        diverged=follower.diverged,
        stops=follower.stops,
        added_delay_ms={"p50": delays[len(delays) // 2] / 1e6, "max": delays[-1] / 1e6},
        priority=priority,
        stream=asdict(stream.receiver.counts),
        failures=[follower.account.failure] if follower.account.failure else [],
    )
    control.hear(timeout_s=5.0)


def command_limits() -> Limits:
    """What commands are held to, so that the arm that follows them stays within the limits."""
    full = Limits()
    joints, tool = HEADROOM * full.joint_speed_deg_s, HEADROOM * full.tool_speed_m_s
    return replace(
        full,
        joint_speed_deg_s=joints,
        tool_speed_m_s=tool,
        speeding_up_deg_s2=SPEEDING_UP_DEG_S2,
        slowing_down_deg_s2=SLOWING_DOWN_DEG_S2,
    )


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
