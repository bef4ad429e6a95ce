"""Rows of several tables: stored in groups, delivered as if each table had been captured by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.values.test_round_trips import TYPES, has_nulls, with_null
from harness.capture.changed_tables import Change, ChangedTables, numbered, plain_rows
from harness.runs.examples import examples
from harness.runs.tiers import rest_in_all
from informix_capture_client.choices import RowForm
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import grouped_form
from informix_capture_client.shapes.change_columns import tables_in
from informix_checkpoints.spool import (
    SegmentCopies,
    delivered,
    in_row_form,
    stored_range,
)
from informix_checkpoints.spool import delivered_tables as delivering
from informix_checkpoints.spool.segments import rows_between, write_segment
from informix_checkpoints.spool.stored_rows import commits, part, row_count, transaction_rows

FORMS = [
    RowForm(truncate="emit"),
    RowForm(truncate="emit", before_image=False),
    RowForm(shape="envelope", truncate="emit", server="ol_stores"),
    RowForm(shape="envelope", truncate="emit", server="ol_stores", before_image=False),
]
INSERT, DELETE, TRUNCATE = RecordKind.INSERT, RecordKind.DELETE, RecordKind.TRUNCATE


def update(table: int, old: int, new: int) -> list[Change]:
    return [(RecordKind.UPDBEF, table, old), (RecordKind.UPDAFT, table, new)]


@st.composite
def changed_tables(draw: st.DrawFn) -> tuple[ChangedTables, list[list[Change]]]:
    columns, rows = [], []
    for _ in range(draw(st.integers(2, 4))):
        kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
        pairs = {
            f"c{n}": with_null(TYPES[kind]) if has_nulls(kind) else TYPES[kind]
            for n, kind in enumerate(kinds)
        }
        drawn = draw(st.lists(st.fixed_dictionaries(pairs), min_size=1, max_size=3))
        columns.append(", ".join(f"c{n} {kind}" for n, kind in enumerate(kinds)))
        rows.append([{name: pair[0] for name, pair in row.items()} for row in drawn])
    one = st.one_of(
        st.tuples(
            st.sampled_from([INSERT, DELETE, TRUNCATE, RecordKind.UPDAFT]),
            st.integers(0, len(columns) - 1),
        ),
    )
    transactions: list[list[Change]] = []
    for drawn_changes in draw(st.lists(st.lists(one, min_size=1, max_size=6), min_size=1, max_size=5)):
        changes: list[Change] = []
        for kind, table in drawn_changes:
            place = draw(st.integers(0, len(rows[table]) - 1))
            changes += update(table, 0, place) if kind == RecordKind.UPDAFT else [(kind, table, place)]
        transactions.append(changes)
    return ChangedTables(columns, rows), transactions


Told = tuple[Any, ...]
TYPES_OF = {
    INSERT: "insert",
    DELETE: "delete",
    RecordKind.UPDBEF: "update_preimage",
    RecordKind.UPDAFT: "update_postimage",
    TRUNCATE: "truncate",
}


def expected_rows(known: ChangedTables, changes: Sequence[Sequence[Change]]) -> list[Told]:
    return [
        (TYPES_OF[kind], f"t{table}", commit, ordinal, number, image(known, kind, table, place))
        for commit, ordinal, number, (kind, table, place) in numbered(changes)
    ]


def image(known: ChangedTables, kind: RecordKind, table: int, place: int) -> dict[str, Any]:
    row = None if kind == TRUNCATE else known.row(table, place)
    return {f"t{n}": row if n == table else None for n in range(len(known.tables))}


def told_rows(rows: Sequence[dict[str, Any]], tables: int) -> list[Told]:
    return [
        (
            row["_change_type"],
            row["_table"].rpartition(".")[2],
            row["_commit_version"],
            row["_change_ordinal"],
            row["_change_seq"],
            {f"t{n}": row[f"t{n}"] for n in range(tables)},
        )
        for row in rows
    ]


def expected_events(
    known: ChangedTables, changes: Sequence[Sequence[Change]], before: bool
) -> list[Told]:
    found: list[Told] = []
    counted: dict[tuple[int, int], int] = {}
    total, old = {}, None
    for commit, _, number, (kind, table, place) in numbered(changes):
        if kind == RecordKind.UPDBEF:
            old = image(known, kind, table, place)
            continue
        counted[commit, table] = counted.get((commit, table), 0) + 1
        total[commit] = total.get(commit, 0) + 1
        now = image(known, kind, table, place)
        op = {INSERT: "c", DELETE: "d", RecordKind.UPDAFT: "u", TRUNCATE: "t"}[kind]
        images = {
            "c": (None, now),
            "d": (now, None),
            "u": (old if before else None, now),
            "t": (None, None),
        }[op]
        orders = (total[commit], counted[commit, table])
        found.append((op, f"t{table}", str(commit), str(number), *orders, *images))
    return found


def told_events(rows: Sequence[dict[str, Any]]) -> list[Told]:
    return [
        (
            row["op"],
            row["source"]["table"],
            row["source"]["commit_lsn"],
            row["source"]["change_lsn"],
            row["transaction"]["total_order"],
            row["transaction"]["data_collection_order"],
            row["before"],
            row["after"],
        )
        for row in rows
    ]


def through_a_file(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    reader = pa.ipc.open_file(sink.getvalue())
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]


@pytest.mark.parametrize(
    "form", FORMS, ids=["rows", "rows, no before", "envelope", "envelope, no before"]
)
@given(
    drawn=changed_tables(),
    group_rows=st.sampled_from([2, 5, 1000]),
    at_once=st.sampled_from([1, 9, 10**6]),
)
@examples(60, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_what_is_delivered_are_the_changes_in_their_order_each_with_its_tables_row(
    form: RowForm, drawn: tuple[ChangedTables, list[list[Change]]], group_rows: int, at_once: int
) -> None:
    known, changes = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_form, "_ROWS_A_TABLE", group_rows)
        patch.setattr(grouped_form, "BATCH_ROWS", 1)
        patch.setattr(delivering, "_VALUES_AT_ONCE", at_once)
        encoder = known.encoder(form)
        encoded = encoder.encode(known.transactions(changes))
        stored = through_a_file(list(encoded), encoded.schema)
        batches = list(delivered(stored, encoder.schema))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == encoder.schema
    rows = plain_rows(batches)
    if form.shape == "envelope":
        assert told_events(rows) == expected_events(known, changes, form.before_image)
        return
    wanted = expected_rows(known, changes)
    told = told_rows(rows, len(known.tables))
    if not form.before_image:
        wanted = [(*row[:3], None, *row[4:]) for row in wanted if row[0] != "update_preimage"]
        told = [(*row[:3], None, *row[4:]) for row in told]
    assert told == wanted
    assert sum(map(row_count, stored)) == len(rows)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2]], ids=["rows", "envelope"])
@given(drawn=changed_tables(), data=st.data())
@examples(60, HealthCheck.data_too_large, HealthCheck.too_slow)
def test_a_part_of_a_group_is_a_group_of_these_rows_and_a_part_of_a_part_too(
    form: RowForm, drawn: tuple[ChangedTables, list[list[Change]]], data: st.DataObject
) -> None:
    known, changes = drawn
    encoder = known.encoder(form)
    encoded = encoder.encode(known.transactions(changes))
    (group,) = through_a_file(list(encoded), encoded.schema)
    rows, versions = plain_rows([in_row_form(group, encoder.schema)]), commits(group).tolist()
    for _ in range(2):
        first, end = sorted([data.draw(st.integers(0, row_count(group))) for _ in range(2)])
        if first == end:
            return
        (group,) = through_a_file([part(group, first, end)], encoded.schema)
        rows, versions = rows[first:end], versions[first:end]
        assert plain_rows([in_row_form(group, encoder.schema)]) == rows
        assert commits(group).tolist() == versions
        found = transaction_rows([group])
        assert found.commits.tolist() == sorted(set(versions))
        assert found.counts.tolist() == [versions.count(commit) for commit in sorted(set(versions))]


TWO = ChangedTables(
    ["id integer, note varchar(20,0)", "size smallint", "d date"],
    [[{"id": 1, "note": "n"}, {"id": 2, "note": None}], [{"size": 7}], [{"d": None}]],
)


def test_a_segment_names_the_tables_of_its_rows_and_no_others() -> None:
    encoder = TWO.encoder(FORMS[0])
    encoded = encoder.encode(TWO.transactions([[(INSERT, 1, 0)]]))
    assert encoded.schema.names == ["informix_cdc.transactions", "informix_cdc.changes", "t1"]
    assert b"t0" not in b"".join(encoded.schema.metadata.values())
    (group,) = encoded
    (row,) = in_row_form(group, encoder.schema).to_pylist()
    assert (row["t0"], row["t1"], row["t2"]) == (None, {"size": 7}, None)


def test_the_tables_of_transactions_are_known_before_a_row_is_read() -> None:
    (all_of_it,) = TWO.transactions([[(INSERT, 1, 0), (INSERT, 2, 0)]])
    assert tables_in([all_of_it], 3) == [1, 2]


@pytest.mark.parametrize("form", [b"folded", b"grouped"])
def test_a_form_that_this_version_does_not_know_is_refused(form: bytes) -> None:
    metadata = {b"informix_cdc.form": form, b"informix_cdc.form_version": b"2"}
    batch = pa.RecordBatch.from_pydict({"a": [1]}).replace_schema_metadata(metadata)
    with pytest.raises(DataLoss, match="cannot read"):
        row_count(batch)


@pytest.mark.slow
@pytest.mark.parametrize("form", rest_in_all([FORMS[0], FORMS[2]]), ids=["rows", "envelope"])
@pytest.mark.only_in_all
def test_any_range_of_a_segment_of_groups_or_of_its_copy_are_its_rows(
    form: RowForm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped_form, "_ROWS_A_TABLE", 2)
    monkeypatch.setattr(grouped_form, "BATCH_ROWS", 1)
    changes: list[list[Change]] = [
        [(INSERT, n % 3, 0), *update(0, 0, 1), (TRUNCATE, 1, 0), (DELETE, 2, 0)] for n in range(4)
    ]
    encoder = TWO.encoder(form)
    encoded = encoder.encode(TWO.transactions(changes))
    path, copies = tmp_path / "s.arrow", SegmentCopies(tmp_path.as_uri(), "copies")
    segment = write_segment(path, encoded.schema, encoded, Position(999, 1), durable=False)
    (tmp_path / "copies").mkdir()
    segment = copies.put(path, segment)
    count = 5 * 4 if form.shape == "rows" else 4 * 4
    assert (segment.rows, segment.transactions) == (count, 4)
    whole = rows_between(tmp_path, segment, 0, 999)
    rows = plain_rows(list(delivered(stored_range(whole), encoder.schema)))
    assert len(rows) == count
    for first in range(count):
        for end in range(first + 1, count + 1):
            for place in (stored_range, copies.stored_range):
                found = delivered(place(whole.part(first, end)), encoder.schema)
                assert plain_rows(list(found)) == rows[first:end]
