"""The desk's process of the split arrangement: everybody who watches, records and shows. It gets copies of the
setpoints and may lose them; nothing of the loop waits for it."""

from __future__ import annotations

import selectors

from .companions import Companions
from .links import Control, Link


def run(control: Control, settings: dict[str, object], setpoints: Link) -> None:
    companions = Companions() if settings["companions"] == "all" else None
    seen = 0
    control.say("ready")
    if companions:
        companions.start()
    with selectors.DefaultSelector() as selector:
        selector.register(setpoints, selectors.EVENT_READ)
        selector.register(control, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if control in ready:
                break
            seen += setpoints.waiting()
            if not setpoints.is_open:
                selector.unregister(setpoints)
    turns = companions.stop() if companions else {}
    control.say("result", seen=seen, turns=turns)
    control.hear(timeout_s=5.0)
