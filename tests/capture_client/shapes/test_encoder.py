"""Transactions of records become changes, with all that is known about them, or are refused."""

from __future__ import annotations

import datetime
from typing import Any, Literal

import pyarrow as pa
import pytest

from harness.capture.shaped import Shaped, delivery_of
from harness.capture.streams import begin, commit, discard, feed_chunks, in_chunks, row, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import (
    BadOption,
    DataLoss,
    ProtocolViolation,
    UnsupportedColumn,
)
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.shapes import ChangeEncoder, change_count
from informix_capture_client.shapes.change_columns import BATCH_ROWS
from informix_capture_client.shapes.metadata import METADATA
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions

Policy = Literal["fail", "emit", "ignore"]
COLUMNS = "note varchar(20,0), id integer"  # table order: the stream has fixed columns first
ANNOUNCED = TableSchema(0, 4, 1, 1, "id integer, note varchar(20,0)")
OTHER = TableSchema(1, 2, 1, 0, "size smallint")


ORDERS, SIZES = make_table("orders", COLUMNS), make_table("sizes", "size smallint")


def orders(policy: Policy = "fail", **form: Any) -> Shaped:
    encoder = Shaped([ORDERS], DecodeRules(), RowForm(truncate=policy, **form))
    encoder.announce(ANNOUNCED)
    return encoder


def both(policy: Policy = "fail", since: dict[int, int] | None = None) -> Shaped:
    encoder = Shaped([ORDERS, SIZES], DecodeRules(), RowForm(truncate=policy), since)
    encoder.announce(ANNOUNCED)
    encoder.announce(OTHER)
    return encoder


def order(
    sequence: int, number: int, transaction: int = 1, kind: RecordKind = RecordKind.INSERT
) -> bytes:
    note = b"n%d" % number
    payload = number.to_bytes(4) + bytes((len(note),)) + note
    return row(sequence, transaction, payload, kind, 0, [len(note) + 1])


def size(sequence: int, value: int, transaction: int = 1) -> bytes:
    return row(sequence, transaction, value.to_bytes(2), RecordKind.INSERT, 1)


def transactions(*records: bytes, chunk: int = 1 << 20) -> list[CommittedTransactions]:
    stream = begin(1, 1, 1_700_000_000, 501) + b"".join(records)
    events = feed_chunks(TransactionAssembler(Position(0, 0)), in_chunks(stream, chunk))
    return [event for event in events if isinstance(event, CommittedTransactions)]


def rows_in(encoder: Shaped, found: list[CommittedTransactions]) -> list[pa.RecordBatch]:
    return list(encoder.delivered(encoder.encode(found)))


def delivered(encoder: Shaped, *records: bytes) -> list[dict[str, Any]]:
    batches = rows_in(encoder, transactions(*records))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == encoder.schema
    return [change for batch in batches for change in batch.to_pylist()]


def end(sequence: int = 900_000, transaction: int = 1) -> bytes:
    return commit(sequence, transaction, 1_700_000_005)


UTC = datetime.UTC


def test_a_change_carries_its_row_and_what_is_known_about_it() -> None:
    (change,) = delivered(orders(), order(7, 42), end(9))
    assert change == {
        "note": "n42",
        "id": 42,
        "_change_type": "insert",
        "_commit_version": 9,
        "_commit_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 25, tzinfo=UTC),
        "_change_ordinal": 0,
        "_change_seq": 7,
        "_transaction_id": 1,
        "_begin_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        "_user_id": 501,
        "_table": "stores:informix.orders",
        "_snapshot": False,
    }
    assert list(change) == ["note", "id", *METADATA.names]


def test_minimal_metadata_is_what_an_upsert_and_a_watermark_need() -> None:
    (change,) = delivered(orders(metadata="minimal"), order(7, 42), end(9))
    names = ["_change_type", "_commit_version", "_commit_timestamp", "_change_ordinal"]
    assert list(change) == ["note", "id", *names]
    (whole,) = delivered(orders(), order(7, 42), end(9))
    assert change == {name: whole[name] for name in change}


