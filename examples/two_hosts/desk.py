"""A desk that sends setpoints to a robot and receives its states.

python desk.py [--robot 10.0.0.2] [--seconds 5]
"""

import argparse
import socket
import struct
import threading
import time

import taut

PERIOD_S = 0.005


def receive(states: socket.socket, count: int) -> None:
    for _ in range(count):
        (number,) = struct.unpack("!Q", states.recv(64))
        taut.stamp("state.received", number)  # after it has arrived


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--robot", default="127.0.0.1")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    count = int(options.seconds / PERIOD_S)
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect((options.robot, 4711))
    link.settimeout(10)
    states = threading.Thread(target=receive, args=(link, count))
    states.start()
    due = time.monotonic()
    for number in range(1, count + 1):
        due += PERIOD_S
        time.sleep(max(0.0, due - time.monotonic()))
        taut.stamp("setpoint.sent", number)  # before it is sent
        link.send(struct.pack("!QQ", number, count))
    states.join()


main()
