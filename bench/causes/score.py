"""Holds what `taut explain` says against what was done. Pure functions over parsed JSON."""

import statistics
from collections import Counter
from collections.abc import Iterable

from cases import BY_NAME

# An injection that came out smaller (a hog that got no turn, a timer that fired early) proves nothing.
LEAST_NS = 200_000
# Of two causes within this ratio either may be called the larger one.
TIE = 1.15
# Of the injected time: more waiting for the CPU than that is no background any more.
DISTURBANCE_NS, DISTURBANCE_RATIO = 150_000, 0.2
LIMIT_NS, LIMIT_RATIO = 50_000, 0.05
Budget = dict[str, int]


def read_explanation(explanation: dict) -> tuple[dict[int, Budget], dict[int, int], dict]:
    """Each message's time by cause, each message's total, and the chain of `start` → `end`."""
    chain = max(explanation["chains"], key=lambda chain: chain["messages"])
    budgets, totals = {}, {}
    for message in chain.get("all", []):
        budget: Counter[str] = Counter()
        for piece in message["causes"]:
            budget[piece["cause"]] += int(piece["time_ns"])
        budgets[int(message["id"])] = dict(budget)
        totals[int(message["id"])] = int(message["total_ns"])
    return budgets, totals, chain


def score(truth: list[dict], explanation: dict) -> dict:
    """One recording's result: counts and lists of plain numbers, so that those of several recordings can be joined."""
    budgets, totals, chain = read_explanation(explanation)
    truth = [message for message in truth if message["id"] in budgets]
    known = len(truth)
    truth = [message for message in truth if not is_disturbed(message)]
    untouched = [message for message in truth if not message["injections"]]
    usual = median_budget(budgets[message["id"]] for message in untouched)
    # A message's own work is known and differs: for times of `cpu` it is taken out.
    usual_overhead = median_of(budgets[m["id"]].get("cpu", 0) - m["work_ns"] for m in untouched)
    result: dict = {
        "messages": len(truth),
        "disturbed": known - len(truth),
        "injected": 0,
        "too_small": 0,
        "right": 0,
        "confusion": [],
        "errors": [],
        "failures": [],
        "unexplained": sum(totals[i] != sum(budgets[i].values()) for i in budgets),
    }
    for message in truth:
        injections = [i for i in message["injections"] if i["measured_ns"] >= LEAST_NS]
        result["too_small"] += len(message["injections"]) - len(injections)
        if not injections:
            continue
        budget = budgets[message["id"]]
        excess = {cause: budget.get(cause, 0) - usual.get(cause, 0) for cause in budget.keys() | usual.keys()}
        top = max(excess, key=lambda cause: excess[cause])
        right = top in top_causes(injections)
        result["injected"] += 1
        result["right"] += right
        wrong_time = False
        for injection in injections:
            causes = BY_NAME[injection["kind"]].causes
            # Other injections of this message that add to the same causes are known, too.
            others = sum(
                i["measured_ns"]
                for i in injections
                if i is not injection and set(BY_NAME[i["kind"]].causes) & set(causes)
            )
            found = sum(excess.get(cause, 0) for cause in causes) - others
            if "cpu" in causes:
                found = budget.get("cpu", 0) - message["work_ns"] - usual_overhead - others
            error = found - injection["measured_ns"]
            result["errors"].append([injection["kind"], injection["measured_ns"], error])
            wrong_time |= abs(error) > max(LIMIT_NS, LIMIT_RATIO * injection["measured_ns"])
        if len(injections) == 1:
            result["confusion"].append([injections[0]["kind"], top])
        if not right or wrong_time:
            result["failures"].append(
                {
                    "id": message["id"],
                    "truth": [[i["kind"], i["measured_ns"]] for i in injections],
                    "place": [i["place"] for i in injections],
                    "top": top,
                    "right": right,
                    "excess": {c: ns for c, ns in sorted(excess.items(), key=lambda e: -abs(e[1])) if abs(ns) > 5_000},
                }
            )
    late = sorted(totals, key=lambda i: totals[i])[-max(len(totals) // 100, 1) :]
    result["tail_ns"] = sum(totals[i] for i in late)
    result["tail_unknown_ns"] = sum(budgets[i].get("unknown", 0) for i in late)
    result["all_ns"] = sum(totals.values())
    result["all_unknown_ns"] = sum(budget.get("unknown", 0) for budget in budgets.values())
    contributes = [h["hypothesis"] for h in chain["hypotheses"] if h["result"] == "contributes"]
    innocent = [h["hypothesis"] for h in chain["hypotheses"] if "innocent" in h["hypothesis"]]
    result["innocent_judged"] = len(innocent)
    result["innocent_guilty"] = sum(name in contributes for name in innocent)
    result["guilty"] = contributes
    result["what_if"] = {w["without"]: w["p99_ns"] for w in chain["predictions"]}
    result["p99_ns"] = quantile(list(totals.values()), 0.99)
    return result


def is_disturbed(message: dict) -> bool:
    """Whether somebody else took the CPU for a time that nobody wrote down: by the kernel's own account of the waits for
    the CPU, which the injector reads around each message, or by the gaps in the clock that it reads in its usual work, which
    a host makes, too. Taut knows of neither."""
    planned = sum(i["measured_ns"] for i in message["injections"] if BY_NAME[i["kind"]].waits_for_cpu)
    most = max(DISTURBANCE_NS, DISTURBANCE_RATIO * sum(i["measured_ns"] for i in message["injections"]))
    return max(message.get("waited_ns", 0) - planned, message.get("gaps_ns", 0)) > most


def top_causes(injections: list[dict]) -> set[str]:
    """What may be called the top cause: the larger injection's, and that of one that is about as large."""
    by_cause: Counter[tuple[str, ...]] = Counter()
    for injection in injections:
        by_cause[BY_NAME[injection["kind"]].causes] += injection["measured_ns"]
    largest = max(by_cause.values())
    return {cause for causes, ns in by_cause.items() if ns * TIE >= largest for cause in causes}


def predicted_p99(kind: str, what_if: dict[str, int | None]) -> int | None:
    """The p99 without the kind's cause: that of the cause as a whole, else of the lock or party that it is known by."""
    for cause in BY_NAME[kind].causes:
        if cause in what_if:
            return what_if[cause]
    parts = [p99 for key, p99 in what_if.items() if p99 and key.split(":")[0] in BY_NAME[kind].causes]
    return min(parts, default=None)


def median_budget(budgets: Iterable[Budget]) -> Budget:
    """Cause by cause."""
    rows = list(budgets)
    causes = {cause for row in rows for cause in row}
    return {cause: int(median_of(row.get(cause, 0) for row in rows)) for cause in causes}


def median_of(values: Iterable[float]) -> float:
    return statistics.median(list(values) or [0])


def quantile(values: list[int], q: float) -> int | None:
    """Nearest rank; None where fewer than ten lie beyond it."""
    if len(values) * (1 - q) < 10:
        return None
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * q), len(ordered) - 1)]


def time_error(errors: list[list]) -> tuple[float, float, float] | None:
    """Medians of the absolute error in ns and as a ratio, and the share of injections within either limit."""
    if not errors:
        return None
    absolute = statistics.median(abs(error) for _, _, error in errors)
    ratio = statistics.median(abs(error) / ns for _, ns, error in errors)
    within = sum(abs(error) <= max(LIMIT_NS, LIMIT_RATIO * ns) for _, ns, error in errors) / len(errors)
    return absolute, ratio, within


def join(results: list[dict]) -> dict:
    """Several recordings of the same kind as one: numbers add up, lists follow each other."""
    joined: dict = {}
    for result in results:
        for key, value in result.items():
            if key in ("what_if", "p99_ns"):
                continue
            joined[key] = joined[key] + value if key in joined else value
    return joined
