"""Stored changes become the same rows of each shape, however their groups and files are cut."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise, product, starmap
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.shapes.test_json_shape import read_back
from capture_client.values.test_round_trips import TYPES, has_nulls, with_null
from harness.capture.changed_tables import Change, ChangedTables, numbered, plain_rows
from harness.capture.shaped import delivery_of
from harness.capture.tables import make_table
from harness.runs.examples import examples
from informix_capture_client.choices import RowForm
from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import (
    ChangeGroup,
    arrow_shape,
    change_count,
    json_rows,
    json_shape,
    row_shape,
    stored_changes,
    transaction_counts,
)
from informix_capture_client.shapes.change_columns import tables_in
from informix_checkpoints.spool import SegmentCopies, SegmentRange, stored_range
from informix_checkpoints.spool.segments import transactions_of, write_segment

INSERT, DELETE, TRUNCATE = RecordKind.INSERT, RecordKind.DELETE, RecordKind.TRUNCATE
BEFORE, AFTER = RecordKind.UPDBEF, RecordKind.UPDAFT
FORMS = [
    RowForm(shape=shape, before_image=before, truncate=truncate, server="ol_stores")
    for shape, before, truncate in product(
        ("rows", "envelope", "json", "arrow"), (True, False), ("emit", "ignore")
    )
]
TYPES_OF = {
    INSERT: "insert",
    DELETE: "delete",
    BEFORE: "update_preimage",
    AFTER: "update_postimage",
    TRUNCATE: "truncate",
}
OPERATIONS = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
Row = dict[str, Any]
Drawn = tuple[ChangedTables, list[list[Change]]]


def update(table: int, old: int, new: int) -> list[Change]:
    return [(BEFORE, table, old), (AFTER, table, new)]


@st.composite
def changed_tables(draw: st.DrawFn) -> Drawn:
    columns, rows = [], []
    for _ in range(draw(st.integers(1, 4))):
        types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
        pairs = {
            f"c{n}": with_null(TYPES[text]) if has_nulls(text) else TYPES[text]
            for n, text in enumerate(types)
        }
        drawn = draw(st.lists(st.fixed_dictionaries(pairs), min_size=1, max_size=3))
        columns.append(", ".join(f"c{n} {text}" for n, text in enumerate(types)))
        rows.append([{name: pair[0] for name, pair in row.items()} for row in drawn])
    kinds = st.sampled_from([INSERT, DELETE, TRUNCATE, AFTER])
    one = st.tuples(kinds, st.integers(0, len(columns) - 1))
    transactions: list[list[Change]] = []
    for drawn_changes in draw(st.lists(st.lists(one, min_size=1, max_size=6), min_size=1, max_size=5)):
        changes: list[Change] = []
        for kind, table in drawn_changes:
            place = draw(st.integers(0, len(rows[table]) - 1))
            changes += update(table, 0, place) if kind == AFTER else [(kind, table, place)]
        transactions.append(changes)
    return ChangedTables(columns, rows), transactions


class Delivered(NamedTuple):
    """A change as a row delivers it; `in_table` is its number among those of its table."""

    kind: str
    table: int
    commit: int
    ordinal: int
    number: int
    before: Row | None
    after: Row | None
    in_table: int | None = None


class Expected:
    """What is to be delivered of changes, by the changes alone."""

    def __init__(self, known: ChangedTables, changes: Sequence[Sequence[Change]]) -> None:
        self.known, self.all = known, list(numbered(changes))
        self._rows = {of[1:]: known.row(*of[1:]) for *_, of in self.all}

    def of(self, form: RowForm) -> list[Delivered]:
        joins = form.shape in ("envelope", "json")
        found, counts = list[Delivered](), Counter[tuple[int, int]]()
        old: Row | None = None
        for commit, ordinal, number, (kind, table, place) in self.all:
            row = None if kind == TRUNCATE else self._rows[table, place]
            counts[commit, table] += kind != BEFORE
            old = row if kind == BEFORE else old
            if kind == TRUNCATE and form.truncate != "emit":
                continue
            if kind == BEFORE and (joins or not form.before_image):
                continue
            name, before, after = TYPES_OF[kind], None, row
            if joins and kind == AFTER:
                name, before = "update", old if form.before_image else None
            elif joins and kind == DELETE:
                before, after = row, None
            in_table = counts[commit, table] if form.shape == "envelope" else None
            found.append(Delivered(name, table, commit, ordinal, number, before, after, in_table))
        return sorted(found, key=table_of) if form.shape == "arrow" else found


def table_of(change: Delivered) -> int:
    return change.table


def number_of(table: str) -> int:
    assert table.startswith("stores:informix.t")
    return int(table.removeprefix("stores:informix.t"))


def image(known: ChangedTables, values: Row, table: int) -> Row | None:
    """Return the row of a table among delivered columns; those of others are NULL."""
    if len(known.tables) == 1:
        return {column.name: values[column.name] for column in known.tables[0].columns}
    assert all(values[f"t{n}"] is None for n in range(len(known.tables)) if n != table)
    return values[f"t{table}"]  # type: ignore[no-any-return]


def from_change(change: Row, table: int, before: Row | None, after: Row | None) -> Delivered:
    numbers = ("_commit_version", "_change_ordinal", "_change_seq")
    return Delivered(change["_change_type"], table, *(change[name] for name in numbers), before, after)


def from_rows(known: ChangedTables, rows: list[Row]) -> Iterator[Delivered]:
    for row in rows:
        table = number_of(row["_table"])
        found = image(known, row, table)
        if row["_change_type"] == "truncate":
            assert found is None or set(found.values()) == {None}
            found = None
        yield from_change(row, table, None, found)


def from_envelopes(known: ChangedTables, rows: list[Row]) -> Iterator[Delivered]:
    for row in rows:
        source, order = row["source"], row["transaction"]
        table = number_of("{db}:{schema}.{table}".format(**source))
        images = (row[name] and image(known, row[name], table) for name in ("before", "after"))
        yield Delivered(
            OPERATIONS[row["op"]],
            table,
            int(source["commit_lsn"]),
            order["total_order"] - 1,
            int(source["change_lsn"]),
            *images,
            order["data_collection_order"],
        )


def from_texts(known: ChangedTables, rows: list[Row]) -> Iterator[Delivered]:
    for row in rows:
        table = number_of(row["_table"])
        schema = known.columns_of(table).schema
        yield from_change(row, table, *(read_back(row[name], schema) for name in ("before", "after")))


def changes_of(row: Row) -> pa.Table:
    return pa.ipc.open_stream(row["arrow"]).read_all()


def from_arrow(known: ChangedTables, rows: list[Row]) -> Iterator[Delivered]:
    found = list[Delivered]()
    for row in rows:
        changes = changes_of(row).to_pylist()
        first, last = changes[0], changes[-1]
        named = {name: row[name] for name in ("_commit_version", "_change_ordinal", "_snapshot")}
        assert named == {name: first[name] for name in named}
        assert row["_last_commit_version"] == last["_commit_version"]
        assert row["_last_commit_timestamp"] == last["_commit_timestamp"]
        assert row["changes"] == len(changes)
        is_truncate = [each["_change_type"] == "truncate" for each in changes]
        assert is_truncate == [row["truncates"], *[False] * (len(changes) - 1)]
        table = number_of(row["_table"])
        found += [from_change(each, table, None, each["row"]) for each in changes]
    return iter(sorted(found, key=table_of))


FROM_ROWS_OF: dict[str, Callable[[ChangedTables, list[Row]], Iterator[Delivered]]] = {
    "rows": from_rows,
    "envelope": from_envelopes,
    "json": from_texts,
    "arrow": from_arrow,
}


def require_every_shape(
    wanted: Expected, stored: Callable[[RowForm], Iterable[pa.RecordBatch]]
) -> None:
    """Hold what each form makes of stored changes to what is expected."""
    for form in FORMS:
        delivery = delivery_of(wanted.known.tables, form)
        batches = list(delivery.rows(stored(form)))
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema == delivery.schema
        assert list(FROM_ROWS_OF[form.shape](wanted.known, plain_rows(batches))) == wanted.of(form)


def through_a_file(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    reader = pa.ipc.open_file(sink.getvalue())
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]


@contextmanager
def small(group_rows: int, at_once: int = 10**6) -> Iterator[None]:
    """Let a group have so many changes a table, and make so many rows, values or cells at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_changes, "_ROWS_A_TABLE", group_rows)
        patch.setattr(stored_changes, "BATCH_ROWS", 1)
        patch.setattr(row_shape, "_VALUES_AT_ONCE", at_once)
        patch.setattr(json_shape, "_ROWS_AT_ONCE", at_once)
        patch.setattr(json_rows, "_CELLS_AT_ONCE", at_once)
        patch.setattr(arrow_shape, "_MOST_CHANGES", at_once)
        yield


