"""The injector of bench/causes, whose stamps are ignored: the causes of the activations of its loop against what was done to them."""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import runs
import without_stamps
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

CAUSES = Path(__file__).resolve().parents[1] / "causes"
sys.path.append(str(CAUSES))

import score  # noqa: E402
import stage  # noqa: E402
from cases import KINDS  # noqa: E402


@dataclass
class Quota:
    """Time out of the CPU quota, ms."""

    # As the injector sees it: all the time in which its thread did not run.
    measured: float
    # As the kernel counts it for the control group.
    counted: float
    # By the causes of all messages.
    found: float


@dataclass
class Kind:
    name: str
    messages: int
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
    # Where each message began, by its stamp.
    began = {hop["message"]: hop["start_ns"] for hop in runs.hops(taut, recording) if hop["hop"] == 1}
    ids = sorted(began, key=lambda message: began[message])
    times = [began[message] for message in ids]
    explained = subprocess.run(
        [taut, "explain", str(bare), "--all", "--format", "json"], capture_output=True, text=True
    ).stdout
    chains = [chain for chain in json.loads(explained)["chains"] if chain["is_loop"] and " sleep 4 ms" in chain["name"]]
    if not chains:
        return Kind(name, len(truth), 0, 0, by_stamps["injected"], by_stamps["right"], {"no loop": 1})
    chain = max(chains, key=lambda chain: chain["messages"])
    activations = {hop["message"]: hop["start_ns"] for hop in runs.hops(taut, bare) if hop["hop"] == 1}
    matched = []
    for message in chain["all"]:
        start = activations[int(message["id"])]
        at = bisect_right(times, start + int(message["total_ns"])) - 1
        if at >= 0 and times[at] >= start:
            matched.append({**message, "id": ids[at]})
    scored = score.score(truth, {"chains": [{**chain, "all": matched}]})
    wrong: dict[str, int] = {}
    for failure in scored["failures"]:
        if not failure["right"]:
            wrong[failure["top"]] = wrong.get(failure["top"], 0) + 1
    both = [by_stamps["injected"], by_stamps["right"]]
    return Kind(name, scored["messages"], scored["injected"], scored["right"], *both, wrong)


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
