"""One thread waits for another by each means of the standard library: `waits.py MEANS`; see waits.cpp."""

import queue
import sys
import threading
import time

import taut

ROUNDS = 60
want, got = taut.point("want"), taut.point("got")


def work(seconds: float) -> None:
    """Works outside of the interpreter's lock: what is waited for is the thread and not the lock."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.0001)


def queues() -> None:
    """Hands over by two queues."""
    wanted: queue.Queue[int] = queue.Queue()
    given: queue.Queue[int] = queue.Queue()

    def give() -> None:
        for _ in range(ROUNDS):
            message = wanted.get()
            work(0.002)
            given.put(message)

    giver = threading.Thread(target=give)
    giver.start()
    for message in range(1, ROUNDS + 1):
        time.sleep(0.001)
        want(message)
        wanted.put(message)
        given.get()
        got(message)
    giver.join()


def condition() -> None:
    """Hands over by a condition."""
    changed = threading.Condition()
    state = {"wanted": 0, "given": 0}

    def put(key: str, message: int) -> None:
        with changed:
            state[key] = message
            changed.notify_all()

    def wait(key: str, message: int) -> None:
        with changed:
            changed.wait_for(lambda: state[key] == message)

    def give() -> None:
        for message in range(1, ROUNDS + 1):
            wait("wanted", message)
            work(0.002)
            put("given", message)

    giver = threading.Thread(target=give)
    giver.start()
    for message in range(1, ROUNDS + 1):
        time.sleep(0.001)
        want(message)
        put("wanted", message)
        wait("given", message)
        got(message)
    giver.join()


def lock() -> None:
    """Waits for a lock that another thread holds for 2 of each 6 ms."""
    mutex = threading.Lock()
    done = threading.Event()

    def hold() -> None:
        while not done.is_set():
            time.sleep(0.004)
            with mutex:
                work(0.002)

    holder = threading.Thread(target=hold)
    holder.start()
    for message in range(1, 3 * ROUNDS + 1):
        time.sleep(0.001)
        want(message)
        with mutex:
            pass
        got(message)
    done.set()
    holder.join()


if __name__ == "__main__":
    {"queue": queues, "condition": condition, "lock": lock}[sys.argv[1]]()
