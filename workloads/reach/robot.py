"""The programs in Rust behind the simulator's node: starts the simulated arm and what talks to it, and ends them again."""

import math
import os
import socket
import struct
import subprocess
import time
from dataclasses import dataclass

from .. import native

PROGRAM = "taut-reach"
CLOCK = struct.Struct("<2Q")
"""The page of `taut-simulated-clock`: how far behind CLOCK_MONOTONIC it is, and up to when the arm allows it to go; ns."""
MISSING_S = 0.001
"""The arm stops after as many missing commands in succession as the stall limit has of these: the real one after 20."""
END_S = 3.0


class RobotError(Exception):
    """It does not start; the text says why."""


@dataclass
class Slips:
    """How the machine held the arm up."""

    count: int = 0
    total_ns: int = 0
    longest_ns: int = 0


class Arm:
    """The simulated arm on its clock. Raises RobotError. Made by a thread that lives as long as it."""

    def __init__(self, stall_limit_s: float) -> None:
        self.page = os.memfd_create("taut-robot")
        os.write(self.page, bytes(CLOCK.size))
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        limit = max(1, math.ceil(stall_limit_s / MISSING_S))
        self.process = self.start("arm", theirs.fileno(), subprocess.DEVNULL, "--most-missing", str(limit))
        theirs.close()

    def start(self, part: str, link: int, node: int, *more: str) -> subprocess.Popen[bytes]:
        program, library = native.binary(PROGRAM), native.mujoco()
        if program is None or library is None:
            raise RobotError(native.NO_MUJOCO if program else native.missing(PROGRAM))
        words = [str(program), part, "--mujoco", str(library), "--clock", f"/proc/self/fd/{self.page}"]
        words += ["--parent", str(os.getpid()), *more]
        return subprocess.Popen(words, stdin=link, stdout=node, pass_fds=[self.page])

    def held_up(self, known: Slips) -> Slips:
        """What is known of slips, and the one that the arm is in."""
        behind_ns, until_ns = CLOCK.unpack(os.pread(self.page, CLOCK.size, 0))
        stands_ns = time.monotonic_ns() - behind_ns - until_ns
        if stands_ns <= 0:
            return known
        return Slips(known.count + 1, known.total_ns + stands_ns, max(known.longest_ns, stands_ns))

    def close(self) -> None:
        end(self.process)
        self.link.close()
        os.close(self.page)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
