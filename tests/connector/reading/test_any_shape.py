"""One shared capture serves readers of every shape at once; a reader may change its shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connector.capture.test_requests import LINES, NAME, TABLE, until_answered
from connector.reading.conftest import SharedPlace
from harness.capture.driving import Offset, anchor_of, drained, failure_of, next_offset, rows_of
from harness.capture.snapshots import serving_tables
from harness.servers.stores import CUSTOMERS, ORDERS, listening_stores, order_row
from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.options.source import SourceOptions
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.requests import RESYNC, VERIFY, Request, RequestFolder
from informix_emulator import EmulatedServer, ListeningServer, load_rows

pytestmark = pytest.mark.slow

TABLES = {"table": "informix.orders,informix.customers", "tableEvents": "true"}
SHAPES: dict[str, dict[str, str]] = {
    "rows": {"truncate": "emit"},
    "envelope": {"shape": "envelope", "truncate": "emit"},
    "json": {"shape": "json", "beforeImage": "false", "truncate": "ignore"},
    "arrow": {"shape": "arrow", "truncate": "emit", "tableEvents": "true"},
}
NEW, NEWER = order_row((1, 7, "äö", Decimal("1.50"))), order_row((1, 7, "ü", Decimal("2.50")))
CUSTOMER = {"customer_num": 3, "name": "a", "city": None}


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as found:
        yield found


def change(server: EmulatedServer) -> int:
    with server.transaction() as transaction:
        transaction.insert(ORDERS, NEW)
        transaction.update(ORDERS, NEW, NEWER)
        transaction.insert(CUSTOMERS, CUSTOMER)
    transaction = server.begin()
    transaction.truncate(CUSTOMERS)
    transaction.delete(ORDERS, NEWER)
    return transaction.commit()


def changes_of(shape: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return kind, table and the images of each change; of shape=arrow by table."""
    return [change for row in rows for change in FROM_ROWS_OF[shape](row)]


