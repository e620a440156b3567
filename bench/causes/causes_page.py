"""Results as lines of a terminal, as `docs/proof/causes.md`, and in full as `bench/causes/results-causes.md`."""

import os
import platform
import statistics
from collections import Counter
from datetime import date
from pathlib import Path

from cases import BY_NAME
from score import join, time_error

RIGHT, QUICK_RIGHT, TIME_NS, TIME_RATIO, UNKNOWN, WHAT_IF = 0.98, 0.9, 50_000, 0.05, 0.02, 0.15
# What was measured apart from a whole run. It comes first: a limit may be missed there.
REMARKS = Path(__file__).with_name("remarks.txt")
# In the lesser tiers, which are poor by nature.
LESSER_MESSAGES = 400
LANGUAGES = ("native", "python")


def line(cell: dict) -> str:
    """One kind, full tier."""
    head = f"{cell['language']:7}{cell['kind']:18}"
    if cell["impossible"]:
        return f"{head}not possible here: {cell['impossible']}"
    result = next(iter(cell["tiers"].values()))
    text = f"{head}{percent(right(result)):>7} right of {result['injected']:4}"
    if error := time_error(result["errors"]):
        text += f"   time off by {error[0] / 1000:7.1f} µs, {percent(error[1]):>6}"
    text += f"   unknown {percent(unknown(result))}"
    if result["what_if_pairs"] and (ratio := what_if_ratio(result)):
        text += f"   predicted {ratio:.2f}"
    others = Counter(top for _, top in result["confusion"]) - Counter()
    wrong = {top: n for top, n in others.items() if top not in BY_NAME.get(cell["kind"], BY_NAME["work"]).causes}
    if wrong and cell["kind"] != "pairs":
        text += "   called " + ", ".join(f"{top} {n}" for top, n in sorted(wrong.items(), key=lambda e: -e[1]))
    if result["disturbed"]:
        text += f"   disturbed {result['disturbed']}"
    if result["innocent_guilty"]:
        text += "   INNOCENT LOCK FOUND GUILTY"
    return text


def checks(cells: list[dict], quick: bool = False) -> list[tuple[str, str, str, bool]]:
    """(what, figure, limit, holds) over all kinds in the full tier."""
    done = [cell["tiers"]["full"] | {"cell": cell} for cell in cells if "full" in cell["tiers"]]
    if not done:
        return []
    injected, hits = sum(r["injected"] for r in done), sum(r["right"] for r in done)
    worst = min(done, key=right)
    off = [r for r in done if (e := time_error(r["errors"])) and e[0] > TIME_NS and e[1] > TIME_RATIO]
    tail_unknown = sum(r["tail_unknown_ns"] for r in done) / max(sum(r["tail_ns"] for r in done), 1)
    judged, guilty = sum(r["innocent_judged"] for r in done), sum(r["innocent_guilty"] for r in done)
    needed = QUICK_RIGHT if quick else RIGHT
    rows = [
        (
            "top cause right, all kinds",
            f"{percent(hits / max(injected, 1))} of {injected}",
            f"≥ {percent(needed)}",
            hits >= needed * injected,
        ),
        (
            "top cause right, worst kind",
            f"{percent(right(worst))} ({name(worst['cell'])})",
            f"≥ {percent(needed)}",
            right(worst) >= needed,
        ),
        ("kinds whose median time error is over 5 % and 50 µs", str(len(off)) + listed(off), "0", not off),
        ("`unknown` of the tail's time", percent(tail_unknown), f"≤ {percent(UNKNOWN)}", tail_unknown <= UNKNOWN),
        ("uncontended lock named a cause", f"{guilty} of {judged}", "0", guilty == 0),
        (
            "budgets that do not sum to the message's time",
            str(sum(r["unexplained"] for r in done)),
            "0",
            not any(r["unexplained"] for r in done),
        ),
    ]
    ratios = {name(r["cell"]): ratio for r in done if r["what_if_pairs"] and (ratio := what_if_ratio(r))}
    if ratios:
        far = [key for key, ratio in ratios.items() if abs(ratio - 1) > WHAT_IF]
        rows.append(
            (
                "kinds whose predicted p99 is off by more than 15 %",
                f"{len(far)} of {len(ratios)}" + (f": {', '.join(far)}" if far else ""),
                "0",
                not far,
            )
        )
    return rows


