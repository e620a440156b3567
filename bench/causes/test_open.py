"""What a loop's own log says of the run without the cause."""

import importlib.util
from pathlib import Path

# Its name is that of a module of Python's.
spec = importlib.util.spec_from_file_location("open_loops", Path(__file__).with_name("open.py"))
open_loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(open_loops)

Logged = open_loops.Logged


def every(period_ns: int, usual_ns: int, delays: dict[int, int], count: int) -> list:
    """The log of one thread that messages reach at once, with delays put in."""
    log, free_ns = [], 0
    for number in range(count):
        due_ns = 1_000_000 + number * period_ns
        taken_ns = max(due_ns, free_ns)
        free_ns = taken_ns + usual_ns + delays.get(number, 0)
        log.append(Logged(due_ns, taken_ns, free_ns, usual_ns))
    return log


def test_what_queued_behind_a_delay_moves_up() -> None:
    log = every(1000, 400, {10: 5000}, 100)
    assert max(message.total_ns for message in log) == 5400
    assert open_loops.replayed(log, 1) == [400] * 100
    assert open_loops.made_by_cause(log, [400] * 100) == 1.0


def test_a_queue_that_the_load_makes_stays() -> None:
    log = every(1000, 1100, {}, 100)
    replay = open_loops.replayed(log, 1)
    assert replay == [message.total_ns for message in log]
    assert open_loops.made_by_cause(log, replay) == 0.0


def test_stages_take_turns_on_their_cpu() -> None:
    # The second message comes while the first one's stage runs: that goes on, and the next stage has both afterwards.
    log = [Logged(due_ns, due_ns, due_ns + 200, 200) for due_ns in (0, 50, 1000)]
    assert open_loops.replayed(log, 2) == [300, 350, 200]


def test_a_tail_that_the_log_does_not_make_is_not_known() -> None:
    case = open_loops.Case("c++", "semaphore", 0.4, "periodic")
    put_in = [
        open_loops.Logged(m.due_ns, m.taken_ns, m.done_ns, m.usual_ns, 90_000 * (at % 40 == 10))
        for at, m in enumerate(every(100_000, 40_000, {at: 90_000 for at in range(10, 400, 40)}, 400))
    ]
    off = every(100_000, 40_000, {}, 400)
    assert open_loops.replayed(put_in, 1, with_cause=True) == [message.total_ns for message in put_in]
    assert open_loops.knows_tail(put_in, off, case)
    # Another program had the CPU, in the one run or in the other; nothing that is predicted need show it.
    taken = every(100_000, 40_000, {at: 500_000 for at in range(10, 400, 40)}, 400)
    assert not open_loops.knows_tail(taken, off, case)
    assert not open_loops.knows_tail(put_in, taken, case)


def test_the_queue_behind_a_strike_ends_before_the_next_one() -> None:
    for case in open_loops.cases():
        size_us, every_us = open_loops.strikes(case)
        # Two are from half to one and a half of the mean apart. More load than there is time for leaves a queue that never ends.
        if case.kind not in ("quota", "overload"):
            assert every_us / 2 > 1.5 * size_us / (1 - case.load), case.name


def test_a_result_without_the_check_of_its_tail_does_not_count() -> None:
    results = [
        {"is_right": True},
        {"is_right": False, "is_tail_known": False},
        {"is_right": True, "is_tail_known": True},
    ]
    assert open_loops.rights(results) == (1, 1)
