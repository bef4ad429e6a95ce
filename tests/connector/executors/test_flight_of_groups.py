"""Rows of several tables over Flight: groups, and parts of groups, arrive as the file has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import flight

from connector.executors.served_folder import STREAM, ServedFolder
from harness.capture.changed_tables import Change, ChangedTables, plain_rows
from harness.capture.driving import Served, anchor_of, drained, reader
from harness.capture.shaped import Shaped
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.stores import CUSTOMERS, ORDERS, order_row
from informix_capture_client.choices import RowForm
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes import change_count, stored_changes
from informix_cdc.executors import flight_client
from informix_cdc.executors.flight_client import fetched_range
from informix_cdc.executors.flight_protocol import ticket_of
from informix_checkpoints.spool import SegmentRange, Spool, stored_range

TABLES = ChangedTables(
    ["id integer, note varchar(20,0)", "size smallint", "d date"],
    [[{"id": 1, "note": "n"}, {"id": 2, "note": None}], [{"size": 7}], [{"d": None}]],
)
CHANGES: list[list[Change]] = [
    [
        (RecordKind.INSERT, n % 3, 0),
        (RecordKind.UPDBEF, 0, 0),
        (RecordKind.UPDAFT, 0, 1),
        (RecordKind.TRUNCATE, 1, 0),
        (RecordKind.DELETE, 2, 0),
    ]
    for n in range(7)
]


@pytest.fixture(params=rest_in_all(["json", "rows", "envelope"]))
def encoder(request: pytest.FixtureRequest) -> Shaped:
    return TABLES.encoder(RowForm(shape=request.param, truncate="emit", server="ol_stores"))


@pytest.fixture
def spool(tmp_path: Path, encoder: Shaped, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spool]:
    """A spool of one segment of some groups."""
    monkeypatch.setattr(stored_changes, "_ROWS_A_TABLE", 4)
    monkeypatch.setattr(stored_changes, "BATCH_ROWS", 1)
    made = Spool(tmp_path / "spool", "s1", "src", Position(0, 0), durable=False)
    encoded = encoder.encode(TABLES.transactions(CHANGES))
    made.append(encoded.schema, encoded, Position(999, 999))
    yield made
    made.close()


@pytest.fixture
def server(spool: Spool) -> Iterator[ServedFolder]:
    made = ServedFolder(spool.folder)
    yield made
    made.shutdown()


def whole(spool: Spool) -> SegmentRange:
    [found] = spool.between((0, 0), (999, 0))
    return found


@pytest.mark.parametrize("piece_bytes", [1, 1000, 8 << 20])
@pytest.mark.parametrize(
    ("first", "end", "of_whole_updates"),
    [(0, 35, 35), (0, 1, 1), (1, 2, 0), (2, 3, 2), (3, 17, 13), (27, 35, 9)],
)
def test_the_groups_that_arrive_are_those_of_the_file(
    first: int,
    end: int,
    of_whole_updates: int,
    piece_bytes: int,
    spool: Spool,
    server: ServedFolder,
    encoder: Shaped,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update that is one row belongs to the range with its second image."""
    monkeypatch.setattr(flight_client, "PIECE_BYTES", piece_bytes)
    wanted, joins = whole(spool).part(first, end), encoder.delivery.form.joins_images
    arrived = list(fetched_range(server.address, wanted, whole_updates=joins))
    in_the_file = encoder.delivered(stored_range(wanted, whole_updates=joins))
    assert plain_rows(list(encoder.delivered(arrived))) == plain_rows(list(in_the_file))
    assert sum(map(change_count, arrived)) == (of_whole_updates if joins else end - first)


def test_a_request_that_says_a_segment_has_more_changes_is_refused(
    spool: Spool, server: ServedFolder
) -> None:
    """The count is of changes: a group is one row of a record batch."""
    count = whole(spool).rows
    ticket = ticket_of(replace(whole(spool), end=count + 1, rows=2 * count), STREAM)
    client = flight_client.flight_connection(server.address)
    header = (b"authorization", f"Bearer {server.address.token}".encode())
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        client.do_get(
            flight.Ticket(ticket), flight.FlightCallOptions(headers=[header], timeout=patiently(10))
        )


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["rows", "envelope", "json"])
@pytest.mark.only_in_all
def test_a_stream_of_two_tables_delivers_the_same_rows_over_flight(shape: str, served: Served) -> None:
    server, listening = served
    both = {"table": "informix.orders, informix.customers", "shape": shape, "minPartitions": "3"}
    found = []
    with (
        reader(listening.port, **both, delivery="grpc+tls://127.0.0.1") as far,
        reader(listening.port, **both, delivery="files") as near,
    ):
        begun = [(made, anchor_of(made)) for made in (far, near)]
        transaction = server.begin()
        for number in range(10):
            transaction.insert(ORDERS, order_row((number, 1, "note", None)))
            transaction.insert(CUSTOMERS, {"customer_num": number, "name": "n", "city": None})
        commit = transaction.commit()
        for made, anchor in begun:
            rows, _ = drained(made, anchor, commit)
            found.append(rows)
    assert found[0] == found[1]
    assert len(found[0]) == 20
