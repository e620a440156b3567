"""A robot that takes setpoints and answers each with a state.

python robot.py
"""

import socket
import struct

import taut

STATES = 1 << 32  # ids of states are apart from those of setpoints


def main() -> None:
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.bind(("", 4711))
    number, count = 0, 1
    while number < count:
        packet, desk = link.recvfrom(64)
        number, count = struct.unpack("!QQ", packet)
        taut.stamp("setpoint.received", number)  # after it has arrived, with the id that the desk gave it
        sum(range(2000))  # the robot's work
        taut.stamp("setpoint.applied", number)
        taut.applied(number)
        taut.stamp("state.sent", STATES + number)  # before it is sent
        link.sendto(struct.pack("!Q", STATES + number), desk)


main()
