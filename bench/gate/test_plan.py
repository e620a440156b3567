"""The plan of the collection: what makes its pairs pairs."""

from collections import Counter
from itertools import islice

from plan import BLOCK, KINDS, PINNED, SYSTEMS, turns

BLOCKS = 200


def of_blocks() -> list:
    free = sum(times for kind, times in BLOCK.items() if kind not in PINNED) // 2
    per_block = len(SYSTEMS) * (free + sum(BLOCK[kind] for kind in PINNED))
    return list(islice(turns(1), BLOCKS * per_block))


def test_a_cut_collection_goes_on_where_it_was() -> None:
    assert list(islice(turns(7), 50)) == list(islice(turns(7), 50))
    assert list(islice(turns(7), 50)) != list(islice(turns(8), 50))


def test_every_block_has_all_kinds_of_both_systems() -> None:
    kinds = Counter((turn.system, kind) for turn in of_blocks() for kind in (turn.before, turn.after) if kind)
    assert kinds == {(system, kind): BLOCKS * BLOCK[kind] for system in SYSTEMS for kind in KINDS}


def test_no_kind_meets_an_a_twice_and_one_core_is_never_shared_with_those_of_all() -> None:
    for turn in of_blocks():
        assert turn.before != turn.after
        assert not {turn.before, turn.after} & PINNED or None in (turn.before, turn.after)
        assert turn.order.count(None) == 1


def test_a_fair_coin_orders_each_pair() -> None:
    for kind in KINDS:
        first = [turn.before == kind for turn in of_blocks() if kind in (turn.before, turn.after)]
        # Four standard deviations of a fair coin.
        assert abs(sum(first) - len(first) / 2) < 2 * len(first) ** 0.5, kind
