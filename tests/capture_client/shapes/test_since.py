"""Changes of a table that committed at or below where it joined the stream are not of the stream."""

from __future__ import annotations

import pytest

from capture_client.shapes.test_encoder import both, delivered, end, order, size, transactions
from harness.capture.streams import begin, truncate
from informix_capture_client.shapes import change_count


@pytest.mark.parametrize(("since", "tables"), [(4, "os"), (5, "o"), (6, "o")])
def test_a_commit_at_where_a_table_joined_is_not_of_the_stream_for_it(since: int, tables: str) -> None:
    found = delivered(both(since={1: since}), order(2, 1), size(3, 500), end(5))
    assert "".join(row["_table"][len("stores:informix.")] for row in found) == tables


def test_the_other_changes_of_the_transaction_keep_their_ordinals() -> None:
    found = delivered(both(since={1: 5}), size(2, 500), order(3, 1), end(5))
    assert [row["_change_ordinal"] for row in found] == [1]


def test_a_truncate_of_before_a_table_joined_is_not_stored() -> None:
    assert list(both("emit", {1: 5}).encode(transactions(truncate(3, 1, 1), end(5)))) == []


def test_a_transaction_of_which_nothing_is_left_makes_no_rows() -> None:
    found = transactions(
        order(2, 1), end(5), begin(6, 2, 1_700_000_000, 501), order(7, 2, 2), end(8, 2)
    )
    assert [change_count(batch) for batch in both(since={0: 5}).encode(found)] == [1]
