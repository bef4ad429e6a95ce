"""The Flight server of a query: rows for whoever has the token, an error in time for all others."""

from __future__ import annotations

import json
import logging
import os
import pickle
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from checkpoints.spool.spools import DELIVERY, SCHEMA, batch, open_spool
from connector.executors.served_folder import (
    LOOPBACK,
    STREAM,
    ServedFolder,
    credentials_of_another_query,
    published,
)
from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    insert,
    numbers,
    reader,
    rows_of,
)
from harness.runs.patience import patiently
from harness.servers.stores import source_options
from informix_capture_client.errors import AccessRefused
from informix_capture_client.positions import Position
from informix_capture_client.shapes import change_count
from informix_cdc.executors import SegmentPublisher, flight_client, flight_process
from informix_cdc.executors.flight_client import fetched_range
from informix_cdc.executors.flight_protocol import ticket_of
from informix_cdc.options.source import SourceOptions
from informix_checkpoints.spool.segments import SegmentRange, stored_range
from informix_checkpoints.spool.spool import Spool

ROWS = 1000


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """A spool of one segment in two batches: 1,000 rows in transactions of ten."""
    made = open_spool(tmp_path / "spool")
    stored = [batch(*((n, 110 + n // 10) for n in range(begin, begin + 500))) for begin in (0, 500)]
    made.append(SCHEMA, stored, Position(209, 209))
    yield made
    made.close()


@pytest.fixture
def server(spool: Spool) -> Iterator[ServedFolder]:
    made = ServedFolder(spool.folder)
    yield made
    made.shutdown()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_client, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(flight_client, "_UNREACHABLE_SECONDS", 0.5)


def whole(spool: Spool) -> SegmentRange:
    [found] = spool.between((100, 0), (209, 0))
    return found


def test_rows_go_out_compressed(
    server: ServedFolder, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    stream = flight.RecordBatchStream

    def noting(reader: pa.RecordBatchReader, options: pa.ipc.IpcWriteOptions) -> object:
        sent.append(options.compression)
        return stream(reader, options=options)

    monkeypatch.setattr(flight, "RecordBatchStream", noting)
    assert sum(map(change_count, fetched_range(server.address, whole(spool)))) == ROWS
    assert set(sent) == {"lz4"}


@pytest.mark.parametrize(("first", "end"), [(0, ROWS), (0, 1), (3, 497), (495, 505), (999, 1000)])
@pytest.mark.parametrize("piece_bytes", [100, 8 << 20])
def test_the_rows_that_arrive_are_those_of_the_file(
    first: int,
    end: int,
    piece_bytes: int,
    spool: Spool,
    server: ServedFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flight_client, "PIECE_BYTES", piece_bytes)
    wanted = whole(spool).part(first, end)
    arrived, in_the_file = list(fetched_range(server.address, wanted)), list(stored_range(wanted))
    assert {batch.schema.metadata[b"informix_cdc.form"] for batch in arrived} == {b"changes 1"}
    rows = pa.Table.from_batches(DELIVERY.rows(arrived))
    assert rows.equals(pa.Table.from_batches(DELIVERY.rows(in_the_file)))
    assert rows["n"].to_pylist() == list(range(first, end))


def test_whoever_has_another_token_gets_nothing_and_is_not_told_the_right_one(
    spool: Spool, server: ServedFolder
) -> None:
    stranger = replace(server.address, token="0" * 64)
    with pytest.raises(AccessRefused, match="belongs to another query") as caught:
        fetched_range(stranger, whole(spool))
    assert server.address.token not in str(caught.value)


def test_whoever_has_no_token_gets_nothing_by_any_call(spool: Spool, server: ServedFolder) -> None:
    client = flight_client.flight_connection(server.address)
    for call in (
        lambda: client.do_get(flight.Ticket(ticket_of(whole(spool), STREAM))),
        lambda: list(client.list_flights()),
        lambda: list(client.do_action(flight.Action("any", b""))),
    ):
        with pytest.raises(flight.FlightUnauthenticatedError):
            call()


def test_every_server_has_a_token_of_its_own(spool: Spool, server: ServedFolder) -> None:
    other = ServedFolder(spool.folder)
    other.shutdown()
    assert other.address.token != server.address.token
    assert len(server.address.token) == 64


@pytest.mark.parametrize(
    "name",
    ["../secret.arrow", "/etc/passwd", "manifest.json", "..", "", "sub/000001.arrow", "a\x00.arrow", 7],
)
def test_no_other_file_is_served(name: Any, spool: Spool, server: ServedFolder, tmp_path: Path) -> None:
    (tmp_path / "secret.arrow").write_bytes(Path(whole(spool).path).read_bytes())
    ticket = {**json.loads(ticket_of(whole(spool), STREAM)), "path": name}
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        asked(server, json.dumps(ticket).encode())


@pytest.mark.parametrize(
    "ticket", [b"", b"{", b"[]", b"7", b'{"path": "a.arrow"}', b"[" * 5000, b"\xff"], ids=repr
)
def test_a_request_that_makes_no_sense_is_refused(ticket: bytes, server: ServedFolder) -> None:
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        asked(server, ticket)


@pytest.mark.parametrize(
    ("first", "end"), [(-1, 5), (5, 5), (6, 5), (0, ROWS + 1), ("0", 5), (0.5, 5), (True, 5)]
)
def test_rows_that_a_segment_does_not_have_are_refused(
    first: Any, end: Any, spool: Spool, server: ServedFolder
) -> None:
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        asked(server, ticket_of(whole(spool).part(first, end), STREAM))


@pytest.mark.parametrize("name", ["checksum", "size_bytes", "rows"])
@pytest.mark.parametrize("value", [None, "7", 1.5, True, [1]], ids=repr)
def test_a_request_whose_numbers_are_none_is_refused(
    name: str, value: Any, spool: Spool, server: ServedFolder
) -> None:
    ticket = {**json.loads(ticket_of(whole(spool), STREAM)), name: value}
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        asked(server, json.dumps(ticket).encode())


def asked(server: ServedFolder, ticket: bytes) -> object:
    header = (b"authorization", f"Bearer {server.address.token}".encode())
    client = flight_client.flight_connection(server.address)
    return client.do_get(
        flight.Ticket(ticket), flight.FlightCallOptions(headers=[header], timeout=patiently(10))
    )


@pytest.mark.parametrize(("first", "end"), [(ROWS, ROWS + 1), (ROWS + 5, 2 * ROWS), (0, ROWS + 1)])
def test_a_request_that_says_a_segment_has_more_rows_is_refused_without_a_word_of_the_driver(
    first: int, end: int, spool: Spool, server: ServedFolder
) -> None:
    ticket = ticket_of(replace(whole(spool), first=first, end=end, rows=2 * ROWS), STREAM)
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment") as refused:
        asked(server, ticket)
    for told in ("Traceback", "flight_server", str(spool.folder)):
        assert told not in str(refused.value)


def test_a_server_serves_the_folder_of_the_present_stream_alone(spool: Spool, tmp_path: Path) -> None:
    server = ServedFolder(spool.folder)
    server.folders.clear()
    with pytest.raises(flight.FlightError, match="the request names no rows of a segment"):
        asked(server, ticket_of(whole(spool), STREAM))
    server.folders[STREAM] = spool.folder
    assert sum(map(change_count, fetched_range(server.address, whole(spool)))) == ROWS
    server.folders[STREAM] = tmp_path / "of the next stream"
    with pytest.raises(AccessRefused, match=r"of the next stream/.*No such file"):
        fetched_range(server.address, whole(spool))
    server.shutdown()


def test_a_segment_that_was_trimmed_is_named(spool: Spool, server: ServedFolder) -> None:
    wanted = whole(spool)
    Path(wanted.path).unlink()
    with pytest.raises(AccessRefused, match=r"returned an error: .*No such file"):
        fetched_range(server.address, wanted)


@pytest.mark.fault(
    fault="the Flight server of the driver is gone",
    outcome="an error within seconds, and the task is tried again",
)
def test_a_server_that_is_gone_ends_in_an_error_and_not_in_a_wait(spool: Spool) -> None:
    gone = ServedFolder(spool.folder)
    gone.shutdown()
    with pytest.raises(AccessRefused, match=f"{gone.address} cannot be reached"):
        fetched_range(gone.address, whole(spool))


@pytest.mark.parametrize(
    ("error", "attempts", "told"),
    [
        (flight.FlightUnavailableError("failed to connect to all addresses"), 9, ""),
        (flight.FlightUnavailableError("Ssl handshake failed: x"), 1, "belongs to another query"),
        (
            flight.FlightServerError("the segment is not known"),
            1,
            "returned an error: the segment is not known",
        ),
    ],
    ids=["unreachable", "of another query", "unknown segment"],
)
def test_only_a_server_that_cannot_be_reached_is_asked_again_and_for_long(
    error: Exception, attempts: int, told: str, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of tenacity, which the pauses alone move: no test waits a minute."""
    now, calls = [0.0], []

    def refused(*_: object) -> None:
        calls.append(now[0])
        raise error

    monkeypatch.undo()
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr("tenacity.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(flight_client, "_call", refused)
    address = flight_client.FlightAddress(LOOPBACK, 1, "t0ken", credentials_of_another_query())
    with pytest.raises(AccessRefused, match=told or "cannot be reached"):
        fetched_range(address, whole(spool))
    assert len(calls) == attempts
    assert now[0] <= 60.0


def test_a_server_that_goes_between_two_pieces_ends_the_reading(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_client, "PIECE_BYTES", 1)
    server = ServedFolder(spool.folder)
    rows = fetched_range(server.address, whole(spool))
    assert change_count(next(rows)) == 1
    server.shutdown()
    with pytest.raises(AccessRefused, match="cannot be reached"):
        list(rows)


@pytest.mark.fault(
    fault="the Flight server of the driver says nothing",
    outcome="an error after its deadline, no wait",
)
def test_a_server_that_says_nothing_ends_in_an_error_in_time(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight_client, "DEADLINE_SECONDS", 0.3)
    with socket.create_server((LOOPBACK, 0)) as silent:
        port = silent.getsockname()[1]
        address = flight_client.FlightAddress(LOOPBACK, port, "t0ken", credentials_of_another_query())
        with pytest.raises(AccessRefused, match=r"did not answer|cannot be reached"):
            fetched_range(address, whole(spool))


def flight_at(address: str) -> SourceOptions:
    return SourceOptions.parse(source_options(1, delivery=f"grpc+tls://{address}"), {})


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_is_not_this_hosts_is_refused_with_the_remedy(host: str) -> None:
    with pytest.raises(AccessRefused, match="option delivery"):
        SegmentPublisher(flight_at(host)).open()


def test_a_port_that_is_taken_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_process, "PORT_WAIT_SECONDS", 0.0)
    with (
        socket.create_server((LOOPBACK, 0)) as taken,
        pytest.raises(AccessRefused, match="option delivery"),
    ):
        SegmentPublisher(flight_at(f"{LOOPBACK}:{taken.getsockname()[1]}")).open()


def test_an_environment_with_a_proxy_changes_nothing(
    spool: Spool, server: ServedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "grpc_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert sum(map(change_count, fetched_range(server.address, whole(spool)))) == ROWS


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delivery": "files"},
        {"delivery": "grpc+tls://" + LOOPBACK},
    ],
    ids=repr,
)
@pytest.mark.only_in_all
def test_a_stream_delivers_the_same_rows_in_every_way(options: dict[str, str], served: Served) -> None:
    server, listening = served
    with reader(listening.port, **options, minPartitions="3") as made:
        anchor = anchor_of(made)
        rows, end = drained(made, anchor, insert(server, *range(1, 11)))
        assert numbers(rows) == list(range(1, 11))
        assert len(made.partitions(anchor, end)) == 3
        assert rows_of(made, anchor, end) == rows


def test_flight_finds_the_rows_when_the_folder_is_not_to_be_seen(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with reader(
        listening.port, spoolPath=str(tmp_path / "spool"), delivery="grpc+tls://" + LOOPBACK
    ) as made:
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(server, 1, 2, 3))
        parts = [pickle.loads(pickle.dumps(part)) for part in made.partitions(anchor, end)]
        elsewhere = [
            replace(part, ranges=tuple(replace(r, path=f"/not/here/{r.file}") for r in part.ranges))
            for part in parts
        ]
        batches = [found for part in elsewhere for found in made.read(part)]
    assert pa.Table.from_batches(batches).column("order_num").to_pylist() == [1, 2, 3]


@pytest.mark.only_in_all
def test_only_partitions_carry_token_and_key_and_nothing_shows_them(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with (
        caplog.at_level(logging.DEBUG),
        reader(listening.port, delivery="grpc+tls://127.0.0.1") as made,
    ):
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(server, 1))
        [part] = made.partitions(anchor, end)
        address = part.places.server  # type: ignore[attr-defined]
        secrets = [address.token.encode(), address.credentials.key]
        for secret in secrets:
            assert secret in pickle.dumps(part)
            assert secret not in pickle.dumps(made)
        shown = f"{part} {part!r} {made!r} {made.reportLatestOffset()} {caplog.text}"
    assert not [secret for secret in secrets if secret.decode() in shown]
    assert "PRIVATE" not in shown


def test_the_server_ends_with_the_query(served: Served) -> None:
    server, listening = served
    with reader(listening.port, delivery="grpc+tls://127.0.0.1") as made:
        anchor = anchor_of(made)
        _, end = drained(made, anchor, insert(server, 1))
        [part] = made.partitions(anchor, end)
        copied = pickle.loads(pickle.dumps(made))
    with pytest.raises(AccessRefused, match="cannot be reached"):
        list(copied.read(part))


def test_the_end_of_a_query_does_not_wait_for_an_executor_that_has_stopped_reading(
    spool: Spool,
) -> None:
    """An executor asks for more than a connection holds, and reads nothing."""
    [wanted], held = spool.between((100, 0), (209, 0)), []
    with published(spool) as (process, address):
        client = flight_client.flight_connection(replace(address, stream=""))
        options = flight_client.call_options(address, patiently(60))
        held = [
            client.do_get(flight.Ticket(ticket_of(wanted, address.stream)), options) for _ in range(20)
        ]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert held


@pytest.mark.only_in_all
def test_copies_of_a_streams_segments_come_and_go(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with reader(listening.port, segmentCopies=tmp_path.as_uri(), delivery="files") as made:
        anchor = anchor_of(made)
        _, middle = drained(made, anchor, insert(server, 1))
        rows, end = drained(made, middle, insert(server, 2))
        [copied] = {path.parent.name for path in tmp_path.rglob("*.arrow")}
        assert copied == anchor["stream"]
        made.commit(end)
        assert list(tmp_path.rglob("*.arrow")) == []
    assert numbers(rows) == [2]


@pytest.mark.fault(
    fault="the place of segmentCopies is away for a while",
    outcome="the capture tries again; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_place_of_copies_that_is_away_for_a_while_is_waited_for(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with reader(listening.port, segmentCopies=tmp_path.as_uri()) as made:
        anchor = anchor_of(made)
        [folder] = tmp_path.iterdir()
        folder.rename(tmp_path / "away")
        commit = insert(server, 1, 2)
        while not made.reportLatestOffset()["reconnects"]:  # type: ignore[index]
            assert made.latestOffset(anchor, LIMIT) == anchor
        (tmp_path / "away").rename(folder)
        rows, _ = drained(made, anchor, commit)
    assert numbers(rows) == [1, 2]
