"""A receipt is held against the offset that a query goes on from: what does not fit is named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.positions import Position
from informix_cdc.joining import altered_tables
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.receipts import Acquired, Receipt
from informix_checkpoints.table_states import TableState

NAME = "informix.t"
ACQUIRED = Acquired(place=150, since=200, still_open=(), digests={NAME: "new"})
RECEIPT = Receipt("s", {"a": 100}, {NAME: "old"}, ACQUIRED)


def back(receipt: Receipt, commit: int = 120, known: str = "old", stream: str = "a") -> Any:
    found = SimpleNamespace(states=lambda: {NAME: TableState("new")})
    offset = StreamOffset(stream, "s", Position(commit, commit))
    tables = {NAME: TableState(known)}
    return altered_tables(offset, cast("SourceTables", found), tables, receipt)


@pytest.mark.parametrize("commit", [100, 120, 200])
def test_from_what_release_saw_up_to_what_acquire_found_the_table_comes_back(commit: int) -> None:
    assert back(RECEIPT, commit) == {NAME: TableState("new", since=200)}


@pytest.mark.parametrize("commit", [99, 201])
def test_a_checkpoint_of_before_release_or_of_behind_acquire_is_refused(commit: int) -> None:
    """Behind acquire: its session was over the table of before, at places of the new layout."""
    with pytest.raises(BadOption, match="is of a checkpoint between"):
        back(RECEIPT, commit)


def test_a_stream_that_has_another_layout_than_the_receipt_is_refused() -> None:
    with pytest.raises(BadOption, match=f"is of table {NAME} of digest old, and the stream has older"):
        back(RECEIPT, known="older")


def test_a_stream_that_the_receipt_does_not_name_is_refused() -> None:
    with pytest.raises(BadOption, match="is of stream a of source s, not of b of s"):
        back(RECEIPT, stream="b")


def test_a_receipt_of_other_tables_says_nothing_of_one_that_is_another() -> None:
    of_others = replace(RECEIPT, digests={"informix.u": "old"})
    with pytest.raises(DataLoss, match=f"the stream has table {NAME} of digest old"):
        back(of_others)