def holds(cells: list[dict], quick: bool = False) -> bool:
    return all(row[3] for row in checks(cells, quick))


def summary(cells: list[dict], quick: bool = False) -> str:
    return "\n".join(
        f"{'ok    ' if ok else 'MISSED'} {what}: {figure} (limit {limit})"
        for what, figure, limit, ok in checks(cells, quick)
    )


def page(cells: list[dict], options) -> str:
    """What holds and what was missed."""
    parts = [
        TITLE.format(command=command(options), date=date.today(), machine=machine()),
        REMARKS.read_text(),
        "## Results\n",
    ]
    parts.append(verdicts(cells))
    parts.append("\nBy tier of kernel events: top cause right, `unknown` in the tail's time.\n")
    tiers = tiers_of(cells)
    rows = [[language, *totals([c for c in cells if c["language"] == language], tiers)] for language in LANGUAGES]
    parts.append(table(["", *tiers], rows))
    parts.append(HOW.format(disturbed=disturbed(cells)).rstrip())
    return "\n".join(parts) + "\n"


def figures(cells: list[dict], options) -> str:
    """All of it."""
    parts = [FIGURES.format(command=command(options), date=date.today()), verdicts(cells) + "\n"]
    parts.append(
        METHOD.format(
            messages=options.messages,
            rounds=options.rounds,
            lesser=LESSER_MESSAGES,
            disturbed=disturbed(cells),
        ).strip()
    )
    for language in LANGUAGES:
        own = [cell for cell in cells if cell["language"] == language]
        parts.append(f"\n## {language.capitalize()}\n\nFull tier.\n")
        parts.append(kinds_table(own))
        parts.append(NAMED)
        parts.append(confusion_table(own))
        parts.append("\nLesser tiers: top cause right, and `unknown` in the tail's time.\n")
        parts.append(tiers_table(own))
    return "\n".join(parts) + "\n"


def verdicts(cells: list[dict]) -> str:
    rows = [[what, figure, limit, "holds" if ok else "**missed**"] for what, figure, limit, ok in checks(cells)]
    return table(["", "measured", "limit", ""], rows)


def disturbed(cells: list[dict]) -> str:
    results = [cell["tiers"]["full"] for cell in cells if "full" in cell["tiers"]]
    left_out = sum(r["disturbed"] for r in results)
    return f"{left_out} of {left_out + sum(r['messages'] for r in results)} in the full tier"


def command(options) -> str:
    """What to type for this again; where things lie is left out."""
    flags = [
        f"--{key.replace('_', '-')} {getattr(options, key)}"
        for key in ("rounds", "messages", "gap_ms", "seed", "tiers")
    ]
    return " ".join(["bench/causes/run", *flags])


def kinds_table(cells: list[dict]) -> str:
    rows = []
    for cell in cells:
        what = BY_NAME[cell["kind"]].says if cell["kind"] in BY_NAME else "two of them at once"
        if cell["impossible"]:
            rows.append([f"`{cell['kind']}`", what, "–", "–", "–", "–", "–", cell["impossible"]])
            continue
        result = cell["tiers"]["full"]
        error = time_error(result["errors"])
        pairs = result["what_if_pairs"]
        predicted = "–"
        if pairs and (ratio := what_if_ratio(result)):
            columns = [statistics.median(p[i] for p in pairs if all(p)) / 1000 for i in range(3)]
            predicted = f"{columns[2]:.0f} → {columns[0]:.0f} / {columns[1]:.0f} µs = {ratio:.2f}"
        rows.append(
            [
                f"`{cell['kind']}`",
                what,
                str(result["injected"]),
                percent(right(result)),
                f"{error[0] / 1000:.1f} µs, {percent(error[1])}" if error else "–",
                percent(error[2]) if error else "–",
                percent(unknown(result)),
                predicted,
            ]
        )
    head = [
        "kind",
        "the message",
        "n",
        "top cause right",
        "time error, medians",
        "within 5 % or 50 µs",
        "unknown in tail",
    ]
    return table([*head, "p99 with it → predicted without / measured without"], rows)


def confusion_table(cells: list[dict]) -> str:
    counts = Counter(tuple(pair) for cell in cells for pair in cell["tiers"].get("full", {}).get("confusion", []))
    kinds = [kind for kind in BY_NAME if any(row == kind for row, _ in counts)]
    rows = []
    for kind in kinds:
        named = sorted(((n, top) for (row, top), n in counts.items() if row == kind), reverse=True)
        rows.append([f"`{kind}`", ", ".join(f"{top} {n}" for n, top in named)])
    return table(["injected", "named as top cause, messages"], rows)


