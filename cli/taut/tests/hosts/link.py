"""Two programs without stamps: a client that logs a number over another socket, computes, sends it and waits for it to come back, and a
server that returns it.

link.py server tcp|udp          link.py client tcp|udp ADDRESS COUNT PERIOD_MS [TALKS GO]

With two files the client makes TALKS after the first answer, and sends until there is GO, and COUNT more then.
"""

import itertools
import socket
import sys
import time
from pathlib import Path

PORT = 4711
# A stream's reads and writes are cut as they come.
SIZE = 96
# As sockets.rs has it.
COMPUTES_S = 0.002


def server(kind: int) -> None:
    link = socket.socket(socket.AF_INET, kind)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    link.bind(("", PORT))
    if kind == socket.SOCK_STREAM:
        link.listen()
        peer, _ = link.accept()
        while data := peer.recv(SIZE):
            peer.sendall(data)
    else:
        while True:
            data, sender = link.recvfrom(SIZE)
            if data == b"end":
                break
            link.sendto(data, sender)


def client(kind: int, address: str, count: int, period_ms: float, talks: str = "", go: str = "") -> None:
    link = socket.socket(socket.AF_INET, kind)
    log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if kind == socket.SOCK_STREAM:
        link.connect((address, PORT))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in itertools.count():
        if count == 0:
            break
        if not go or Path(go).exists():
            count -= 1
        time.sleep(period_ms / 1e3)
        log.sendto(b"log", (address, PORT + 1))
        until = time.thread_time() + COMPUTES_S
        while time.thread_time() < until:
            pass
        data = b"%08d" % number * (1 + number % 12)
        link.sendto(data, (address, PORT)) if kind == socket.SOCK_DGRAM else link.sendall(data)
        left = len(data)
        while left > 0:
            left -= len(link.recv(SIZE))
        if talks and number == 0:
            Path(talks).touch()
    if kind == socket.SOCK_DGRAM:
        link.sendto(b"end", (address, PORT))


KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
if sys.argv[1] == "server":
    server(KINDS[sys.argv[2]])
else:
    client(KINDS[sys.argv[2]], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), *sys.argv[6:])
