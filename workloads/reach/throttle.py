"""Takes a flood's messages as often as the control messages beside them can bear.

Additive increase, multiplicative decrease (Chiu and Jain 1989), on the time between looks at the flood: twice as long when a
control message was late, a little shorter when none was. What is not taken stays in the middleware's queue, and is pushed out
there, which costs this process nothing."""

import time

LATE_S = 0.005
"""A control message that waited longer than this between its sending and its handler is late."""
SHORTEST_S, LONGEST_S = 0.001, 0.5
RECOVERY_S = 0.002


class Throttle:
    def __init__(self) -> None:
        self.interval_s = SHORTEST_S
        self.next_look_s = 0.0
        self.halved = 0

    def may_look(self, now_s: float | None = None) -> bool:
        """Whether it is time for the flood; if so, says when the next time is."""
        now_s = time.monotonic() if now_s is None else now_s
        if now_s < self.next_look_s:
            return False
        self.next_look_s = now_s + self.interval_s
        return True

    def control_waited(self, seconds: float) -> None:
        if seconds > LATE_S:
            self.interval_s = min(LONGEST_S, 2 * self.interval_s)
            self.halved += 1
        else:
            self.interval_s = max(SHORTEST_S, self.interval_s - RECOVERY_S)