def tiers_of(cells: list[dict]) -> list[str]:
    return list(dict.fromkeys(tier for cell in cells for tier in cell["tiers"]))


def totals(cells: list[dict], tiers: list[str]) -> list[str]:
    of_tiers = [join([cell["tiers"][tier] for cell in cells if cell["tiers"]]) for tier in tiers]
    return [f"{percent(right(r))}, {percent(unknown(r))}" for r in of_tiers]


def tiers_table(cells: list[dict]) -> str:
    tiers = tiers_of(cells)
    rows = []
    for cell in cells:
        if not cell["impossible"]:
            results = [cell["tiers"][tier] for tier in tiers]
            rows.append([f"`{cell['kind']}`", *(f"{percent(right(r))}, {percent(unknown(r))}" for r in results)])
    rows.append(["all", *totals(cells, tiers)])
    return table(["kind", *tiers], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])


def right(result: dict) -> float:
    return result["right"] / max(result["injected"], 1)


def unknown(result: dict) -> float:
    return result["tail_unknown_ns"] / max(result["tail_ns"], 1)


def what_if_ratio(result: dict) -> float | None:
    """Predicted over measured p99, median of the pairs of recordings."""
    ratios = [predicted / measured for predicted, measured, _ in result["what_if_pairs"] if predicted and measured]
    return statistics.median(ratios) if ratios else None


def name(cell: dict) -> str:
    return f"{cell['language']} {cell['kind']}"


def listed(results: list[dict]) -> str:
    return f": {', '.join(name(r['cell']) for r in results)}" if results else ""


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def machine() -> str:
    model = next((row for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("model name")), ": ?")
    return f"{model.split(':')[1].strip()}, {os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"


TITLE = """# Injected causes, and what taut names

Does `taut explain` name the cause that delayed a message, and its time? Known causes were injected into a loop's messages and logged.

Made by `{command}` on {date}:
{machine}. Do not edit.
All figures: [results](../../bench/causes/results-causes.md). [How causes are found](../reference/causes.md).
"""

HOW = """
Messages that other programs kept from the CPU are left out: {disturbed}.
[How it was measured](../../bench/causes/results-causes.md#how-it-was-measured).
"""

FIGURES = """# Injected causes: results

Made by `{command}` on {date}. Do not edit.
[The page](../../docs/proof/causes.md) has what was measured apart.
"""

# Their sums are above those of the table before it.
NAMED = """
What was named where one cause was injected. Messages of `pairs` are among them of which one injection came out under 0.2 ms:
"""

METHOD = """
- *Top cause*: the one with most time above the median message to which nothing happened. Of two at once, the larger; within 15 %, either.
- *Time error*: the time found above that median, less the truth. Limit at the median of each kind: 5 % or 50 µs.
- *Unknown*: in the time of the slowest hundredth of the messages.
- *Uncontended lock*: a named lock in every message's path that no other thread takes.
- *Prediction*: the p99 predicted without the cause, over the p99 measured with the injections off, recordings in turn.

## How it was measured

**The loop.** It sends messages through `start` → `middle` → `end` at random moments, over a noisy background. Each has 2.9 to 3.1 ms of work.
About a third of the messages meet an injection at a random
place, of 0.2 to 20 ms (log-uniform); the side that causes it logs its kind and length. The recording (`taut record --depth irq`) is explained
(`taut explain --all --format json`), and joined with the log by message id.

**Amount.** {rounds} recording(s) of {messages} messages for each kind and language in the full tier, each beside one without injections; in the lesser tiers
one of at most {lesser}.

**Left out.** Injections under 0.2 ms (a hog that got no turn, a timer that fired early). Other programs on a shared machine are a cause without a
log: the recorded session has nice −20, and messages are left out that waited for the CPU, by the kernel's own account (`schedstat`), for more than
150 µs and a fifth of the injected time beyond the injection: {disturbed}.

**Truth.** CPU time where the cause takes the CPU; the holder's or peer's own clock readings where the message waits; gaps in the loop's own clock
readings for interrupts and throttling. Those of page faults and disk leave out the wait for the CPU.
"""
