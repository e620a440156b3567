"""Tables of a program that stamps nothing: its loop's activations are messages."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import taut

TAUT = Path(sys.executable).with_name("taut")
ACTIVATIONS = 300
# Until moments of an absolute timer: a busy machine makes the loop late, and leaves its schedule as it is.
PROGRAM = f"""
import ctypes, time

libc = ctypes.CDLL(None)
due = time.monotonic_ns()
for _ in range({ACTIVATIONS}):
    due += 4_000_000
    sum(range(2000))
    libc.clock_nanosleep(time.CLOCK_MONOTONIC, 1, (ctypes.c_long * 2)(*divmod(due, 1_000_000_000)), None)
"""


def test_a_loop_is_a_chain_and_its_activations_are_rows(tmp_path: Path) -> None:
    recording = tmp_path / "run.mcap"
    command = [TAUT, "record", "-q", "--ignore-loss", "-o", recording, "--", sys.executable, "-c", PROGRAM]
    subprocess.run(command, check=True)
    run = taut.open(recording)
    if run.report["recording"]["tier"] != "full":
        pytest.skip("perf: not the full tier")
    [loop] = [loop for loop in run.report["loops"] if "timer 4 ms" in loop["name"]]
    chain = run.chain(loop["name"])
    assert chain.messages == loop["activations"] > ACTIVATIONS / 2
    assert [str(hop) for hop in chain.hops] == [
        f"{chain.name} release → {chain.name} start",
        f"{chain.name} start → {chain.name} done",
    ]
    of_chain = pl.col("chain") == chain.name
    hops = pl.DataFrame(run.hops).filter(of_chain)
    assert len(hops) == 2 * chain.messages
    causes = pl.DataFrame(run.causes).filter(of_chain)
    assert causes["duration_ns"].sum() == hops["duration_ns"].sum() > 0
