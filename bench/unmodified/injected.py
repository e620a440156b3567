"""The injector of bench/causes, whose stamps are ignored: the causes of its loop's activations, while they are at a message, against what
was done to the message."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import runs
import without_stamps
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

# Of a message's time, in an activation that holds it.
WHOLE = 0.99
CAUSES = Path(__file__).resolve().parents[1] / "causes"
sys.path.append(str(CAUSES))

import score  # noqa: E402
import stage  # noqa: E402
from cases import KINDS  # noqa: E402


@dataclass
class Quota:
    """Time out of the CPU quota, ms."""

    # By the injector: what the kernel counts during its messages.
    measured: float
    # As the kernel counts it for the control group, at the recorder's last sample of it.
    counted: float
    # By the causes of all messages.
    found: float


@dataclass
class Kind:
    name: str
    messages: int
    # Besides, which others delayed by the injector's own account.
    disturbed: int
    injected: int
    right: int
    # The same by the recording's stamps.
    stamped_injected: int
    stamped_right: int
    wrong: dict[str, int]
    quota: Quota | None = None


def kinds(taut: str, folder: Path, messages: int) -> list[Kind]:
    """Its loop sleeps for 4 ms between messages, so that it is one without a schedule."""
    results = []
    keep = folder / "injected"
    with stage.set_up(taut, [taut, "explain"], "4,4", keep) as setting:
        for case in KINDS:
            if "native" not in case.languages or case.name in setting.impossible:
                continue
            truth, explained = setting.record("native", [case.name], messages, 1, "full")
            recording = keep / f"native-{case.name}-full-1.mcap"
            results.append(of_kind(taut, case.name, truth, explained, recording))
            if case.name == "throttled":
                results[-1].quota = quota(truth, explained, recording)
    return results


def of_kind(taut: str, name: str, truth: list[dict], stamped: dict, recording: Path) -> Kind:
    by_stamps = score.score(truth, stamped)
    bare = recording.with_name(f"{recording.stem}-bare.mcap")
    without_stamps.copy(recording, bare)
    loop = [piece for piece in runs.causes(taut, bare) if " sleep 4 ms" in piece["chain"] and "→" not in piece["chain"]]
    by_stamps_of = [by_stamps["injected"], by_stamps["right"]]
    if not loop:
        return Kind(name, len(truth), 0, 0, 0, *by_stamps_of, {"no loop": 1})
    [(chain, _)] = Counter(piece["chain"] for piece in loop).most_common(1)
    matched = within_messages(truth, [piece for piece in loop if piece["chain"] == chain])
    scored = score.score(
        truth, {"chains": [{"messages": len(matched), "all": matched, "hypotheses": [], "predictions": []}]}
    )
    wrong: dict[str, int] = {}
    for failure in scored["failures"]:
        if not failure["right"]:
            wrong[failure["top"]] = wrong.get(failure["top"], 0) + 1
    counts = (scored["messages"], scored["disturbed"], scored["injected"], scored["right"])
    return Kind(name, *counts, *by_stamps_of, wrong)


def within_messages(truth: list[dict], pieces: list[dict]) -> list[dict]:
    """Of each message the causes of the activation that holds it, from its start to its end: what came before and after, such as a late
    start, the injector knows nothing of."""
    starts = [message["start_ns"] for message in truth]
    budgets: list[dict[str, int]] = [{} for _ in truth]
    for piece in pieces:
        end_ns = piece["start_ns"] + piece["duration_ns"]
        at = max(0, bisect_right(starts, piece["start_ns"]) - 1)
        while at < len(truth) and starts[at] < end_ns:
            common_ns = min(end_ns, truth[at]["end_ns"]) - max(piece["start_ns"], starts[at])
            if common_ns > 0:
                budgets[at][piece["cause"]] = budgets[at].get(piece["cause"], 0) + common_ns
            at += 1
    return [
        {
            "id": message["id"],
            "total_ns": sum(budget.values()),
            "causes": [{"cause": cause, "time_ns": time_ns} for cause, time_ns in budget.items()],
        }
        for message, budget in zip(truth, budgets, strict=True)
        if sum(budget.values()) >= WHOLE * (message["end_ns"] - message["start_ns"])
    ]


def quota(truth: list[dict], explained: dict, recording: Path) -> Quota:
    measured = sum(injection["measured_ns"] for message in truth for injection in message["injections"])
    budgets, _, _ = score.read_explanation(explained)
    found = sum(budget.get("throttled", 0) for budget in budgets.values())
    # The largest ones: they are counted up. cgroup v2 counts µs, v1 ns.
    counted = 0.0
    with recording.open("rb") as file:
        samples = make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages("/taut/raw/samples")
        for *_, sample in samples:
            scale = {"cgroup.throttled_usec": 1e3, "cgroup.throttled_time": 1.0}.get(sample.name)
            counted = max(counted, scale * sample.value if scale else 0.0)
    return Quota(measured / 1e6, counted / 1e6, found / 1e6)
