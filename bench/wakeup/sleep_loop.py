"""The script that everybody writes: how much longer than asked did a sleep take, by the clock before and after it.

sleep_loop.py INTERVAL_S SECONDS: prints each lateness in ns."""

import sys
import time


def main() -> None:
    interval, seconds = float(sys.argv[1]), float(sys.argv[2])
    late = []
    end = time.time() + seconds
    while time.time() < end:
        before = time.time()
        time.sleep(interval)
        after = time.time()
        late.append(after - before - interval)
    print("\n".join(str(round(s * 1e9)) for s in late))


if __name__ == "__main__":
    main()
