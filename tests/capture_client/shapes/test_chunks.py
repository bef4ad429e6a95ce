"""Rows that a snapshot has read: an INSERT's rows, with what is known of them and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from capture_client.shapes.test_stored_changes import changes_of, through_a_file
from capture_client.values.test_round_trips import EXTREMES, TYPES, has_nulls, with_null
from harness.capture.changed_tables import Change, ChangedTables
from harness.capture.shaped import Shaped, delivery_of, whole
from harness.capture.tables import make_table
from harness.runs.examples import examples
from harness.runs.tiers import rest_in_all
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import BadOption
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import (
    ChangeGroup,
    ChunkRows,
    RangeKind,
    change_count,
    json_rows,
    transaction_counts,
)
from informix_capture_client.shapes.change_columns import BATCH_ROWS
from informix_capture_client.shapes.encoder import EncodedChanges

COMMIT, FIRST, READ_AT = 90_001, 40, 1_700_000_000
READ = datetime.fromtimestamp(READ_AT, UTC)
FORMS = {
    "rows": RowForm(),
    "rows, minimal": RowForm(metadata="minimal"),
    "envelope": RowForm(shape="envelope", server="ol_stores"),
    "envelope, no before": RowForm(shape="envelope", server="ol_stores", before_image=False),
    "json": RowForm(shape="json"),
    "json, minimal": RowForm(shape="json", metadata="minimal"),
}
CASES = list(product(FORMS, (1, 2)))
ALL_TYPES = {f"c{place}": kind for place, kind in enumerate(TYPES)}
WIDE = ", ".join(f"{name} {kind}" for name, kind in ALL_TYPES.items())
NARROW = "id integer, note varchar(20,0)"

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            name: (with_null(TYPES[kind]) if has_nulls(kind) else TYPES[kind]).map(lambda both: both[0])
            for name, kind in ALL_TYPES.items()
        }
    ),
    min_size=1,
    max_size=4,
)


class World:
    """One table, or two of which the second one is read; its rows as changes and as a chunk."""

    def __init__(self, columns: str, rows: Sequence[Mapping[str, Any]], tables: int = 1) -> None:
        others = ["size smallint"] * (tables - 1)
        self.number, self.rows = len(others), rows
        self.known = ChangedTables(
            [*others, columns], [*([{"size": 7}] for _ in others), list(map(dict, rows))]
        )

    def stranger(self, form: RowForm, **others: Any) -> Shaped:
        """Return an encoder to which the stream has announced no table."""
        return Shaped(self.known.tables, DecodeRules(), form, **others)

    def inserted(self, form: RowForm) -> pa.Table:
        """Return the rows of a transaction that inserts them."""
        encoder = self.known.encoder(form)
        return as_delivered(encoder, encoder.encode(self.known.transactions([self.inserts()])))

    def inserts(self) -> list[Change]:
        return [(RecordKind.INSERT, self.number, place) for place in range(len(self.rows))]

    def chunk(self, first: int = FIRST) -> ChunkRows:
        return ChunkRows(self.number, self.known.columns_of(self.number), COMMIT, first, READ_AT)


def as_delivered(encoder: Shaped, encoded: EncodedChanges) -> pa.Table:
    """Return rows as readers get them, by way of a file."""
    stored = through_a_file(list(encoded), encoded.schema)
    batches = list(encoder.delivered(stored))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, encoder.schema)


def metadata_of_rows(table: str, place: int) -> dict[str, Any]:
    return {
        "_change_type": "insert",
        "_commit_version": COMMIT,
        "_commit_timestamp": READ,
        "_change_ordinal": FIRST + place,
        "_change_seq": None,
        "_transaction_id": None,
        "_begin_timestamp": None,
        "_user_id": None,
        "_table": f"stores:informix.{table}",
        "_snapshot": True,
    }


def metadata_of_envelopes(table: str, place: int) -> dict[str, Any]:
    source = {
        "connector": "informix",
        "name": "ol_stores",
        "ts_ms": READ_AT * 1000,
        "snapshot": "true",
        "db": "stores",
        "schema": "informix",
        "table": table,
        "change_lsn": None,
        "commit_lsn": str(COMMIT),
        "begin_lsn": None,
        "txId": None,
    }
    order = {"id": None, "total_order": FIRST + place + 1, "data_collection_order": None}
    return {"source": source, "op": "r", "ts_ms": READ_AT * 1000, "transaction": order}


METADATA: dict[str, Callable[[str, int], dict[str, Any]]] = {
    "rows": metadata_of_rows,
    "json": metadata_of_rows,
    "envelope": metadata_of_envelopes,
}


def require_same_rows(world: World, form: RowForm, found: pa.Table) -> None:
    """Hold the rows of a chunk to those of inserts, and what is known of them to what may be."""
    wanted = world.inserted(form)
    table = f"t{world.number}"
    metadata = [METADATA[form.shape](table, place) for place in range(len(world.rows))]
    about = [name for name in found.schema.names if name in metadata[0]]
    assert found.select(about).to_pylist() == [{name: of[name] for name in about} for of in metadata]
    data = [name for name in found.schema.names if name not in about]
    assert data
    assert found.select(data).equals(wanted.select(data))


@pytest.mark.parametrize(("name", "tables"), rest_in_all(CASES))
@given(rows=ROWS)
@examples(12, HealthCheck.too_slow, HealthCheck.data_too_large)
def test_a_row_of_a_chunk_is_the_row_of_an_insert_but_for_what_is_known_of_it(
    name: str, tables: int, rows: list[dict[str, Any]]
) -> None:
    world, form = World(WIDE, rows, tables), FORMS[name]
    encoder = world.stranger(form)
    require_same_rows(world, form, as_delivered(encoder, encoder.encode_chunk(world.chunk())))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("type_text", EXTREMES)
def test_the_ends_of_a_types_range_are_those_of_an_insert(type_text: str, name: str) -> None:
    values = EXTREMES[type_text]
    world = World(f"a {type_text}", [{"a": value} for value in values], 2)
    encoder = world.stranger(FORMS[name])
    require_same_rows(world, FORMS[name], as_delivered(encoder, encoder.encode_chunk(world.chunk())))


def test_columns_are_in_the_order_of_the_table_and_not_in_that_of_the_stream() -> None:
    """The stream has columns of variable width last, whatever the table says."""
    world = World("note varchar(20,0), id integer", [{"note": "x", "id": 1}, {"note": None, "id": 2}])
    encoder = world.stranger(FORMS["json"])
    texts = as_delivered(encoder, encoder.encode_chunk(world.chunk()))["after"].to_pylist()
    assert texts == ['{"note":"x","id":1}', '{"note":null,"id":2}']


def narrow(count: int, tables: int = 1) -> World:
    rows = [{"id": n, "note": None if n % 3 else f'n "{n}"'} for n in range(count)]
    return World(NARROW, rows, tables)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tables"), rest_in_all(CASES))
def test_places_are_counted_over_all_batches_of_a_chunk(name: str, tables: int) -> None:
    world = narrow(2 * BATCH_ROWS + 5, tables)
    encoder = world.stranger(FORMS[name])
    batches = list(encoder.encode_chunk(world.chunk()))
    assert list(map(change_count, batches)) == [BATCH_ROWS, BATCH_ROWS, 5]
    require_same_rows(world, FORMS[name], as_delivered(encoder, encoder.encode_chunk(world.chunk())))
    found = [tuple(map(list, transaction_counts(batch))) for batch in batches]
    assert found == [([COMMIT], [count]) for count in (BATCH_ROWS, BATCH_ROWS, 5)]


@pytest.mark.parametrize(("name", "tables"), CASES)
def test_any_part_of_a_stored_chunk_is_these_rows_of_it(name: str, tables: int) -> None:
    world = narrow(30, tables)
    encoder = world.stranger(FORMS[name])
    encoded = encoder.encode_chunk(world.chunk())
    (stored,) = through_a_file(list(encoded), encoded.schema)
    rows = whole(encoder.delivery, stored).to_pylist()
    for first, end in ((0, 1), (3, 17), (29, 30)):
        (piece,) = through_a_file([ChangeGroup.of(stored).part(first, end)], encoded.schema)
        assert whole(encoder.delivery, piece).to_pylist() == rows[first:end]


@pytest.mark.parametrize(("name", "tables"), CASES)
def test_a_chunk_of_which_nothing_is_left_has_a_schema_and_no_batch(name: str, tables: int) -> None:
    world = narrow(1, tables)
    one, none = world.chunk(), world.chunk().rows.slice(0, 0)
    encoder = world.stranger(FORMS[name])
    empty = encoder.encode_chunk(ChunkRows(one.number, none, COMMIT, FIRST, READ_AT))
    assert list(empty) == []
    assert empty.schema == encoder.encode_chunk(one).schema


@pytest.mark.parametrize(("name", "tables"), CASES)
def test_rows_that_were_fetched_in_blocks_are_the_same_in_one_batch(name: str, tables: int) -> None:
    world = narrow(50, tables)
    one = world.chunk()
    blocks = pa.concat_tables([one.rows.slice(0, 3), one.rows.slice(3, 1), one.rows.slice(4)])
    assert blocks.column(0).num_chunks == 3
    encoder = world.stranger(FORMS[name])
    chunk = ChunkRows(one.number, blocks, COMMIT, FIRST, READ_AT)
    require_same_rows(world, FORMS[name], as_delivered(encoder, encoder.encode_chunk(chunk)))
    assert len(list(encoder.encode_chunk(chunk))) == 1


def test_of_wide_rows_fewer_are_a_batch() -> None:
    world = World("a lvarchar(32739)", [{"a": "x" * 30_000}] * 700)
    sizes = list(map(change_count, world.stranger(FORMS["rows"]).encode_chunk(world.chunk())))
    assert sum(sizes) == 700
    assert max(sizes) < 300


def test_rows_of_many_columns_become_json_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world, form = narrow(20, 2), FORMS["json"]
    monkeypatch.setattr(json_rows, "_CELLS_AT_ONCE", 7)
    encoder = world.stranger(form)
    require_same_rows(world, form, as_delivered(encoder, encoder.encode_chunk(world.chunk())))


@pytest.mark.parametrize(("name", "tables"), CASES)
def test_a_chunk_between_transactions_changes_nothing_about_them(name: str, tables: int) -> None:
    world = narrow(6, tables)
    changes = [world.inserts(), [(RecordKind.DELETE, 0, 0)]]
    found = []
    for with_chunk in (False, True):
        encoder, rows = world.known.encoder(FORMS[name]), []
        for one in world.known.transactions(changes):
            if with_chunk:
                assert sum(map(change_count, encoder.encode_chunk(world.chunk()))) == 6
            rows.append(as_delivered(encoder, encoder.encode([one])))
        found.append(pa.concat_tables(rows))
    assert found[0].equals(found[1])


@pytest.mark.parametrize("start", [RangeKind.RANGE_START, RangeKind.REPAIR_START])
@pytest.mark.parametrize("shape", ["rows", "json", "arrow", "envelope"])
def test_rows_that_describe_an_interval_come_with_table_events_only(
    shape: Any, start: RangeKind
) -> None:
    """Without table events, rows that are only there to be compared are not delivered."""
    world = narrow(4)
    kinds = [start, RecordKind.INSERT, RangeKind.RANGE_SKIP, RangeKind.RANGE_END]
    chunk = replace(world.chunk(), kind=np.array(kinds))
    all_of_it = list(enumerate([kind.name.lower() for kind in kinds], start=FIRST))
    (one,) = world.stranger(RowForm()).encode_chunk(chunk)
    for events in (True, False) if shape != "envelope" else (False,):
        (stored,) = through_a_file([one], one.schema)
        rows = whole(delivery_of(world.known.tables, RowForm(shape=shape, table_events=events)), stored)
        wanted = all_of_it if events else all_of_it[1:2] * (start == RangeKind.RANGE_START)
        assert places_and_kinds(shape, rows.to_pylist()) == wanted


def places_and_kinds(shape: str, rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    if shape == "envelope":
        return [(row["transaction"]["total_order"] - 1, {"r": "insert"}[row["op"]]) for row in rows]
    changes = (
        [each for row in rows for each in changes_of(row).to_pylist()] if shape == "arrow" else rows
    )
    return [(change["_change_ordinal"], change["_change_type"]) for change in changes]


def test_more_rows_than_can_be_told_apart_are_refused() -> None:
    world = narrow(3)
    encoder = world.stranger(FORMS["rows"])
    last = as_delivered(encoder, encoder.encode_chunk(world.chunk(2**31 - 3)))
    assert last["_change_ordinal"].to_pylist()[-1] == 2**31 - 1
    with pytest.raises(BadOption, match="heartbeatTable"):
        encoder.encode_chunk(world.chunk(2**31 - 2))


IDS, NOTES = pa.array([1], pa.int32()), pa.array(["n"])


@pytest.mark.parametrize(
    "rows",
    [{"id": IDS}, {"note": NOTES, "id": IDS}, {"id": IDS.cast(pa.int64()), "note": NOTES}],
    ids=["fewer", "in another order", "of another type"],
)
def test_rows_with_other_columns_than_their_table_are_refused(rows: dict[str, pa.Array]) -> None:
    chunk = ChunkRows(0, pa.table(rows), COMMIT, FIRST, READ_AT)
    with pytest.raises(ValueError, match=r"stores:informix\.t0 were read as"):
        narrow(1).stranger(FORMS["rows"]).encode_chunk(chunk)


class _NoKeys:
    """An observer that wants no keys of what a snapshot has read."""

    def key_columns(self) -> Mapping[int, Sequence[str]]:
        raise AssertionError("rows of a chunk are no changes")

    touch = truncate = key_columns


def test_a_chunk_shows_no_keys_and_stands_behind_where_its_table_joined() -> None:
    world = narrow(4)
    encoder = world.stranger(FORMS["rows"], since={0: COMMIT}, observer=_NoKeys())
    assert sum(map(change_count, encoder.encode_chunk(world.chunk()))) == 4


def test_a_table_that_shares_its_name_is_stored_under_its_own() -> None:
    tables = [make_table("t", NARROW, owner) for owner in ("ann", "bob")]
    encoder = Shaped(tables, DecodeRules())
    encoded = encoder.encode_chunk(ChunkRows(1, narrow(2).chunk().rows, COMMIT, 0, READ_AT))
    assert encoded.schema.names[3:] == ["stores:bob.t"]
    found = as_delivered(encoder, encoded)
    assert found["ann_t"].null_count == 2
    assert found["bob_t"].null_count == 0
