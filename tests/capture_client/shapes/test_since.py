"""Changes of a table that committed at or below where it joined the stream are not of the stream."""

from __future__ import annotations

import pytest

from capture_client.shapes.test_encoder import (
    ANNOUNCED,
    COLUMNS,
    OTHER,
    delivered,
    end,
    order,
    size,
    transactions,
)
from harness.capture.streams import begin, feed, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.positions import Position
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.row_forms import make_encoder
from informix_capture_client.transactions import CommittedTransactions, TransactionAssembler


def both(since: dict[int, int], shape: str = "rows") -> ChangeEncoder:
    tables = [make_table("orders", COLUMNS), make_table("sizes", "size smallint")]
    form = RowForm(shape=shape)  # type: ignore[arg-type]
    encoder = make_encoder(tables, DecodeRules(), form, since)
    encoder.announce(ANNOUNCED)
    encoder.announce(OTHER)
    return encoder


@pytest.mark.parametrize(("since", "tables"), [(4, "os"), (5, "o"), (6, "o")])
def test_a_commit_at_where_a_table_joined_is_not_of_the_stream_for_it(since: int, tables: str) -> None:
    found = delivered(both({1: since}), order(2, 1), size(3, 500), end(5))
    assert "".join(row["_table"][len("stores:informix.")] for row in found) == tables


def test_a_truncate_of_before_a_table_joined_is_no_loss() -> None:
    assert delivered(both({1: 5}), truncate(3, 1, 1), end(5)) == []


def test_bounds_of_transactions_are_of_no_table() -> None:
    assembler = TransactionAssembler(Position(0, 0))
    assembler.with_bounds = True
    events = feed(assembler, begin(1, 1, 1_700_000_000, 501), order(2, 1), size(3, 500), end(5))
    found = [event for event in events if isinstance(event, CommittedTransactions)]
    assert [batch.num_rows for batch in both({0: 5, 1: 5}, "raw").encode(found)] == [2]


def test_a_transaction_of_which_nothing_is_left_makes_no_rows() -> None:
    encoder = both({0: 5})
    found = transactions(
        order(2, 1), end(5), begin(6, 2, 1_700_000_000, 501), order(7, 2, 2), end(8, 2)
    )
    assert [batch.num_rows for batch in encoder.encode(found)] == [1]
