"""Shapes: the same changes as rows, and as Debezium's envelope."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from harness.capture.shaped import Shaped, delivery_of
from harness.capture.streams import begin, blocks, commit, feed_chunks, in_chunks, row, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind, TableSchema
from informix_capture_client.shapes.change_columns import BATCH_ROWS
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions

COLUMNS = "id integer, note varchar(20,0)"
BEFORE, AFTER = RecordKind.UPDBEF, RecordKind.UPDAFT
BEGUN, DONE = 1_700_000_000, 1_700_000_005
ENVELOPE = RowForm(shape="envelope", truncate="emit", server="ol_stores")


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


TABLES = [make_table("orders", COLUMNS), make_table("sizes", "size smallint")]


def encoder(row_form: RowForm, tables: int = 1) -> Shaped:
    made = Shaped(TABLES[:tables], DecodeRules(), row_form)
    made.announce(TableSchema(0, 4, 1, 1, COLUMNS))
    if tables > 1:
        made.announce(TableSchema(1, 2, 1, 0, "size smallint"))
    return made


def changed(
    row_form: RowForm, *records: bytes, tables: int = 1, chunk: int = 1 << 20
) -> list[dict[str, Any]]:
    assembler = TransactionAssembler(Position(0, 0))
    stream = b"".join([begin(1, 1, BEGUN, 501), *records])
    events = [e for block in blocks(in_chunks(stream, chunk)) for e in assembler.feed(block)]
    made = encoder(row_form, tables)
    encoded = made.encode([e for e in events if isinstance(e, CommittedTransactions)])
    stored = list(encoded)
    batches = list(made.delivered(stored))
    for schema, of in ((encoded.schema, stored), (made.schema, batches)):
        for batch in of:
            batch.validate(full=True)
            assert batch.schema.equals(schema, check_metadata=True)
    if row_form.shape == "rows" and row_form.before_image:  # rows of these are not picked from others
        stored += batches
    assert not any(has_idle_bitmap(column) for batch in stored for column in batch.columns)
    return [change for batch in batches for change in batch.to_pylist()]


def has_idle_bitmap(column: pa.Array) -> bool:
    """Tell whether there is a validity bitmap, here or further in, where nothing is NULL."""
    if pa.types.is_list(column.type):
        return has_idle_bitmap(column.flatten())
    children = column.flatten() if pa.types.is_struct(column.type) else []
    is_idle = column.buffers()[0] is not None and not column.null_count
    return is_idle or (not column.null_count and any(map(has_idle_bitmap, children)))


# beforeImage


def test_without_before_images_an_update_is_one_row_at_the_place_of_its_second_image() -> None:
    records = [order(2, 1), update(3, 1, 2), order(5, 2, kind=RecordKind.DELETE), commit(9, 1, DONE)]
    found = changed(RowForm(before_image=False), *records)
    assert [(c["_change_type"], c["id"], c["_change_ordinal"]) for c in found] == [
        ("insert", 1, 0),
        ("update_postimage", 2, 2),
        ("delete", 2, 3),
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
    seconds = [*range(shift), *range(shift + 1, shift + 2 * updates, 2)]
    assert [c["_change_ordinal"] for c in found] == seconds
    assert [c["id"] for c in found[shift:]] == [n + 1 for n in range(updates)]
    whole = changed(RowForm(), *records, chunk=chunk)
    assert [c["_change_ordinal"] for c in whole] == list(range(2 * updates + shift))
    enveloped = changed(ENVELOPE, *records, chunk=chunk)
    orders = [c["transaction"] for c in enveloped]
    assert [order["total_order"] - 1 for order in orders] == seconds
    assert [order["data_collection_order"] for order in orders] == list(range(1, updates + shift + 1))
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
        "transaction": {"id": "1", "total_order": 2, "data_collection_order": 1},
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
        ("orders", "1", "1", 4, 2),
        ("sizes", "1", "1", 5, 2),
        ("sizes", "2", "2", 1, 1),
        ("orders", "2", "2", 2, 1),
    ]
    assert [c["after"] for c in found[1:3]] == [
        {"orders": None, "sizes": {"size": 8}},
        {"orders": {"id": 2, "note": "n2"}, "sizes": None},
    ]
    assert found[2]["before"] == {"orders": {"id": 1, "note": "n1"}, "sizes": None}


# schemas


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("shape", ["rows", "envelope", "json", "arrow"])
def test_a_schema_depends_on_options_and_catalog_only(shape: Any, tables: int) -> None:
    row_form = RowForm(shape=shape, truncate="emit")
    for records in ([order(2, 1)], [order(2, 1, kind=RecordKind.DELETE)], [truncate(2, 1, 0)]):
        assert changed(row_form, *records, commit(9, 1, DONE), tables=tables)  # checks the schema


def test_no_column_of_a_table_can_collide_with_those_of_an_envelope() -> None:
    table = make_table("orders", "before integer, _commit_version integer")
    schema = delivery_of([table], ENVELOPE).schema
    assert schema.field("before").type == pa.struct(
        [("before", pa.int32()), ("_commit_version", pa.int32())]
    )


@pytest.mark.parametrize("name", ["My Table", "my.table", 'q"q', "a:b"])
def test_names_that_are_not_plain_are_delivered_as_they_are(name: str) -> None:
    """Not as people have to write them, which is in double quotes."""
    tables = [make_table(name, "size smallint", "An.N"), TABLES[0]]
    assert delivery_of(tables).schema.names[:2] == [name, "orders"]
    made = Shaped(tables[:1], DecodeRules(), ENVELOPE)
    made.announce(TableSchema(0, 2, 1, 0, "size smallint"))
    stream = begin(1, 1, BEGUN, 501) + row(2, 1, b"\0\1") + commit(9, 1, DONE)
    (found,) = feed_chunks(TransactionAssembler(Position(0, 0)), [stream])
    assert isinstance(found, CommittedTransactions)
    (batch,) = made.delivered(made.encode([found]))
    source = batch["source"][0].as_py()
    assert [source[part] for part in ("db", "schema", "table")] == ["stores", "An.N", name]


def test_struct_columns_that_would_still_have_one_name_are_refused() -> None:
    tables = [
        make_table("t", "a date", "ann"),
        make_table("t", "a date", "bob"),
        make_table("ann_t", "a date", "bob"),
    ]
    with pytest.raises(BadOption, match="ann_t"):
        delivery_of(tables)


def test_columns_that_differ_only_in_case_are_refused_because_spark_cannot_tell_them() -> None:
    for columns in ('"_TABLE" integer', '"Id" integer, id integer'):
        with pytest.raises(BadOption, match="ignores case"):
            delivery_of([make_table("t", columns)])


def test_times_are_those_of_the_commit_in_utc() -> None:
    (change,) = changed(RowForm(), order(2, 1), commit(9, 1, DONE))
    assert change["_commit_timestamp"] == datetime.datetime.fromtimestamp(DONE, datetime.UTC)
