"""Tables of a program that stamps nothing: its loop's activations are messages."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import taut

TAUT = Path(sys.executable).with_name("taut")
ACTIVATIONS = 300
PROGRAM = f"""
import time

due = time.monotonic()
for _ in range({ACTIVATIONS}):
    due += 0.004
    sum(range(2000))
    time.sleep(max(0.0, due - time.monotonic()))
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
