"""A receipt is held against the offset that a query goes on from: what does not fit is named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption, DataLoss, Gap
from informix_capture_client.positions import Position
from informix_capture_client.sql_names import TableName
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.table_changes import altered_tables, explains
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.receipts import Acquired, Receipt
from informix_checkpoints.spool import ReportedLoss
from informix_checkpoints.table_states import SnapshotState, TableState

NAME = "informix.t"
ACQUIRED = Acquired(place=150, since=200, still_open=(), digests={NAME: "new"})
TABLE_ID = 104
RECEIPT = Receipt("s", {"a": 100}, {NAME: "old"}, {NAME: TABLE_ID}, ACQUIRED)
OPTIONS = SourceOptions.parse(source_options(1, table=NAME))
READ_AGAIN = replace(OPTIONS, initial_snapshot=("all",))


def back(
    receipt: Receipt,
    commit: int = 120,
    stream: str = "a",
    options: SourceOptions = OPTIONS,
    **known: Any,
) -> Any:
    table = SimpleNamespace(name=TableName.parse(NAME, "stores"), table_id=TABLE_ID)
    found = SimpleNamespace(states=lambda: {NAME: TableState("new")}, names=[NAME], tables=[table])
    offset = StreamOffset(stream, "s", Position(commit, commit))
    tables = {NAME: TableState(**{"digest": "old", **known})}
    return altered_tables(offset, cast("SourceTables", found), tables, receipt, options)


@pytest.mark.parametrize("commit", [100, 120, 200])
def test_from_what_release_saw_up_to_what_acquire_found_the_table_comes_back(commit: int) -> None:
    assert back(RECEIPT, commit) == {NAME: TableState("new", since=200)}


@pytest.mark.parametrize("commit", [99, 201])
def test_a_checkpoint_of_before_release_or_of_behind_acquire_is_refused(commit: int) -> None:
    """Behind acquire: its session was over the table of before, at places of the new layout."""
    with pytest.raises(BadOption, match="is for a checkpoint between"):
        back(RECEIPT, commit)


def test_a_stream_that_has_another_layout_than_the_receipt_is_refused() -> None:
    with pytest.raises(
        BadOption, match=f"is for table {NAME} with digest old, but the stream has older"
    ):
        back(RECEIPT, digest="older")


def test_a_stream_that_the_receipt_does_not_name_is_refused() -> None:
    with pytest.raises(BadOption, match="is for stream a of source s, not for b of s"):
        back(RECEIPT, stream="b")


def test_a_receipt_of_other_tables_says_nothing_of_one_that_is_another() -> None:
    of_others = replace(RECEIPT, digests={"informix.u": "old"})
    with pytest.raises(DataLoss, match=f"the stream has table {NAME} with digest old"):
        back(of_others)


def test_a_receipt_of_another_server_or_database_is_refused() -> None:
    with pytest.raises(BadOption, match="is for stream a of source other, not for a of s"):
        back(replace(RECEIPT, source="other"))


def test_its_rows_are_read_again_where_that_is_asked_for() -> None:
    """DDL may have given them other values: ADD with a DEFAULT, MODIFY."""
    done = SnapshotState(rows=7, is_done=True)
    assert back(RECEIPT, snapshot=done) == {NAME: TableState("new", since=200, snapshot=done)}
    again = TableState("new", since=200, snapshot=SnapshotState())
    assert back(RECEIPT, options=READ_AGAIN, snapshot=done) == {NAME: again}


ANEW = replace(RECEIPT, table_ids={NAME: TABLE_ID - 1})


@pytest.mark.parametrize(
    "options", [OPTIONS, READ_AGAIN, replace(OPTIONS, truncate="emit")], ids=["", "read", "emit"]
)
def test_a_table_that_was_dropped_and_created_is_refused_where_no_sink_could_tell(
    options: SourceOptions,
) -> None:
    with pytest.raises(BadOption, match=r"dropped and created .* truncate=emit"):
        back(ANEW, options=options)


def test_a_table_that_was_dropped_and_created_is_read_from_its_first_row() -> None:
    known = back(ANEW, options=replace(READ_AGAIN, truncate="emit"))
    assert known == {NAME: TableState("new", since=200, snapshot=SnapshotState())}


LOSS = ReportedLoss(Gap.ROW_LOGGING_OFF, "it was off", (f"stores:{NAME}",))
EXPLAINED = {
    "between release and acquire": (RECEIPT, 120, LOSS, True),
    "acquire has not run": (replace(RECEIPT, acquired=None), 120, LOSS, False),
    "there is not a receipt": (None, 120, LOSS, False),
    "of another table": (RECEIPT, 120, LOSS._replace(tables=("stores:informix.u",)), False),
    "of one table more": (
        RECEIPT,
        120,
        LOSS._replace(tables=(*LOSS.tables, "stores:informix.u")),
        False,
    ),
    "of unknown tables": (RECEIPT, 120, LOSS._replace(tables=()), False),
    "of another kind": (RECEIPT, 120, LOSS._replace(gap=Gap.LOG_GONE), False),
    "before release": (RECEIPT, 99, LOSS, False),
    "behind acquire": (RECEIPT, 201, LOSS, False),
    "of another stream": (replace(RECEIPT, delivered={"b": 100}), 120, LOSS, False),
    "of another server": (replace(RECEIPT, source="other"), 120, LOSS, False),
}


@pytest.mark.parametrize(
    ("receipt", "commit", "loss", "is_none"), EXPLAINED.values(), ids=EXPLAINED.keys()
)
def test_a_complete_receipt_explains_a_loss_that_was_reported_in_mid_alter(
    receipt: Receipt | None, commit: int, loss: ReportedLoss, is_none: bool
) -> None:
    offset = StreamOffset("a", "s", Position(commit, commit))
    assert explains(receipt, offset, loss) == is_none


@pytest.mark.parametrize("since", [200, 201])
def test_a_change_that_the_stream_has_got_over_is_not_made_again(since: int) -> None:
    """A table that came back by this receipt is another one again: that is for another receipt."""
    with pytest.raises(BadOption, match=f"is of an earlier change of {NAME}"):
        back(RECEIPT, since=since)


@pytest.mark.parametrize("digests", [{NAME: "newer"}, {}])
def test_a_table_that_is_not_as_acquire_has_found_it_is_refused(digests: dict[str, str]) -> None:
    with pytest.raises(BadOption, match=f"was completed for table {NAME}"):
        back(replace(RECEIPT, acquired=replace(ACQUIRED, digests=digests)))