def from_rows(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    table = row["_table"].rpartition(".")[2]
    yield row["_change_type"], row["_change_ordinal"], table, row[table]


def from_envelope(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    table = row["source"]["table"]
    images = [row[image] and row[image][table] for image in ("before", "after")]
    yield row["op"], row["transaction"]["total_order"] - 1, table, *images


def from_json(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    images = [
        row[image] and json.loads(row[image], parse_float=Decimal) for image in ("before", "after")
    ]
    yield row["_change_type"], row["_change_ordinal"], row["_table"].rpartition(".")[2], *images


def from_arrow(row: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for each in pa.ipc.open_stream(row["arrow"]).read_all().to_pylist():
        table = row["_table"].rpartition(".")[2]
        yield each["_change_type"], each["_change_ordinal"], table, each["row"]


FROM_ROWS_OF = {
    "rows": from_rows,
    "envelope": from_envelope,
    "json": from_json,
    "arrow": from_arrow,
}
OF_ORDERS = [
    ("insert", 0, "orders", NEW),
    ("update_preimage", 1, "orders", NEW),
    ("update_postimage", 2, "orders", NEWER),
]
IN_ROWS = [
    *OF_ORDERS,
    ("insert", 3, "customers", CUSTOMER),
    ("truncate", 0, "customers", None),
    ("delete", 1, "orders", NEWER),
]
EXPECTED = {
    "rows": IN_ROWS,
    "envelope": [
        ("c", 0, "orders", None, NEW),
        ("u", 2, "orders", NEW, NEWER),
        ("c", 3, "customers", None, CUSTOMER),
        ("t", 0, "customers", None, None),
        ("d", 1, "orders", NEWER, None),
    ],
    "json": [
        ("insert", 0, "orders", None, NEW),
        ("update", 2, "orders", None, NEWER),
        ("insert", 3, "customers", None, CUSTOMER),
        ("delete", 1, "orders", NEWER, None),
    ],
    "arrow": IN_ROWS,
}


def test_one_capture_serves_a_mirror_typed_rows_and_json(at: SharedPlace, served: Any) -> None:
    server, listening = served
    with at.capturing(listening.port, **TABLES):
        starts = {shape: begun(at, shape) for shape in SHAPES}
        upto = change(server)
        for shape, start in starts.items():
            with at.reader(shape, **SHAPES[shape]) as made:
                rows, _ = drained(made, start, upto)
            found, wanted = changes_of(shape, rows), EXPECTED[shape]
            if shape == "arrow":  # its rows are of one table each
                found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
            assert found == wanted, shape


def begun(at: SharedPlace, shape: str) -> Offset:
    with at.reader(shape, **SHAPES[shape]) as made:
        return anchor_of(made)


def test_a_reader_changes_its_shape_between_batches(at: SharedPlace, served: Any) -> None:
    server, listening = served
    with at.capturing(listening.port, **TABLES):
        with at.reader(**SHAPES["rows"]) as made:
            start = anchor_of(made)
            _, end = drained(made, start, change(server))
        upto = change(server)
        with at.reader(**SHAPES["json"]) as made:
            rows, _ = drained(made, end, upto)
            assert changes_of("json", rows) == EXPECTED["json"]


def test_a_planned_batch_keeps_its_form(at: SharedPlace, served: Any) -> None:
    server, listening = served
    with at.capturing(listening.port, **TABLES):
        with at.reader(**SHAPES["rows"]) as made:
            start = anchor_of(made)
            upto = change(server)
            planned = next_offset(made, start)
            while planned["commit"] < upto:
                planned = next_offset(made, start)
        with at.reader(**SHAPES["json"]) as made:
            refused = failure_of(lambda: made.partitions(start, planned))
            assert isinstance(refused, BadOption)
            assert "planned with shape=rows" in str(refused)
        with at.reader(**SHAPES["rows"]) as made:
            assert changes_of("rows", rows_of(made, start, planned)) == EXPECTED["rows"]


def test_a_truncate_ends_only_the_reader_that_refuses_it(at: SharedPlace, served: Any) -> None:
    server, listening = served
    with at.capturing(listening.port, **TABLES):
        start = begun(at, "json")
        with at.reader("strict") as strict, at.reader("json", **SHAPES["json"]) as made:
            before = anchor_of(strict)
            upto = change(server)
            rows, end = until_loss(strict, before)
            assert changes_of("rows", rows) == [*OF_ORDERS, ("insert", 3, "customers", CUSTOMER)]
            refused = failure_of(lambda: strict.latestOffset(end, strict.getDefaultReadLimit()))
            assert isinstance(refused, DataLoss)
            assert "customers was truncated" in str(refused)
            assert changes_of("json", drained(made, start, upto)[0]) == EXPECTED["json"]


def until_loss(made: InformixStreamReader, start: Offset) -> tuple[list[dict[str, Any]], Offset]:
    """Return the rows before an error, and their end."""
    rows: list[dict[str, Any]] = []
    while True:
        try:
            end = made.latestOffset(start, made.getDefaultReadLimit())
        except DataLoss:
            return rows, start
        rows += rows_of(made, start, end)
        start = end


@pytest.mark.parametrize("name", ["shape", "beforeImage", "truncate", "metadata"])
def test_options_of_rows_are_no_options_of_the_capture(name: str, at: SharedPlace) -> None:
    value = {"shape": "json", "beforeImage": "false", "truncate": "emit", "metadata": "minimal"}[name]
    refused = failure_of(lambda: at.capturing(1, **{name: value}).__enter__())
    assert isinstance(refused, BadOption)
    assert f"{name} is an option of each reader" in str(refused)
    known = {"captureAt": "/somewhere", "reader": "one", name: value}
    assert SourceOptions.parse(known).shared.capture_at == "/somewhere"


def test_rows_read_again_reach_readers_without_events_unless_they_are_compared(
    at: SharedPlace,
) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(7)])
        source = {"table": "informix.*", "tableEvents": "true", "snapshotChunkRows": "3"}
        with at.capturing(listening.port, **source), at.reader(shape="json") as made:
            start = anchor_of(made)
            folder = RequestFolder(at.folder / start["stream"])
            for kind in (VERIFY, RESYNC):
                request = Request(kind=kind, tables=(TABLE,))
                folder.submit(request)
                rows, start, answer = until_answered(made, folder, request, start)
                assert answer.rows == {TABLE: 7}
                seen = [(row["_change_type"], row["_snapshot"]) for row in rows]
                assert seen == ([] if kind == VERIFY else [("insert", True)] * 7)
