"""shape=arrow: a row holds changes of one table, typed, with what the table looks like."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.shapes.test_groups import (
    DELETE,
    INSERT,
    TRUNCATE,
    TWO,
    TYPES_OF,
    changed_tables,
    through_a_file,
    update,
)
from harness.capture.changed_tables import Change, ChangedTables, numbered, plain_rows
from harness.runs.examples import examples
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import ChunkRows, grouped_form
from informix_capture_client.shapes.row_forms import row_schema
from informix_checkpoints.spool import arrow_pieces as pieces
from informix_checkpoints.spool import delivered
from informix_checkpoints.spool.stored_rows import part, row_count

FORM = RowForm(shape="arrow", truncate="emit", metadata="minimal")
Told = tuple[Any, ...]


def changes_of(row: dict[str, Any]) -> pa.Table:
    return pa.ipc.open_stream(row["arrow"]).read_all()


def told(batches: Sequence[pa.RecordBatch]) -> dict[str, list[Told]]:
    """Return the changes of each table, in the order of delivered rows."""
    found: dict[str, list[Told]] = {}
    for row in plain_rows(batches):
        changes = changes_of(row).to_pylist()
        assert len(changes) == row["changes"] > 0
        places = [(each["_commit_version"], each["_change_ordinal"]) for each in changes]
        assert places[0] == (row["_commit_version"], row["_change_ordinal"])
        assert places == sorted(places)
        assert changes[-1]["_commit_version"] == row["_last_commit_version"]
        assert changes[-1]["_commit_timestamp"] == row["_last_commit_timestamp"]
        is_truncate = [each["_change_type"] == "truncate" for each in changes]
        assert is_truncate == [row["truncates"], *[False] * (len(changes) - 1)]
        found.setdefault(row["_table"].rpartition(".")[2], []).extend(
            (each["_change_type"], *place, each["row"])
            for each, place in zip(changes, places, strict=True)
        )
    return found


def expected(known: ChangedTables, changes: Sequence[Sequence[Change]]) -> dict[str, list[Told]]:
    rows = sorted(
        (
            (f"t{table}", TYPES_OF[kind], commit, ordinal, kind, table, place)
            for commit, ordinal, _, (kind, table, place) in numbered(changes)
        ),
        key=lambda row: (row[0], row[2], row[3]),
    )
    return {
        name: [
            (kind, commit, ordinal, None if code == TRUNCATE else known.row(table, place))
            for _, kind, commit, ordinal, code, table, place in of
        ]
        for name, of in groupby(rows, key=lambda row: row[0])
    }


@given(
    drawn=changed_tables(),
    group_rows=st.sampled_from([2, 5, 1000]),
    at_once=st.sampled_from([1, 3, 10**6]),
    data=st.data(),
)
@examples(60, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_a_table_gets_its_changes_in_their_order_however_groups_are_cut(
    drawn: tuple[ChangedTables, list[list[Change]]], group_rows: int, at_once: int, data: st.DataObject
) -> None:
    known, changes = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_form, "_ROWS_A_TABLE", group_rows)
        patch.setattr(grouped_form, "BATCH_ROWS", 1)
        patch.setattr(pieces, "_MOST_CHANGES", at_once)
        encoder = known.encoder(FORM)
        encoded = encoder.encode(known.transactions(changes))
        stored = through_a_file(list(encoded), encoded.schema)
        cuts = [data.draw(st.integers(0, row_count(group))) for group in stored]
        parts = [
            part(group, first, end)
            for group, cut in zip(stored, cuts, strict=True)
            for first, end in ((0, cut), (cut, row_count(group)))
            if end > first
        ]
        batches = list(delivered(parts, encoder.schema))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == encoder.schema
    assert told(batches) == expected(known, changes)


def test_an_update_is_two_changes_or_one_and_a_truncate_begins_a_row() -> None:
    changes = [[(INSERT, 0, 0), *update(0, 0, 1), (TRUNCATE, 0, 0), (INSERT, 1, 0), (DELETE, 0, 1)]]
    encoder = TWO.encoder(FORM)
    batches = list(delivered(encoder.encode(TWO.transactions(changes)), encoder.schema))
    assert [(row["_table"], row["truncates"], row["changes"]) for row in plain_rows(batches)] == [
        ("stores:informix.t0", False, 3),
        ("stores:informix.t0", True, 2),
        ("stores:informix.t1", False, 1),
    ]
    one = TWO.encoder(RowForm(shape="arrow", truncate="emit", before_image=False))
    (row, *_) = plain_rows(list(delivered(one.encode(TWO.transactions(changes)), one.schema)))
    kinds = changes_of(row)["_change_type"].to_pylist()
    assert kinds == ["insert", "update_postimage"]


def test_the_delivered_schema_is_the_same_for_every_set_of_tables_and_one_table_is_no_exception() -> (
    None
):
    schemas = [row_schema(TWO.tables[:count], DecodeRules(), FORM) for count in (1, 2, 3)]
    assert schemas[0] == schemas[1] == schemas[2]
    encoder = ChangedTables(["id integer"], [[{"id": 1}]]).encoder(FORM)
    known = ChangedTables(["id integer"], [[{"id": 1}]])
    batches = list(delivered(encoder.encode(known.transactions([[(INSERT, 0, 0)]])), encoder.schema))
    assert told(batches) == expected(known, [[(INSERT, 0, 0)]])


def test_rows_that_a_snapshot_has_read_say_so_and_carry_the_definition_of_their_table() -> None:
    known = TWO
    encoder = known.encoder(FORM)
    encoder._tables.definitions = ["zero", "one", "two"]
    chunk = ChunkRows(1, known.columns_of(1), commit=900, first_ordinal=3, read_at=1_700_000_000)
    (row,) = plain_rows(list(delivered(encoder.encode_chunk(chunk), encoder.schema)))
    assert (row["_snapshot"], row["_commit_version"], row["_change_ordinal"]) == (True, 900, 3)
    changes = changes_of(row)
    assert changes["row"].to_pylist() == [known.row(1, 0)]
    assert changes.schema.metadata == {pieces.DEFINITION: b"one"}
    (truncate,) = plain_rows(
        list(delivered(encoder.encode_beginning(1, 900, 2, 1_700_000_000), encoder.schema))
    )
    assert truncate["truncates"]
    assert changes_of(truncate)["row"].type == changes["row"].type


def test_metadata_full_has_the_columns_of_the_other_shapes() -> None:
    encoder = TWO.encoder(RowForm(shape="arrow"))
    (row,) = plain_rows(
        list(delivered(encoder.encode(TWO.transactions([[(INSERT, 1, 0)]])), encoder.schema))
    )
    (change,) = changes_of(row).to_pylist()
    assert change["_transaction_id"] == 1
    assert (change["_change_seq"], change["_user_id"]) == (2, 501)
    assert RecordKind.INSERT.name.lower() == change["_change_type"]