def test_minimal_metadata_of_several_tables_names_the_table_that_a_truncate_has_no_row_of() -> None:
    schema = delivery_of([ORDERS, SIZES], RowForm(metadata="minimal")).schema
    assert schema.names[-2:] == ["_change_ordinal", "_table"]


def test_with_minimal_metadata_a_column_may_have_the_name_of_what_is_left_out() -> None:
    table = make_table("orders", "_user_id integer")
    assert "_user_id" in delivery_of([table], RowForm(metadata="minimal")).schema.names


def test_all_kinds_of_changes_are_named_as_in_deltas_change_feed() -> None:
    found = delivered(
        orders("emit"),
        order(2, 1),
        order(3, 1, kind=RecordKind.UPDBEF),
        order(4, 2, kind=RecordKind.UPDAFT),
        order(5, 2, kind=RecordKind.DELETE),
        truncate(6, 1, 0),
        end(),
    )
    names = ["insert", "update_preimage", "update_postimage", "delete", "truncate"]
    assert [change["_change_type"] for change in found] == names
    assert [change["_change_ordinal"] for change in found] == [0, 1, 2, 3, 4]
    assert [change["id"] for change in found] == [1, 1, 2, 2, None]


def test_ordinals_begin_anew_in_each_transaction_and_count_what_discard_left() -> None:
    found = delivered(
        orders(),
        begin(2, 2, 5, 6),
        order(3, 1),
        order(4, 2, 2),
        order(5, 3),
        discard(5, 1),
        order(6, 4),
        end(7),
        order(8, 5, 2),
        end(9, 2),
    )
    seen = [(c["_commit_version"], c["_change_ordinal"], c["id"], c["_user_id"]) for c in found]
    assert seen == [(7, 0, 1, 501), (7, 1, 4, 501), (9, 0, 2, 6), (9, 1, 5, 6)]


def test_several_tables_are_one_struct_each() -> None:
    found = delivered(both(), order(2, 1), size(3, 500), order(4, 2), end())
    assert [(c["orders"], c["sizes"]) for c in found] == [
        ({"note": "n1", "id": 1}, None),
        (None, {"size": 500}),
        ({"note": "n2", "id": 2}, None),
    ]
    assert [c["_table"] for c in found] == [
        f"stores:informix.{n}" for n in ("orders", "sizes", "orders")
    ]


def test_a_row_of_nulls_is_not_a_missing_row() -> None:
    nulls = row(2, 1, bytes.fromhex("80000000 0100"), RecordKind.INSERT, 0, [2])
    (change,) = delivered(both(), nulls, end())
    assert (change["orders"], change["sizes"]) == ({"note": None, "id": None}, None)


# truncates


def test_a_truncate_that_was_discarded_is_no_change() -> None:
    found = delivered(orders("emit"), order(2, 1), truncate(3, 1, 0), discard(3, 1), end())
    assert [change["id"] for change in found] == [1]


def test_an_emitted_truncate_is_a_row_without_data() -> None:
    found = delivered(both("emit"), size(2, 5), truncate(3, 1, 1), size(4, 6), end())
    assert [(c["_change_type"], c["sizes"], c["_table"]) for c in found] == [
        ("insert", {"size": 5}, "stores:informix.sizes"),
        ("truncate", None, "stores:informix.sizes"),
        ("insert", {"size": 6}, "stores:informix.sizes"),
    ]


def test_a_transaction_of_nothing_but_a_truncate_is_emitted() -> None:
    (change,) = delivered(orders("emit"), truncate(2, 1, 0), end())
    assert (change["_change_type"], change["id"], change["note"]) == ("truncate", None, None)