def stored(drawn: Drawn) -> list[pa.RecordBatch]:
    known, changes = drawn
    encoded = known.encoder(RowForm()).encode(known.transactions(changes))
    return through_a_file(list(encoded), encoded.schema)


DRAWN, GROUP_ROWS = changed_tables(), st.sampled_from([4, 7, 1000])


@given(DRAWN, GROUP_ROWS, st.sampled_from([1, 9, 10**6]))
@examples(60, HealthCheck.data_too_large)
def test_one_segment_serves_every_shape_with_the_changes_in_their_order(
    drawn: Drawn, group_rows: int, at_once: int
) -> None:
    with small(group_rows, at_once):
        batches = stored(drawn)
        require_every_shape(Expected(*drawn), lambda _: batches)


CUTS = st.sets(st.integers(1, 60))


def cut(batches: Iterable[pa.RecordBatch], cuts: Iterable[int], form: RowForm) -> list[pa.RecordBatch]:
    """Cut batches into parts; not between the images of an update that is one row."""
    parts, at = list[pa.RecordBatch](), 0
    for group in map(ChangeGroup.of, batches):
        bounds = {place - at for place in cuts if 0 < place - at < len(group)}
        if form.joins_images:
            bounds = {place for place in bounds if group.kinds[place] != stored_changes.AFTER}
        parts += starmap(group.part, pairwise(sorted({*bounds, 0, len(group)})))
        at += len(group)
    return parts


