"""A peer outside the recording: answers a number of ns, after that time, with the moment of the answer.

outside.py PREFIX: serves 127.0.0.1, the port printed, and the named pipes PREFIX.in and PREFIX.out; until killed."""

import os
import socket
import struct
import sys
import threading
import time


def serve(read, write) -> None:
    while len(question := read(8)) == 8:
        time.sleep(struct.unpack("<Q", question)[0] / 1e9)
        write(struct.pack("<Q", time.monotonic_ns()))


def serve_pipes(prefix: str) -> None:
    while True:
        # In the order in which a client opens them.
        questions = os.open(prefix + ".in", os.O_RDONLY)
        answers = os.open(prefix + ".out", os.O_WRONLY)
        serve(lambda n, fd=questions: os.read(fd, n), lambda b, fd=answers: os.write(fd, b))
        os.close(questions)
        os.close(answers)


def main() -> None:
    prefix = sys.argv[1]
    for end in (".in", ".out"):
        os.mkfifo(prefix + end)
    threading.Thread(target=serve_pipes, args=(prefix,), daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            client, _ = server.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(client.recv, client.sendall), daemon=True).start()


if __name__ == "__main__":
    main()
