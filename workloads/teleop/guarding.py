"""The guard's process of the split arrangement: it hears the follower's own state stream and answers the heartbeat.

Hung or killed it answers nothing, and the follower stops: it need not be asked to.
"""

from __future__ import annotations

import selectors
import time
from dataclasses import asdict

from . import realtime
from .guards import GUARDS
from .links import Control, Numbers
from .safety import Limits
from .stream import StateStream

TICK_S = 0.004
SUMMARY_WAIT_S = 5.0


def run(control: Control, settings: dict[str, object], heartbeat: Numbers) -> None:
    stream = StateStream(str(settings["host"]), int(str(settings["states"])), str(settings["receiver"]))
    guard = GUARDS[str(settings["guard"])](Limits(), str(settings["wire"]))
    priority = realtime.ask(realtime.GUARD)
    stream.start()
    realtime.without_collections()
    control.say("ready", parameters_hash=guard.parameters_hash)
    with selectors.DefaultSelector() as selector:
        for source in (stream, heartbeat, control):
            selector.register(source, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select(TICK_S)}
            if control in ready:
                break
            if stream in ready:
                states = stream.read(wait=False)
                if states is None:
                    selector.unregister(stream)  # silence is what the guard then finds
                for state in states or []:
                    guard.update(state)
            guard.tick(time.monotonic_ns())
            if settings["operator"]:
                guard.operate(time.monotonic_ns())
            for challenge in heartbeat.waiting():
                answer = guard.answer(challenge, time.monotonic_ns())
                if answer is not None:
                    heartbeat.send(answer)
            if not heartbeat.is_open:
                selector.unregister(heartbeat)
                break
    control.say("result", guard=guard.summary(), priority=priority, stream=asdict(stream.receiver.counts))
    control.hear(timeout_s=SUMMARY_WAIT_S)