@given(DRAWN, GROUP_ROWS, CUTS, CUTS)
@examples(60, HealthCheck.data_too_large)
def test_parts_of_groups_and_parts_of_these_become_the_same_rows(
    drawn: Drawn, group_rows: int, cuts: set[int], more_cuts: set[int]
) -> None:
    wanted = Expected(*drawn)
    with small(group_rows):
        batches = stored(drawn)
        require_every_shape(wanted, lambda form: cut(cut(batches, cuts, form), more_cuts, form))
    parts = through_a_file(cut(cut(batches, cuts, RowForm()), more_cuts, RowForm()), batches[0].schema)
    commits = [commit for commit, *_ in wanted.all]
    for part in parts:
        mine, commits = commits[: change_count(part)], commits[change_count(part) :]
        found = dict(zip(*map(list, transaction_counts(part)), strict=True))
        assert found == {commit: mine.count(commit) for commit in mine}
    assert commits == []


@given(DRAWN, GROUP_ROWS, CUTS)
@examples(60, HealthCheck.data_too_large)
def test_ranges_of_a_segment_have_each_change_once_even_if_they_cut_an_update(
    drawn: Drawn, group_rows: int, cuts: set[int]
) -> None:
    (known, changes), wanted = drawn, Expected(*drawn)
    commits, truncates = [commit for commit, *_ in wanted.all], sum(map(is_truncate, wanted.all))
    with tempfile.TemporaryDirectory() as folder, small(group_rows):
        path = Path(folder) / "s.arrow"
        encoded = known.encoder(RowForm()).encode(known.transactions(changes))
        one = write_segment(path, encoded.schema, encoded, Position(commits[-1], 1), durable=False)
        assert (one.rows, one.transactions, one.truncates) == (len(commits), len(changes), truncates)
        assert one.first_commit == commits[0]
        found = transactions_of(path.parent, one)
        assert found.commits.tolist() == list(dict.fromkeys(commits))
        assert found.counts.tolist() == list(map(len, changes))
        whole = SegmentRange(str(path), 0, one.rows, one.rows, one.size_bytes, one.checksum)
        bounds = pairwise(sorted({*(place for place in cuts if place < one.rows), 0, one.rows}))
        ranges = list(starmap(whole.part, bounds))
        require_every_shape(
            wanted,
            lambda form: chain.from_iterable(
                stored_range(each, whole_updates=form.joins_images) for each in ranges
            ),
        )
        copies = SegmentCopies(path.parent.as_uri(), "copies")
        copies.match(path.parent, [one])
        for each in ranges:
            assert sum(map(change_count, stored_range(each))) == each.end - each.first
            for whole_updates in (True, False):
                of_segment = list(stored_range(each, whole_updates=whole_updates))
                of_copy = list(copies.stored_range(each, whole_updates=whole_updates))
                assert of_segment == of_copy


def is_truncate(change: tuple[int, int, int, Change]) -> bool:
    return change[-1][0] == TRUNCATE


TWO = ChangedTables(
    ["id integer, note varchar(20,0)", "size smallint", "d date"],
    [[{"id": 1, "note": "n"}, {"id": 2, "note": None}], [{"size": 7}], [{"d": None}]],
)


