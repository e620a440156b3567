"""Does the gate hold what it says? Collects real trials, replays gates over them, and writes docs/proof/gate.md and
bench/gate/results.md."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import noise
import numpy as np
import page
import peers
from collect import ROOT, Collection, lines, pairs
from plan import KINDS, SYSTEMS

MINUTES, GATES, GATE_S = 36.0, 320, 180.0
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "taut/gate-proof"
PAGE, FIGURES = ROOT / "docs/proof/gate.md", ROOT / "bench/gate/results.md"


def main() -> int:
    options = arguments()
    # What was set up is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    options.data.parent.mkdir(parents=True, exist_ok=True)
    collection = Collection(options.data, options.taut, options.seed)
    collection.build()
    if not options.judge:
        try:
            collection.run(options.minutes)
        except KeyboardInterrupt:
            print("\nbench/gate: stopped; the same again goes on", file=sys.stderr)
            return 130
    turns = lines(options.data)
    began = time.monotonic()
    print("bench/gate: judging", file=sys.stderr)
    results = judge(options, collection, turns)
    results["judged_s"] = time.monotonic() - began
    if options.is_proof:
        PAGE.write_text(page.page(results))
        FIGURES.write_text(page.figures(results))
        print(f"bench/gate: wrote {PAGE.relative_to(ROOT)} and {FIGURES.relative_to(ROOT)}", file=sys.stderr)
    else:
        print(page.page(results), page.figures(results), sep="\n")
    print(page.summary(results), file=sys.stderr)
    return 0 if page.holds(results) else 1


def judge(options: argparse.Namespace, collection: Collection, turns: list[dict]) -> dict:
    """Everything that the page says, from the recorded turns."""
    command = [collection.replay, options.data, options.gates, options.seed, options.gate_s]
    command += [options.settings] if options.settings else []
    replayed = json.loads(subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout)
    recorded = list(pairs(turns))
    sound = [pair for pair in recorded if "trial" in pair["a"] and "trial" in pair["b"]]
    of: dict[str, dict[str, list[dict]]] = {
        system: {kind: [p for p in sound if (p["system"], p["kind"]) == (system, kind)] for kind in KINDS}
        for system in SYSTEMS
    }
    if missing := [f"{system}, {kind}" for system in SYSTEMS for kind in KINDS if not of[system][kind]]:
        raise SystemExit(f"bench/gate: no pairs of {'; '.join(missing)}: collect for longer")
    gates = {system: {kind: replayed[f"{system}: {kind}"]["gates"] for kind in KINDS} for system in SYSTEMS}
    return {
        "gates": options.gates,
        "gate_s": options.gate_s,
        "seed": options.seed,
        "settings": options.settings,
        "minutes": sum(turn["seconds"] for turn in turns) / 60,
        "pairs": of,
        "void": [pair for pair in recorded if "trial" not in pair["a"] or "trial" not in pair["b"]],
        "calibration": json.loads(collection.calibration.read_text()),
        "background": lines(options.data.with_suffix(".background.jsonl")),
        "replayed": gates,
        "sees": {system: replayed[f"{system}: same"]["sees"] for system in SYSTEMS},
        "peers": {s: {k: usual(of[s][k], gates[s][k], of[s]) for k in KINDS} for s in SYSTEMS},
        "noise": {s: noise.table(of[s]["same"]) for s in SYSTEMS},
        "hypothesis": {s: noise.hypothesis(of[s]["same"]) for s in SYSTEMS},
    }


def usual(pairs: list[dict], gates: list[dict], all_kinds: dict[str, list[dict]]) -> list[int]:
    """In how many of the gates each of the usual ways gives an alarm, on the pairs that the gate's time holds."""
    chance = np.random.default_rng(len(pairs))
    values = np.unique(np.concatenate([p[side]["total_us"] for k in all_kinds.values() for p in k for side in "ab"]))
    trials = [peers.Trials.of([np.array(pair[side]["total_us"]) for pair in pairs], values) for side in "ab"]
    said = [peers.alarms(*trials, np.array(gate["drawn"]), chance) for gate in gates]
    return [int(n) for n in np.sum(said, axis=0)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/gate/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="four minutes of trials, 60 gates; the page to stdout")
    parser.add_argument("--judge", action="store_true", help="collect nothing: judge what there is")
    parser.add_argument("--minutes", type=float, help=f"of collecting, what there is included ({MINUTES:.0f})")
    parser.add_argument("--gates", type=int, help=f"of each system and kind ({GATES})")
    parser.add_argument("--gate-s", type=float, default=GATE_S, help=f"that a gate has ({GATE_S:.0f})")
    parser.add_argument("--settings", metavar="JSON", help="other settings for the gates; the page to stdout")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help=f"the file of trials ({CACHE}/trials.jsonl)")
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    options = parser.parse_args()
    # Only what the gate does by default, over a whole collection, is the proof.
    options.is_proof = not (options.quick or options.data or options.settings) and options.gate_s == GATE_S
    options.minutes = options.minutes or (4.0 if options.quick else MINUTES)
    options.gates = options.gates or (60 if options.quick else GATES)
    options.data = (options.data or CACHE / ("quick.jsonl" if options.quick else "trials.jsonl")).resolve()
    if os.geteuid() != 0:
        parser.error("needs root: the full tier, which tells the program's time from the machine's")
    return options


if __name__ == "__main__":
    sys.exit(main())
