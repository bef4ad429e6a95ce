"""shape=arrow: a row holds changes of one table, typed, with the table's definition."""

from __future__ import annotations

from typing import Any

from capture_client.shapes.test_stored_changes import DELETE, INSERT, TRUNCATE, TWO, changes_of, update
from harness.capture.changed_tables import Change, plain_rows
from harness.capture.shaped import Shaped, delivery_of
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.shapes import DEFINITION, ChunkRows

FORM = RowForm(shape="arrow", truncate="emit", metadata="minimal")


def delivered(form: RowForm, changes: list[Change]) -> list[dict[str, Any]]:
    encoder = TWO.encoder(form)
    return plain_rows(list(encoder.delivered(encoder.encode(TWO.transactions([changes])))))


def test_an_update_is_two_changes_or_one_and_a_truncate_begins_a_row() -> None:
    changes = [(INSERT, 0, 0), *update(0, 0, 1), (TRUNCATE, 0, 0), (INSERT, 1, 0), (DELETE, 0, 1)]
    rows = delivered(FORM, changes)
    assert [(row["_table"], row["truncates"], row["changes"]) for row in rows] == [
        ("stores:informix.t0", False, 3),
        ("stores:informix.t0", True, 2),
        ("stores:informix.t1", False, 1),
    ]
    (row, *_) = delivered(RowForm(shape="arrow", before_image=False), changes)
    kinds = changes_of(row)["_change_type"].to_pylist()
    assert kinds == ["insert", "update_postimage", "delete"]


def test_the_delivered_schema_is_the_same_for_every_set_of_tables() -> None:
    schemas = [delivery_of(TWO.tables[:count], FORM).schema for count in (1, 2, 3)]
    assert schemas[0] == schemas[1] == schemas[2]


def test_rows_of_a_snapshot_are_marked_and_carry_the_definition_of_their_table() -> None:
    encoder = Shaped(TWO.tables, DecodeRules(), FORM, definitions=["zero", "one", "two"])
    chunk = ChunkRows(1, TWO.columns_of(1), commit=900, first_ordinal=3, read_at=1_700_000_000)
    (row,) = plain_rows(list(encoder.delivered(encoder.encode_chunk(chunk))))
    assert (row["_snapshot"], row["_commit_version"], row["_change_ordinal"]) == (True, 900, 3)
    changes = changes_of(row)
    assert changes["row"].to_pylist() == [TWO.row(1, 0)]
    assert changes.schema.metadata == {DEFINITION: b"one"}
    beginning = encoder.encode_beginning(1, 900, 2, 1_700_000_000)
    (truncate,) = plain_rows(list(encoder.delivered(beginning)))
    assert truncate["truncates"]
    assert changes_of(truncate)["row"].type == changes["row"].type


def test_metadata_full_has_the_columns_of_the_other_shapes() -> None:
    (row,) = delivered(RowForm(shape="arrow"), [(INSERT, 1, 0)])
    (change,) = changes_of(row).to_pylist()
    assert change["_change_type"] == "insert"
    assert (change["_transaction_id"], change["_change_seq"], change["_user_id"]) == (1, 2, 501)
