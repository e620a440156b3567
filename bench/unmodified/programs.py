"""Programs as they come, what they say of themselves and what taut finds; and programs that have no loop."""

from __future__ import annotations

import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import runs

# Sleeps that stress-ng makes 100 times a second, by its own words for them.
SLEEPS = ["clock_ns", "itimer", "poll", "posix_ns", "pselect", "usleep"]

MUJOCO = """
import time, mujoco
model = mujoco.MjModel.from_xml_string('<mujoco><worldbody><body pos="0 0 1"><joint type="hinge" axis="0 1 0"/>'
    '<geom size=".1"/></body></worldbody></mujoco>')
data = mujoco.MjData(model)
due = time.monotonic()
for _ in range(1000):
    due += model.opt.timestep
    mujoco.mj_step(model, data)
    time.sleep(max(0.0, due - time.monotonic()))
"""

ASYNCIO = """
import asyncio
async def again(period):
    while True:
        await asyncio.sleep(period)
async def main():
    both = [asyncio.create_task(again(period)) for period in (0.010, 0.025)]
    await asyncio.sleep(4)
asyncio.run(main())
"""

NODE = "setInterval(() => {}, 10); setInterval(() => {}, 25); setTimeout(() => process.exit(0), 4000)"

WEB_SERVER = """
import http.server, random, threading, time, urllib.request
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
server.RequestHandlerClass.log_message = lambda *_: None
threading.Thread(target=server.serve_forever, daemon=True).start()
random.seed(1)
end = time.monotonic() + 4
while time.monotonic() < end:
    urllib.request.urlopen(f'http://127.0.0.1:{server.server_port}/').read()
    time.sleep(random.expovariate(100))
"""


@dataclass
class Found:
    """What one program came to."""

    name: str
    said: str
    found: str
    holds: bool | None


def loops(of: dict) -> str:
    def one(loop: dict) -> str:
        return f"{loop['name']} ({loop['activations']})"

    return ", ".join(map(one, of["loops"])) or "no loop"


def chains(of: dict) -> str:
    return (
        ", ".join(f"{c['name']} ({c['messages']})" for c in of["chains"] if c["source"] == "wakes" and not c["is_loop"])
        or "no chain"
    )


def without_loops(command: str, folder: Path) -> list[Found]:
    """A compiler, a web server under random load and a pipeline."""
    source = folder / "sources"
    source.mkdir(exist_ok=True)
    random.seed(1)
    for number in range(24):
        lines = [f"int f{k}(int x) {{ return x * {random.randrange(99)} + {k}; }}" for k in range(2000)]
        (source / f"part{number}.c").write_text("\n".join(lines))
    cases = {
        "a compiler": ["sh", "-c", f"cd {source} && ls *.c | xargs -P 2 -n 1 cc -O2 -c"],
        "a web server under random load": [sys.executable, "-c", WEB_SERVER],
        "a shell pipeline": ["sh", "-c", "seq 1 2000000 | sort -R | awk '{ s += $1 } END { print s }' | md5sum"],
    }
    results = []
    for name, words in cases.items():
        recording = folder / f"{name.replace(' ', '-')}.mcap"
        runs.record(command, recording, words)
        of = runs.report(command, recording)
        results.append(Found(name, "no loop", f"{loops(of)}; {chains(of)}", not of["loops"]))
    return results


def sleepers(command: str, folder: Path) -> list[Found]:
    """stress-ng's six kinds of sleep, of 10 ms each."""
    results = []
    for kind in SLEEPS:
        recording = folder / f"stress-ng-{kind}.mcap"
        words = ["stress-ng", "--cyclic", "1", "--cyclic-method", kind, "--cyclic-policy", "fifo", "--cyclic-sleep"]
        runs.record(command, recording, [*words, "10000000", "-t", "2", "-q"])
        of = runs.report(command, recording)
        steady = [loop for loop in of["loops"] if abs(loop["period_ns"] - 10_000_000) < 1_000_000]
        # That one looks at the clock again and again, and never sleeps.
        spins = kind == "poll"
        said = "no sleeps: it reads the clock" if spins else "sleeps of 10 ms"
        results.append(Found(f"stress-ng {kind}", said, loops(of), not of["loops"] if spins else bool(steady)))
    return results


def programs(command: str, folder: Path) -> list[Found]:
    """Each with a short load."""
    mosquitto = (
        "mosquitto -p 18830 & sleep .3; mosquitto_sub -p 18830 -t t -C 300 > /dev/null & sleep .2; "
        "for i in $(seq 300); do echo $i; sleep .01; done | mosquitto_pub -p 18830 -t t -l; wait %2; kill %1"
    )
    redis = (
        "redis-server --port 6390 --save '' > /dev/null & sleep .5; "
        "redis-cli -p 6390 -i 0.01 -r 300 ping > /dev/null; kill %1; wait %1"
    )
    jack = "jackd -r -d dummy -r 48000 -p 256 > /dev/null 2>&1 & sleep 3; kill %1; wait %1"
    dds = "ddsperf -D 4 pong > /dev/null & ddsperf -D 3 ping 100Hz | tail -1; wait"
    cases = {
        "MuJoCo, a loop of 2 ms in Python": ([sys.executable, "-c", MUJOCO], "500 Hz", lambda of: period(of, 2e6)),
        "asyncio, coroutines that sleep 10 ms and 25 ms": (
            [sys.executable, "-c", ASYNCIO],
            "two loops",
            sleeps_to_both,
        ),
        "Node.js, intervals of 10 ms and 25 ms": (["node", "-e", NODE], "two loops", sleeps_to_both),
        "mosquitto, a publisher of about 90 Hz and a subscriber": (
            ["bash", "-c", mosquitto],
            "300 messages through the broker",
            lambda of: any("mosquitto" in c["name"] and "→" in c["name"] for c in of["chains"]),
        ),
        "redis, a client that asks 100 times a second": (
            ["bash", "-c", redis],
            "300 answers",
            lambda of: (
                {"redis-cli sleep 10 ms", "redis-server epoll tcp:6390"} <= {loop["name"] for loop in of["loops"]}
            ),
        ),
        "JACK with the dummy driver": (["bash", "-c", jack], "187.5 Hz", lambda of: period(of, 256e9 / 48000)),
        "ddsperf, ping at 100 Hz": (["bash", "-c", dds], "100 Hz", lambda of: period(of, 10e6)),
    }
    needs = {
        "Node.js, intervals of 10 ms and 25 ms": "node",
        "JACK with the dummy driver": "jackd",
        "ddsperf, ping at 100 Hz": "ddsperf",
    }
    results = []
    for name, (words, said, is_right) in cases.items():
        if name in needs and shutil.which(needs[name]) is None:
            continue
        recording = folder / f"{name.split(',')[0].split()[0]}.mcap"
        runs.record(command, recording, words)
        of = runs.report(command, recording)
        results.append(Found(name, said, f"{loops(of)}; {chains(of)}", bool(is_right(of))))
    return results


def sleeps_to_both(of: dict) -> bool:
    """Whether there are two loops, of the times that the program's timers are set for."""
    return sorted(loop["name"].split(" sleep ")[-1] for loop in of["loops"]) == ["10 ms", "25 ms"]


def period(of: dict, ns: float) -> bool:
    """Whether a loop has about this period."""
    return any(abs(loop["period_ns"] - ns) < 0.02 * ns for loop in of["loops"])
