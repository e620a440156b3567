"""What the loop in Python writes of a message, held by the scorer against explanations made by hand."""

import argparse
import json
import random
import threading

import injector
from score import score


class LateHolder(injector.Kind):
    """The GIL, held by a thread that got its CPU late; until it had the GIL the message computed."""

    name, cause = "gil_c", "gil"

    def strike(self, ns: int) -> None:
        self.taken_ns, self.worked_ns = ns, 4_000_000


def test_what_a_message_computed_until_its_cause_came_is_known() -> None:
    kind = LateHolder(argparse.Namespace())
    chance, innocent = random.Random(1), threading.Lock()
    planned = [(kind, 1, 1_000_000)]
    plain, struck = [json.loads(injector.message(id, planned * (id - 1), [kind], chance, innocent)) for id in (1, 2)]
    assert [(i["kind"], i["measured_ns"]) for i in struck["injections"]] == [("gil_c", 1_000_000), ("work", 4_000_000)]
    budgets = {1: {"cpu": plain["work_ns"]}, 2: {"cpu": struck["work_ns"] + 4_000_000, "gil": 1_000_000}}
    messages = [
        {
            "id": id,
            "total_ns": sum(budget.values()),
            "causes": [{"cause": c, "time_ns": ns} for c, ns in budget.items()],
        }
        for id, budget in budgets.items()
    ]
    chain = {"messages": 2, "all": messages, "hypotheses": [], "predictions": []}
    # Whether others took the CPU meanwhile is no matter of this test.
    truth = [message | {"waited_ns": 0, "gaps_ns": 0} for message in (plain, struck)]
    result = score(truth, {"chains": [chain]})
    assert (result["right"], result["errors"]) == (1, [["gil_c", 1_000_000, 0], ["work", 4_000_000, 0]])
