"""Every shape through the reader: stored, found again by commit, delivered as its schema says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.told import told
from harness.servers.stores import (
    ORDERS,
    Workload,
    listening_stores,
    order_row,
    source_options,
)
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.spark.reader import _MICROSECONDS_A_VALUE, InformixStreamReader
from informix_cdc.spark.schema import to_spark


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening


def schema_of(port: int, **changes: str) -> pa.Schema:
    return look_up_tables(SourceOptions.parse(source_options(port, **changes))).schema()


def batches_of(made: InformixStreamReader, start: Offset, end: Offset) -> list[pa.RecordBatch]:
    return [batch for part in made.partitions(start, end) for batch in made.read(part)]


@pytest.mark.parametrize("shape", ["rows", "envelope", "json", "arrow"])
@pytest.mark.only_in_all
def test_what_is_read_has_exactly_the_declared_schema(served: Served, shape: str) -> None:
    server, listening = served
    with reader(listening.port, shape=shape) as made:
        start = anchor_of(made)
        insert(server, 1, 2)
        end = next_offset(made, start)
        expected = schema_of(listening.port, shape=shape)
        assert {str(batch.schema) for batch in batches_of(made, start, end)} == {str(expected)}


@pytest.mark.only_in_all
def test_envelopes_are_found_again_by_commit_in_any_range(served: Served, tmp_path: Path) -> None:
    server, listening = served
    kept = {"shape": "envelope", "spoolPath": str(tmp_path)}
    with reader(listening.port, **kept) as made:
        start = anchor_of(made)
        insert(server, 1, 2)
        between = next_offset(made, start)
        insert(server, 3)
        end = next_offset(made, between)
        halves = [*rows_of(made, start, between), *rows_of(made, between, end)]
        assert rows_of(made, start, end) == halves
    assert [row["after"]["order_num"] for row in halves] == [1, 2, 3]
    with reader(listening.port, **kept) as again:
        assert rows_of(again, start, between) + rows_of(again, between, end) == halves


@pytest.mark.slow
@pytest.mark.only_in_all
def test_envelopes_hold_the_same_changes_as_rows(served: Served) -> None:
    server, listening = served
    with reader(listening.port) as plain, reader(listening.port, shape="envelope") as enveloped:
        plain_start, start = anchor_of(plain), anchor_of(enveloped)
        work = Workload(server, seed=3)
        work.run(150)
        commit = work.committed[-1].commit
        rows, _ = drained(plain, plain_start, commit)
        envelopes, _ = drained(enveloped, start, commit)
    images = {"c": ["after"], "d": ["before"], "u": ["before", "after"]}
    names = {"before": ("delete", "update_preimage"), "after": ("insert", "update_postimage")}
    shown = [
        (image, change[image], int(change["source"]["change_lsn"]))
        for change in envelopes
        for image in images[change["op"]][-1:]
    ]
    columns = ["order_num", "customer_num", "note", "amount"]
    expected = [
        (
            next(image for image, kinds in names.items() if row["_change_type"] in kinds),
            {name: row[name] for name in columns},
            row["_change_seq"],
        )
        for row in rows
        if row["_change_type"] != "update_preimage"
    ]
    assert [(i, {n: r[n] for n in columns}, s) for i, r, s in shown] == expected


def test_without_before_images_only_the_new_row_of_an_update_comes(served: Served) -> None:
    server, listening = served
    with reader(listening.port, beforeImage="false") as made:
        start = anchor_of(made)
        insert(server, 1)
        transaction = server.begin()
        old, new = order_row((1, 1, "note", None)), order_row((1, 1, "new", None))
        transaction.update(ORDERS, old, new)
        rows, _ = drained(made, start, transaction.commit())
    assert [(row["_change_type"], row["note"]) for row in rows] == [
        ("insert", "note"),
        ("update_postimage", "new"),
    ]


OTHER_FORMS = [{"shape": "envelope"}, {"beforeImage": "false"}, {"truncate": "ignore"}]


def files_in(spool: Path) -> dict[Path, int]:
    """Return the segments of a spool, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in spool.rglob("*.arrow")}


@pytest.mark.slow
@pytest.mark.parametrize("changes", OTHER_FORMS, ids=str)
def test_stored_changes_become_other_rows_unless_they_are_planned(
    served: Served, tmp_path: Path, changes: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """A planned batch runs again with the rows that it had; the next one may have others."""
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path)) as made:
        start = anchor_of(made)
        insert(server, 1, 2)
        planned = next_offset(made, start)
        assert numbers(rows_of(made, start, planned)) == [1, 2]
        stored = files_in(tmp_path)
    with reader(listening.port, spoolPath=str(tmp_path), **changes) as made:
        error = failure_of(lambda: made.partitions(start, planned))
    assert isinstance(error, BadOption)
    assert "Run the query once with the previous options" in str(error)
    caplog.clear()
    with reader(listening.port, spoolPath=str(tmp_path), **changes) as made:
        again = next_offset(made, start)
        assert len(rows_of(made, start, again)) == 2
        assert again["form"] != planned["form"]
        assert files_in(tmp_path) == stored  # nothing was captured again
    (told_once,) = told(caplog, "row_form_changed")
    assert (told_once["former"], told_once["now"]) == (planned["form"], again["form"])


@pytest.mark.slow
@pytest.mark.parametrize(("former", "now"), [("full", "minimal"), ("minimal", "full")])
@pytest.mark.only_in_all
def test_a_planned_batch_runs_again_with_other_metadata_columns_and_the_same_keys(
    served: Served, tmp_path: Path, former: str, now: str
) -> None:
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path), metadata=former) as made:
        start = anchor_of(made)
        insert(server, 1, 2)
        planned = next_offset(made, start)
        first = rows_of(made, start, planned)
    with reader(listening.port, spoolPath=str(tmp_path), metadata=now) as made:
        again = rows_of(made, start, planned)
    both = first[0].keys() & again[0].keys()
    assert [{name: row[name] for name in both} for row in again] == [
        {name: row[name] for name in both} for row in first
    ]
    assert first[0].keys() ^ again[0].keys() == {
        "_change_seq",
        "_transaction_id",
        "_begin_timestamp",
        "_user_id",
        "_table",
        "_snapshot",
    }


def of_tables(count: int, shape: str) -> InformixStreamReader:
    """Return a reader of so many tables of two columns each."""
    tables = ",".join(f"informix.t{number}" for number in range(count))
    options = SourceOptions.parse({**source_options(1), "table": tables, "shape": shape})
    pair = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([(f"t{number}", pair) for number in range(count)])
    return InformixStreamReader(options, to_spark(schema))


def test_many_tables_are_told_with_what_they_cost_and_what_costs_less(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of_tables(20, "rows")._log_cost()
    of_tables(21, "json")._log_cost()
    assert told(caplog, "many_tables") == []
    of_tables(500, "rows")._log_cost()
    (found,) = told(caplog, "many_tables")
    assert (found["shape"], found["tables"], found["values"]) == ("rows", "500", "1000")
    assert found["microseconds"] == str(round(1000 * _MICROSECONDS_A_VALUE))