@pytest.mark.parametrize("policy", ["ignore", "fail"])
def test_a_truncate_that_is_not_delivered_is_stored_and_keeps_its_ordinal(policy: Policy) -> None:
    encoder, found = orders(policy), transactions(order(2, 1), truncate(3, 1, 0), order(5, 2), end())
    stored = list(encoder.encode(found))
    assert sum(map(change_count, stored)) == 3
    rows = [row for batch in encoder.delivered(stored) for row in batch.to_pylist()]
    assert [(row["id"], row["_change_ordinal"]) for row in rows] == [(1, 0), (2, 2)]


def test_a_transaction_of_nothing_but_an_ignored_truncate_is_empty() -> None:
    assert delivered(orders("ignore"), truncate(2, 1, 0), end()) == []


# pairs

BEFORE, AFTER = RecordKind.UPDBEF, RecordKind.UPDAFT
UPDATE = [order(3, 1, kind=BEFORE), order(4, 1, kind=AFTER)]
HALVES = [
    ("a before image alone", [order(2, 1, kind=BEFORE)]),
    ("an after image alone", [order(2, 1, kind=AFTER)]),
    ("images in the wrong order", [order(2, 1, kind=AFTER), order(3, 1, kind=BEFORE)]),
    (
        "two before images",
        [order(2, 1, kind=BEFORE), order(3, 1, kind=BEFORE), order(4, 1, kind=AFTER)],
    ),
    ("two after images", [order(2, 1, kind=BEFORE), order(3, 1, kind=AFTER), order(4, 1, kind=AFTER)]),
    ("an insert between", [order(2, 1, kind=BEFORE), order(3, 1), order(4, 1, kind=AFTER)]),
    (
        "images of two tables",
        [order(2, 1, kind=BEFORE), row(3, 1, b"\0\1", AFTER, 1)],
    ),
    (
        "images of two transactions",
        [
            order(2, 1, kind=BEFORE),
            end(3),
            begin(4, 2, 1, 1),
            order(5, 1, 2, AFTER),
            end(6, 2),
            begin(7, 1, 1, 1),
        ],
    ),
]


@pytest.mark.parametrize("records", [h[1] for h in HALVES], ids=[h[0] for h in HALVES])
def test_an_update_without_both_images_is_loss(records: list[bytes]) -> None:
    with pytest.raises(DataLoss, match="only one row image"):
        delivered(both(), *records, end())


def test_half_an_update_that_was_discarded_is_no_loss() -> None:
    found = delivered(orders(), order(2, 1), order(3, 1, kind=BEFORE), discard(3, 1), end())
    assert len(found) == 1


def test_images_in_different_blocks_are_a_pair() -> None:
    changes = transactions(order(2, 1, kind=BEFORE), order(3, 2, kind=AFTER), end(), chunk=30)
    (batch,) = rows_in(orders(), changes)
    assert batch.column("_change_type").to_pylist() == ["update_preimage", "update_postimage"]


# batches


