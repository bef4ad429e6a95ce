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
from informix_checkpoints.table_states import SnapshotState, TableState

NAME = "informix.t"
ACQUIRED = Acquired(place=150, since=200, still_open=(), digests={NAME: "new"})
RECEIPT = Receipt("s", {"a": 100}, {NAME: "old"}, ACQUIRED)


def back(receipt: Receipt, commit: int = 120, stream: str = "a", **known: Any) -> Any:
    found = SimpleNamespace(states=lambda: {NAME: TableState("new")})
    offset = StreamOffset(stream, "s", Position(commit, commit))
    tables = {NAME: TableState(**{"digest": "old", **known})}
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
        back(RECEIPT, digest="older")


def test_a_stream_that_the_receipt_does_not_name_is_refused() -> None:
    with pytest.raises(BadOption, match="is of stream a of source s, not of b of s"):
        back(RECEIPT, stream="b")


def test_a_receipt_of_other_tables_says_nothing_of_one_that_is_another() -> None:
    of_others = replace(RECEIPT, digests={"informix.u": "old"})
    with pytest.raises(DataLoss, match=f"the stream has table {NAME} of digest old"):
        back(of_others)


def test_a_receipt_of_another_server_or_database_is_refused() -> None:
    with pytest.raises(BadOption, match="is of stream a of source other, not of a of s"):
        back(replace(RECEIPT, source="other"))


def test_what_is_known_of_its_snapshot_stays_known() -> None:
    done = SnapshotState(rows=7, is_done=True)
    assert back(RECEIPT, snapshot=done) == {NAME: TableState("new", since=200, snapshot=done)}


@pytest.mark.parametrize("since", [200, 201])
def test_a_change_that_the_stream_has_got_over_is_not_made_again(since: int) -> None:
    """A table that came back by this receipt is another one again: that is for another receipt."""
    with pytest.raises(BadOption, match=f"is of an earlier change of {NAME}"):
        back(RECEIPT, since=since)


@pytest.mark.parametrize("digests", [{NAME: "newer"}, {}])
def test_a_table_that_is_not_as_acquire_has_found_it_is_refused(digests: dict[str, str]) -> None:
    with pytest.raises(BadOption, match=f"was completed for table {NAME}"):
        back(replace(RECEIPT, acquired=replace(ACQUIRED, digests=digests)))
