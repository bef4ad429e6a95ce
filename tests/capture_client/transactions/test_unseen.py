"""Transactions older than the stream: a set of ids whose work does not grow with their number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.capture.streams import begin, blocks, commit, row
from informix_capture_client.positions import LogEnd
from informix_capture_client.transactions.spans import Run
from informix_capture_client.transactions.unseen import UnseenTransactions

IDS = st.integers(0, 12)


@given(st.sets(IDS), st.lists(st.tuples(st.booleans(), IDS)))
def test_it_is_a_set_in_order(ids: set[int], changes: list[tuple[bool, int]]) -> None:
    unseen, known = UnseenTransactions(ids), set(ids)
    for is_added, number in changes:
        (unseen.add if is_added else unseen.discard)(number)
        (known.add if is_added else known.discard)(number)
        assert unseen.ids == tuple(sorted(known))
        asked = np.arange(14)
        assert unseen.has(asked).tolist() == [each in known for each in range(14)]
        assert [each in unseen for each in range(14)] == [each in known for each in range(14)]


def test_the_first_bound_on_one_of_them_is_found() -> None:
    (block,) = blocks([begin(1, 5, 0, 0) + row(2, 7) + begin(3, 8, 0, 0) + commit(4, 7, 0)])
    assert UnseenTransactions({7}).first_bound(block, 0, 4) == 3
    assert UnseenTransactions({7}).first_bound(block, 0, 3) == 3
    assert UnseenTransactions({8}).first_bound(block, 0, 4) == 2
    assert UnseenTransactions(()).first_bound(block, 0, 4) == 4


def test_a_begin_below_the_log_end_on_a_listed_id_is_of_an_older_transaction() -> None:
    (block,) = blocks([begin(1, 5, 0, 0) + begin(2, 7, 0, 0) + row(3, 7)])
    unseen = UnseenTransactions({7}, log_end=LogEnd(3, 0))
    kept, first, end = unseen.without_begins_before_the_stream(Run(block, 0, 3))
    assert kept.sequence_numbers[first:end].tolist() == [1, 3]
    assert unseen.is_in_doubt
    (later,) = blocks([begin(4, 7, 0, 0)])
    assert unseen.without_begins_before_the_stream(Run(later, 0, 1)) == (later, 0, 1)
    assert not unseen.is_in_doubt