@pytest.mark.parametrize("chunk", [1000, 65_536, 1 << 24], ids="read in chunks of {}".format)
@pytest.mark.parametrize("rows", [BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS + 5])
def test_batches_hold_the_same_rows_however_the_bytes_came(rows: int, chunk: int) -> None:
    records = [order(10 + n, n) for n in range(rows)]
    encoder = orders()
    stored = list(encoder.encode(transactions(*records, end(), chunk=chunk)))
    assert all(BATCH_ROWS // 2 <= change_count(batch) <= BATCH_ROWS for batch in stored[:-1])
    whole = pa.Table.from_batches(encoder.delivered(stored))
    assert whole.column("id").to_pylist() == list(range(rows))
    assert whole.column("note").to_pylist() == [f"n{n}" for n in range(rows)]
    assert whole.column("_change_ordinal").to_pylist() == list(range(rows))


def test_many_small_transactions_share_a_batch() -> None:
    records = [
        begin(10 * n, n, n, n) + order(10 * n + 1, n, n) + end(10 * n + 2, n) for n in range(2, 5000)
    ]
    (batch,) = rows_in(orders(), transactions(*records))
    assert batch.column("_transaction_id").to_pylist() == list(range(2, 5000))
    assert batch.column("_user_id").to_pylist() == list(range(2, 5000))


def test_no_transactions_are_no_batches() -> None:
    assert list(orders().encode([])) == []


# what does not fit together

ANNOUNCEMENTS = [
    (
        "a column more",
        TableSchema(0, 8, 2, 1, "id integer, x integer, note varchar(20,0)"),
        "columns that differ",
    ),
    ("a column less", TableSchema(0, 4, 1, 0, "id integer"), "columns that differ"),
    ("another type", TableSchema(0, 8, 1, 1, "id bigint, note varchar(20,0)"), "columns that differ"),
    ("another name", TableSchema(0, 4, 1, 1, "nr integer, note varchar(20,0)"), "columns that differ"),
    ("another table", TableSchema(5, 4, 1, 1, ANNOUNCED.columns), "table number 5"),
    ("a negative table", TableSchema(-1, 4, 1, 1, ANNOUNCED.columns), "table number -1"),
    ("other fixed bytes", TableSchema(0, 5, 1, 1, ANNOUNCED.columns), "announces 5 fixed bytes"),
    ("other counts", TableSchema(0, 4, 1, 2, ANNOUNCED.columns), "2 variable columns"),
]


@pytest.mark.parametrize(
    ("announced", "why"), [a[1:] for a in ANNOUNCEMENTS], ids=[a[0] for a in ANNOUNCEMENTS]
)
def test_an_announcement_that_is_not_the_catalogs_is_refused(announced: TableSchema, why: str) -> None:
    encoder = ChangeEncoder([ORDERS], DecodeRules())
    with pytest.raises(ProtocolViolation, match=why):
        encoder.announce(announced)


def test_a_row_before_its_table_is_described_is_refused() -> None:
    encoder = Shaped([ORDERS], DecodeRules())
    with pytest.raises(ProtocolViolation, match="orders at 0:0x2 arrived before the table's desc"):
        delivered(encoder, order(2, 1), end())


@pytest.mark.parametrize("table", [-5, -1, 1, 2**31 - 1])
def test_a_row_of_a_table_not_asked_for_is_refused(table: int) -> None:
    for record in (row(2, 1, b"\0\0\0\1", RecordKind.INSERT, table), truncate(2, 1, table)):
        with pytest.raises(ProtocolViolation, match=f"0:0x2 belongs to table number {table}"):
            delivered(orders(), record, end())


def test_a_row_without_room_for_its_sizes_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="orders at 0:0x3 is too short for the sizes of its 1"):
        delivered(orders(), order(2, 1), row(3, 1, b"\0\0\0\1"), end())


def test_a_value_that_cannot_be_is_named_by_its_position() -> None:
    bad = row(3, 1, bytes.fromhex("00000001 0561"), RecordKind.INSERT, 0, [2])
    with pytest.raises(ProtocolViolation, match=r"stores:informix.orders.note at 0:0x3 has a VARCHAR"):
        delivered(both(), size(2, 1), bad, end())


@pytest.mark.parametrize("name", METADATA.names)
def test_a_column_named_like_one_that_every_row_gets_is_refused(name: str) -> None:
    table = make_table("orders", f'"{name}" integer')
    with pytest.raises(BadOption, match=name):
        delivery_of([table])
    assert delivery_of([table, SIZES]).schema.names[:2] == ["orders", "sizes"]


def test_tables_of_one_name_get_their_owner_in_front() -> None:
    owners = {"ann": "t", "bob": "t", "informix": "u"}
    tables = [make_table(name, "a date", owner) for owner, name in owners.items()]
    assert delivery_of(tables).schema.names[:3] == ["ann_t", "bob_t", "u"]


def test_a_column_that_cannot_be_captured_is_refused_before_anything_is_read() -> None:
    with pytest.raises(UnsupportedColumn, match=r"column body of .*mails has type TEXT"):
        ChangeEncoder([make_table("mails", "id serial, body text")], DecodeRules())