def test_a_segment_names_the_tables_of_its_rows_and_no_others() -> None:
    encoder = TWO.encoder(RowForm())
    encoded = encoder.encode(TWO.transactions([[(INSERT, 1, 0)]]))
    assert encoded.schema.names == ["transactions", "changes", "earlier", "stores:informix.t1"]
    assert b"t0" not in b"".join(encoded.schema.metadata.values())
    (row,) = plain_rows(list(encoder.delivered(encoded)))
    assert (row["t0"], row["t1"], row["t2"]) == (None, {"size": 7}, None)


def test_the_tables_of_transactions_are_known_before_a_row_is_read() -> None:
    (all_of_it,) = TWO.transactions([[(INSERT, 1, 0), (INSERT, 2, 0)]])
    assert tables_in([all_of_it], 3) == [1, 2]


@pytest.mark.parametrize(("name", "value"), [("form", "changes 2"), ("change_types", '["insert"]')])
def test_a_form_that_this_version_does_not_know_is_refused(name: str, value: str) -> None:
    (batch,) = stored((TWO, [[(INSERT, 1, 0)]]))
    metadata = {**batch.schema.metadata, f"informix_cdc.{name}".encode(): value.encode()}
    for known in (metadata, None):
        with pytest.raises(DataLoss, match="cannot read"):
            ChangeGroup.of(batch.replace_schema_metadata(known))


@pytest.mark.parametrize("shape", ["rows", "envelope"])
@pytest.mark.parametrize("tables", [1, 2])
def test_a_column_that_came_after_the_changes_were_stored_is_null(shape: Any, tables: int) -> None:
    others = [make_table("late", "size smallint")][: tables - 1]
    delivery = delivery_of(
        [make_table("t0", "note varchar(20,0), later date, id integer"), *others], RowForm(shape=shape)
    )
    (row,) = plain_rows(list(delivery.rows(stored((TWO, [[(INSERT, 0, 0)]])))))
    found = row if shape == "rows" else row["after"]
    found = found if tables == 1 else found["t0"]
    assert [found[name] for name in ("note", "later", "id")] == ["n", None, 1]


@pytest.mark.parametrize("shape", ["rows", "envelope"])
@pytest.mark.parametrize("tables", [1, 2])
def test_rows_of_a_table_that_is_not_delivered_are_refused(shape: Any, tables: int) -> None:
    delivery = delivery_of(TWO.tables[:tables], RowForm(shape=shape))
    with pytest.raises(DataLoss, match=r"rows of stores:informix\.t2, which option table"):
        list(delivery.rows(stored((TWO, [[(INSERT, 0, 0), (INSERT, 2, 0)]]))))


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("shape", ["rows", "envelope"])
def test_a_column_that_had_another_type_is_refused(shape: Any, tables: int) -> None:
    others = [make_table("late", "size smallint")][: tables - 1]
    delivery = delivery_of([make_table("t0", "id integer, note date"), *others], RowForm(shape=shape))
    with pytest.raises(DataLoss, match=r"rows of stores:informix\.t0 in which column note is string"):
        list(delivery.rows(stored((TWO, [[(INSERT, 0, 0)]]))))


def test_a_flat_reader_refuses_the_rows_of_another_table() -> None:
    with pytest.raises(DataLoss, match=r"rows of stores:informix\.t1, which option table"):
        list(delivery_of(TWO.tables[:1]).rows(stored((TWO, [[(INSERT, 1, 0)]]))))


def test_a_transaction_over_500_tables_is_delivered_in_its_order() -> None:
    known = ChangedTables(["id integer"] * 500, [[{"id": 1}, {"id": 2}]] * 500)
    order = [number * 7 % 500 for number in range(500)]
    changes = [change for table in order for change in update(table, 0, 1)]
    (batch,) = stored((known, [changes]))
    assert transaction_counts(batch)[1].tolist() == [1000]
    for form in (RowForm(), RowForm(shape="json")):
        delivery = delivery_of(known.tables, form)
        tables, ordinals = list[str](), list[int]()
        for rows in delivery.rows(cut([batch], {301, 502}, form)):
            tables += rows.column("_table").to_pylist()
            ordinals += rows.column("_change_ordinal").to_pylist()
        step = 2 if form.joins_images else 1
        assert ordinals == list(range(step - 1, 1000, step))
        assert tables == [f"stores:informix.t{order[ordinal // 2]}" for ordinal in ordinals]
