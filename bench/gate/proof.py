"""Does the gate hold what it says? Collects real trials, replays gates over them, and writes the page."""

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
from collect import ROOT, Collection, lines
from plan import KINDS, SYSTEMS

MINUTES, GATES, GATE_S = 41.0, 400, 180


def main() -> int:
    options = arguments()
    # What was set up is brought down again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    options.data.parent.mkdir(parents=True, exist_ok=True)
    collection = Collection(options.data, options.taut, options.seed)
    collection.build()
    if not options.judge:
        spent_s = sum(line["seconds"] for line in lines(options.data))
        collection.run(options.minutes - spent_s / 60)
    recorded = lines(options.data)
    began = time.monotonic()
    results = judge(options, collection.replay, recorded)
    results["judged_s"] = time.monotonic() - began
    text = page.page(results)
    if options.quick:
        print(text)
    else:
        (ROOT / "docs/gate-proof.md").write_text(text)
    print(page.summary(results), file=sys.stderr)
    return 0 if page.holds(results) else 1


def judge(options: argparse.Namespace, replay: Path, recorded: list[dict]) -> dict:
    """Everything that the page says, from the recorded pairs."""
    command = [replay, options.data, options.gates, options.seed, GATE_S]
    replayed = json.loads(subprocess.run([*map(str, command)], check=True, capture_output=True, text=True).stdout)
    sound = [pair for pair in recorded if "trial" in pair["a"] and "trial" in pair["b"]]
    of: dict[str, dict[str, list[dict]]] = {
        system: {kind: [p for p in sound if (p["system"], p["kind"]) == (system, kind)] for kind in KINDS}
        for system in SYSTEMS
    }
    if missing := [f"{system}, {kind}" for system in SYSTEMS for kind in KINDS if not of[system][kind]]:
        raise SystemExit(f"bench/gate: no pairs of {'; '.join(missing)}: collect for longer")
    return {
        "gates": options.gates,
        "gate_s": GATE_S,
        "seed": options.seed,
        "pairs": of,
        "void": len(recorded) - len(sound),
        "recorded": recorded,
        "background": lines(options.data.with_suffix(".background.jsonl")),
        "replayed": {s: {k: replayed[f"{s}: {k}"] for k in KINDS} for s in SYSTEMS},
        "peers": {s: {k: usual(of[s][k], replayed[f"{s}: {k}"], of[s]) for k in KINDS} for s in SYSTEMS},
        "noise": {s: noise.table(of[s]["same"]) for s in SYSTEMS},
        "hypothesis": {s: noise.hypothesis(of[s]["same"], noise.MERGED[s]) for s in SYSTEMS},
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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the file of trials (target/gate-proof/trials.jsonl)")
    parser.add_argument("--taut", default=str(ROOT / ".venv/bin/taut"))
    options = parser.parse_args()
    options.minutes = options.minutes or (4.0 if options.quick else MINUTES)
    options.gates = options.gates or (60 if options.quick else GATES)
    name = "quick" if options.quick else "trials"
    options.data = (options.data or ROOT / f"target/gate-proof/{name}.jsonl").resolve()
    if os.geteuid() != 0:
        parser.error("needs root: the full tier, which tells the program's time from the machine's")
    return options


if __name__ == "__main__":
    sys.exit(main())
