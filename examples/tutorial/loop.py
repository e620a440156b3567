"""A loop of one's own. 200 times a second a state is read, a command planned on a map and sent.

Now and then it is late.

python loop.py [--seconds 5] [--fixed]
"""

import argparse
import queue
import threading
import time

import taut

PERIOD_S = 0.005
map_lock = taut.Lock("map_lock")  # threading.Lock() with a name
obstacles = [0.1, 0.2, 0.3]
inbox: queue.Queue[int | None] = queue.Queue()
done = threading.Event()


def sense(cycles: int) -> None:
    due = time.monotonic()
    for number in range(cycles):
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))
        taut.stamp_at("sense.read", number, round(due * 1e9))  # the message with this number was here, and due then
        inbox.put(number)
    inbox.put(None)


def control() -> None:
    while (number := inbox.get()) is not None:
        taut.stamp("control.taken", number)
        with map_lock:
            command = sum(obstacles) * number
        taut.stamp("control.planned", number)
        send(command)
        taut.stamp("drive.sent", number)
        taut.applied(number)  # every message ends once: applied, or taut.drop(number, "reason")


def send(command: float) -> None:
    time.sleep(0.0002)  # stands for the drive


def look() -> list[float]:
    time.sleep(0.012)  # stands for the camera
    return [0.1, 0.2, 0.3]


def update_map(fixed: bool) -> None:
    while not done.wait(0.1):
        if fixed:
            seen = look()
            with map_lock:
                obstacles[:] = seen
        else:
            with map_lock:
                obstacles[:] = look()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--fixed", action="store_true", help="look first, lock then")
    options = parser.parse_args()
    threads = [
        threading.Thread(target=sense, args=[round(options.seconds / PERIOD_S)], name="sense"),
        threading.Thread(target=control, name="control"),
    ]
    mapper = threading.Thread(target=update_map, args=[options.fixed], name="mapper")
    for thread in [*threads, mapper]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    mapper.join()
