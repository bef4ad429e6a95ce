"""Shapes: the same changes as rows, as Debezium's envelope, and record for record."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from harness.capture.streams import (
    begin,
    blocks,
    commit,
    discard,
    in_chunks,
    row,
    truncate,
)
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import BadOption, DataLoss, ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.shapes.change_columns import BATCH_ROWS
from informix_capture_client.shapes.encoder import ChangeEncoder
from informix_capture_client.shapes.row_forms import make_encoder, row_schema
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions
from informix_checkpoints.spool import stored_rows

COLUMNS = "id integer, note varchar(20,0)"
BEFORE, AFTER = RecordKind.UPDBEF, RecordKind.UPDAFT
BEGUN, DONE = 1_700_000_000, 1_700_000_005
ENVELOPE = RowForm(shape="envelope", truncate="emit", server="ol_stores")
RAW = RowForm(shape="raw")


def order(
    sequence: int, number: int, transaction: int = 1, kind: RecordKind = RecordKind.INSERT
) -> bytes:
    note = b"n%d" % number
    payload = number.to_bytes(4) + bytes((len(note),)) + note
    return row(sequence, transaction, payload, kind, 0, [len(note) + 1])


def size(
    sequence: int, value: int, transaction: int = 1, kind: RecordKind = RecordKind.INSERT
) -> bytes:
    return row(sequence, transaction, value.to_bytes(2), kind, 1)


def update(sequence: int, old: int, new: int, transaction: int = 1) -> bytes:
    return order(sequence, old, transaction, BEFORE) + order(sequence + 1, new, transaction, AFTER)


def encoder(row_form: RowForm, tables: int = 1) -> ChangeEncoder:
    known = [make_table("orders", COLUMNS), make_table("sizes", "size smallint")]
    made = make_encoder(known[:tables], DecodeRules(), row_form)
    made.announce(TableSchema(0, 4, 1, 1, COLUMNS))
    if tables > 1:
        made.announce(TableSchema(1, 2, 1, 0, "size smallint"))
    return made


def changed(
    row_form: RowForm, *records: bytes, tables: int = 1, chunk: int = 1 << 20
) -> list[dict[str, Any]]:
    assembler = TransactionAssembler(Position(0, 0))
    assembler.with_bounds = row_form.shape == "raw"
    stream = b"".join([begin(1, 1, BEGUN, 501), *records])
    events = [e for block in blocks(in_chunks(stream, chunk)) for e in assembler.feed(block)]
    made = encoder(row_form, tables)
    encoded = made.encode([e for e in events if isinstance(e, CommittedTransactions)])
    stored = list(encoded)
    assert all(batch.schema.equals(encoded.schema, check_metadata=True) for batch in stored)
    batches = [stored_rows.in_row_form(batch, made.schema) for batch in stored]
    for batch in batches:
        batch.validate(full=True)
        assert [name for name in batch.schema.names if has_idle_bitmap(batch.column(name))] == []
        assert batch.schema == made.schema
    return [change for batch in batches for change in batch.to_pylist()]


def has_idle_bitmap(column: pa.Array) -> bool:
    """Tell whether there is a validity bitmap, here or further in, where nothing is NULL."""
    children = column.flatten() if pa.types.is_struct(column.type) else []
    is_idle = column.buffers()[0] is not None and not column.null_count
    return is_idle or (not column.null_count and any(map(has_idle_bitmap, children)))


# beforeImage


def test_without_before_images_an_update_is_one_row_and_ordinals_have_no_gaps() -> None:
    records = [order(2, 1), update(3, 1, 2), order(5, 2, kind=RecordKind.DELETE), commit(9, 1, DONE)]
    found = changed(RowForm(before_image=False), *records)
    assert [(c["_change_type"], c["id"], c["_change_ordinal"]) for c in found] == [
        ("insert", 1, 0),
        ("update_postimage", 2, 1),
        ("delete", 2, 2),
    ]


def test_a_missing_before_image_is_loss_even_if_it_would_not_be_delivered() -> None:
    with pytest.raises(DataLoss, match="only one row image"):
        changed(RowForm(before_image=False), order(2, 1, kind=AFTER), commit(9, 1, DONE))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [5000, 1 << 20], ids="read in chunks of {}".format)
@pytest.mark.parametrize("shift", [0, 1], ids=["even", "odd"])
def test_ordinals_go_on_over_batches_and_pairs_stay_together(shift: int, chunk: int) -> None:
    updates = BATCH_ROWS + 3
    head = [order(2 + n, n) for n in range(shift)]
    pairs = [update(10 + 2 * n, n, n + 1) for n in range(updates)]
    records = [*head, *pairs, commit(99_999, 1, DONE)]
    found = changed(RowForm(before_image=False), *records, chunk=chunk)
    assert [c["_change_ordinal"] for c in found] == list(range(updates + shift))
    assert [c["id"] for c in found[shift:]] == [n + 1 for n in range(updates)]
    whole = changed(RowForm(), *records, chunk=chunk)
    assert [c["_change_ordinal"] for c in whole] == list(range(2 * updates + shift))
    enveloped = changed(ENVELOPE, *records, chunk=chunk)
    assert [c["transaction"]["total_order"] for c in enveloped] == list(range(1, updates + shift + 1))
    assert [(c["before"]["id"], c["after"]["id"]) for c in enveloped[shift:]] == [
        (n, n + 1) for n in range(updates)
    ]


# envelope


def test_an_envelope_has_debeziums_fields_and_what_is_known_of_the_change() -> None:
    (change,) = changed(ENVELOPE, update(7, 41, 42), commit(9, 1, DONE))
    assert change == {
        "before": {"id": 41, "note": "n41"},
        "after": {"id": 42, "note": "n42"},
        "source": {
            "connector": "informix",
            "name": "ol_stores",
            "ts_ms": DONE * 1000,
            "snapshot": "false",
            "db": "stores",
            "schema": "informix",
            "table": "orders",
            "change_lsn": "8",
            "commit_lsn": "9",
            "begin_lsn": "1",
            "txId": "1",
        },
        "op": "u",
        "ts_ms": DONE * 1000,
        "transaction": {"id": "1", "total_order": 1, "data_collection_order": 1},
    }


def test_every_kind_of_change_has_its_operation_and_images() -> None:
    records = [order(2, 1), update(3, 1, 2), order(5, 2, kind=RecordKind.DELETE), truncate(6, 1, 0)]
    found = changed(ENVELOPE, *records, commit(9, 1, DONE))
    one, two = {"id": 1, "note": "n1"}, {"id": 2, "note": "n2"}
    assert [(c["op"], c["before"], c["after"]) for c in found] == [
        ("c", None, one),
        ("u", one, two),
        ("d", two, None),
        ("t", None, None),
    ]


def test_an_envelope_without_before_images_keeps_those_of_deletes() -> None:
    row_form = RowForm(shape="envelope", before_image=False)
    records = [update(3, 1, 2), order(5, 2, kind=RecordKind.DELETE), commit(9, 1, DONE)]
    found = changed(row_form, *records)
    assert [(c["op"], c["before"], c["after"]) for c in found] == [
        ("u", None, {"id": 2, "note": "n2"}),
        ("d", {"id": 2, "note": "n2"}, None),
    ]


def test_envelopes_of_several_tables_hold_a_struct_per_table_and_count_each() -> None:
    records = [
        begin(2, 2, BEGUN, 502),
        size(3, 7, 2),
        order(4, 1),
        size(5, 8),
        update(6, 1, 2),
        size(8, 9),
        commit(9, 1, DONE),
        order(10, 5, 2),
        commit(11, 2, DONE),
    ]
    found = changed(ENVELOPE, *records, tables=2)
    assert [(c["source"]["table"], c["source"]["txId"], *c["transaction"].values()) for c in found] == [
        ("orders", "1", "1", 1, 1),
        ("sizes", "1", "1", 2, 1),
        ("orders", "1", "1", 3, 2),
        ("sizes", "1", "1", 4, 2),
        ("sizes", "2", "2", 1, 1),
        ("orders", "2", "2", 2, 1),
    ]
    assert [c["after"] for c in found[1:3]] == [
        {"orders": None, "sizes": {"size": 8}},
        {"orders": {"id": 2, "note": "n2"}, "sizes": None},
    ]
    assert found[2]["before"] == {"orders": {"id": 1, "note": "n1"}, "sizes": None}


def test_a_truncate_policy_holds_for_envelopes_too() -> None:
    with pytest.raises(DataLoss, match="was truncated"):
        changed(RowForm(shape="envelope"), truncate(2, 1, 0), commit(9, 1, DONE))
    ignoring = RowForm(shape="envelope", truncate="ignore")
    assert changed(ignoring, truncate(2, 1, 0), commit(9, 1, DONE)) == []


# raw


def test_raw_rows_are_the_records_byte_for_byte() -> None:
    records = [
        begin(1, 1, BEGUN, 501),
        order(2, 1),
        truncate(3, 1, 0),
        order(4, 2, kind=BEFORE),
        commit(9, 1, DONE),
    ]
    found = changed(RAW, *records[1:])
    assert [c["header"] + c["payload"] for c in found] == records
    assert [(c["record_type"], c["sequence_number"], c["table"]) for c in found] == [
        ("CDC_REC_BEGINTX", 1, None),
        ("CDC_REC_INSERT", 2, "stores:informix.orders"),
        ("CDC_REC_TRUNCATE", 3, "stores:informix.orders"),
        ("CDC_REC_UPDBEF", 4, "stores:informix.orders"),
        ("CDC_REC_COMMTX", 9, None),
    ]
    assert {(c["transaction_id"], c["_commit_version"]) for c in found} == {(1, 9)}
    assert [c["_change_ordinal"] for c in found] == list(range(5))


@pytest.mark.parametrize("chunk", [30, 100, 1 << 20], ids="chunks of {}".format)
def test_raw_rows_show_no_undone_record_however_the_bytes_come(chunk: int) -> None:
    first = [begin(1, 1, BEGUN, 501), order(3, 1), order(7, 3), commit(8, 1, DONE)]
    second = [begin(2, 2, BEGUN, 502), order(4, 2, 2), commit(9, 2, DONE)]
    undone = [order(5, 9), discard(5, 1)]
    stream = [first[0], second[0], first[1], second[1], *undone, *first[2:], second[2]]
    found = changed(RAW, *stream[1:], chunk=chunk)
    assert [c["header"] + c["payload"] for c in found] == [*first, *second]


@pytest.mark.parametrize("table", [-5, -1, 1, 7])
def test_a_record_of_a_table_not_asked_for_is_refused_in_the_raw_shape_too(table: int) -> None:
    with pytest.raises(ProtocolViolation, match=f"belongs to table number {table}"):
        changed(RAW, row(2, 1, b"x", RecordKind.INSERT, table), commit(9, 1, DONE))


# schemas


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("shape", ["rows", "envelope", "raw"])
def test_a_schema_depends_on_options_and_catalog_only(shape: Any, tables: int) -> None:
    row_form = RowForm(shape=shape, truncate="emit")
    known = [make_table("orders", COLUMNS), make_table("sizes", "size smallint")][:tables]
    made = encoder(row_form, tables)
    assert row_schema(known, DecodeRules(), row_form) == made.schema
    for records in ([order(2, 1)], [order(2, 1, kind=RecordKind.DELETE)], [truncate(2, 1, 0)]):
        assert changed(row_form, *records, commit(9, 1, DONE), tables=tables)  # checks the schema


def test_no_column_of_a_table_can_collide_with_those_of_an_envelope() -> None:
    table = make_table("orders", "before integer, _commit_version integer")
    schema = row_schema([table], DecodeRules(), ENVELOPE)
    assert schema.field("before").type == pa.struct(
        [("before", pa.int32()), ("_commit_version", pa.int32())]
    )


def test_struct_columns_that_would_still_have_one_name_are_refused() -> None:
    tables = [
        make_table("t", "a date", "ann"),
        make_table("t", "a date", "bob"),
        make_table("ann_t", "a date", "bob"),
    ]
    with pytest.raises(BadOption, match="ann_t"):
        row_schema(tables, DecodeRules())


def test_columns_that_differ_only_in_case_are_refused_because_spark_cannot_tell_them() -> None:
    for columns in ('"_TABLE" integer', '"Id" integer, id integer'):
        with pytest.raises(BadOption, match="ignores case"):
            row_schema([make_table("t", columns)], DecodeRules())


def test_times_are_those_of_the_commit_in_utc() -> None:
    (change,) = changed(RowForm(), order(2, 1), commit(9, 1, DONE))
    assert change["_commit_timestamp"] == datetime.datetime.fromtimestamp(DONE, datetime.UTC)
