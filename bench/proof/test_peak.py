"""A peak is the command's own, however large the process is that starts it."""

import sys

from bench.proof import peak

MIB = 1 << 20


def test_a_small_command_is_small_beside_a_large_benchmark() -> None:
    large = b"x" * (200 * MIB)
    assert peak.ran(["true"]).peak_bytes < 50 * MIB
    del large


def test_a_peak_and_an_exit_code_are_the_commands() -> None:
    ran = peak.ran([sys.executable, "-c", f"b'x' * {100 * MIB}; raise SystemExit(3)"])
    assert 100 * MIB < ran.peak_bytes < 200 * MIB
    assert ran.done.returncode == 3
