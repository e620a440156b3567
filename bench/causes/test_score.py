"""The scorer against explanations made by hand."""

from score import join, predicted_p99, score, time_error


def message(id: int, *injections: tuple[str, int]) -> dict:
    listed = [{"kind": kind, "measured_ns": ns, "planned_ns": ns, "place": 0} for kind, ns in injections]
    return {"id": id, "start_ns": 0, "end_ns": 0, "work_ns": 200_000, "injections": listed}


def explanation(budgets: dict[int, dict[str, int]], innocent: bool = False) -> dict:
    messages = [
        {
            # Ids come as numbers or as text.
            "id": str(id) if id % 2 else id,
            "start_ns": 0,
            "total_ns": sum(budget.values()),
            "causes": [{"cause": cause, "detail": "", "time_ns": ns} for cause, ns in budget.items()],
        }
        for id, budget in budgets.items()
    ]
    result = "contributes" if innocent else "does_not_contribute"
    hypotheses = [{"hypothesis": "lock:innocent", "result": result, "tail_share": 0.0}]
    what_if = [{"without": "lock:thread_lock", "p50_ns": 1, "p99_ns": 250_000}]
    return {
        "chains": [
            {
                "name": "start → end",
                "messages": len(messages),
                "all": messages,
                "hypotheses": hypotheses,
                "predictions": what_if,
            }
        ]
    }


USUAL = {"cpu": 201_000, "wakeup": 3_000}


def test_a_lock_wait_that_is_found_counts_as_right() -> None:
    truth = [message(1), message(2), message(3, ("lock_thread", 2_000_000))]
    told = explanation({1: USUAL, 2: USUAL, 3: USUAL | {"lock": 2_010_000}})
    result = score(truth, told)
    assert (result["injected"], result["right"], result["failures"]) == (1, 1, [])
    assert result["errors"] == [["lock_thread", 2_000_000, 10_000]]
    assert result["confusion"] == [["lock_thread", "lock"]]
    assert result["innocent_judged"] == 1 and result["innocent_guilty"] == 0


def test_a_lock_wait_that_is_called_io_is_a_failure_with_its_budget() -> None:
    truth = [message(1), message(2, ("lock_thread", 2_000_000))]
    result = score(truth, explanation({1: USUAL, 2: USUAL | {"io": 2_000_000}}, innocent=True))
    assert result["right"] == 0 and result["innocent_guilty"] == 1
    failure = result["failures"][0]
    assert (failure["id"], failure["top"], failure["excess"]) == (2, "io", {"io": 2_000_000})


def test_own_work_is_known_and_taken_out_of_the_error_of_injected_work() -> None:
    busy = message(2, ("work", 1_000_000)) | {"work_ns": 290_000}
    result = score([message(1), busy], explanation({1: USUAL, 2: {"cpu": 1_291_000}}))
    assert result["errors"] == [["work", 1_000_000, 0]]


def test_of_two_the_larger_is_the_top_cause_and_both_times_count() -> None:
    both = message(2, ("sleep", 3_000_000), ("io_sleep", 1_000_000), ("disk", 500_000))
    told = explanation({1: USUAL, 2: USUAL | {"sleep": 4_000_000, "disk": 520_000}})
    result = score([message(1), both], told)
    assert result["right"] == 1
    assert [error for _, _, error in result["errors"]] == [0, 0, 20_000]
    about_equal = message(2, ("sleep", 1_000_000), ("disk", 1_050_000))
    told = explanation({1: USUAL, 2: USUAL | {"sleep": 1_060_000, "disk": 1_050_000}})
    assert score([message(1), about_equal], told)["right"] == 1


def test_an_injection_that_came_out_tiny_proves_nothing() -> None:
    result = score([message(1), message(2, ("sleep", 20_000))], explanation({1: USUAL, 2: USUAL}))
    assert (result["injected"], result["too_small"]) == (0, 1)


def test_unknown_time_is_counted_in_the_tail() -> None:
    budgets = {id: USUAL for id in range(1, 200)} | {200: USUAL | {"unknown": 796_000}}
    result = score([message(id) for id in budgets], explanation(budgets))
    assert (result["tail_unknown_ns"], result["tail_ns"]) == (796_000, 1_000_000 + 204_000)


def test_a_prediction_is_found_by_cause_and_else_by_party() -> None:
    assert predicted_p99("lock_thread", {"lock:thread_lock": 5, "gil": 9}) == 5
    assert predicted_p99("page_fault_major", {"disk": 7}) == 7
    assert predicted_p99("sleep", {"gil": 9}) is None


def test_the_median_error_is_of_all_recordings_together() -> None:
    one, other = {"errors": [["sleep", 100_000, 1_000]]}, {"errors": [["sleep", 100_000, -60_000]] * 2}
    assert time_error(join([one, other])["errors"]) == (60_000, 0.6, 1 / 3)
    assert time_error([]) is None


def test_a_message_that_others_kept_from_the_cpu_is_left_out() -> None:
    disturbed = message(2, ("sleep", 1_000_000)) | {"waited_ns": 400_000}
    by_plan = message(3, ("preempted_fifo", 1_000_000)) | {"waited_ns": 1_050_000}
    told = explanation({1: USUAL, 2: USUAL, 3: USUAL | {"preempted": 1_000_000}})
    result = score([message(1), disturbed, by_plan], told)
    assert (result["disturbed"], result["injected"], result["right"]) == (1, 1, 1)
