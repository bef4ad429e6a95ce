"""Who is admitted to the port of a shared capture: readers with their own file, and nobody else."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from connector.executors.served_folder import credentials_of_another_query
from harness.capture.driving import NOT_STARTED, Served, anchor_of, drained, failure_of, insert, numbers
from harness.capture.scraping import free_port
from harness.capture.shared import capturing, options_of_reader, shared_reader
from informix_capture_client.errors import AccessRefused, BadOption, ConnectionLost, InformixCdcError
from informix_cdc.executors import ReaderAccess, call_options, flight_connection
from informix_cdc.executors.flight_protocol import FlightAddress, location_of
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import CaptureAccess, published_capture, remote_capture
from informix_cdc.reading.remote_capture import CaptureClient, address_of

pytestmark = pytest.mark.slow
STRANGERS = 2000


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def running(served: Served, tmp_path: Path, port: int) -> Iterator[Path]:
    _, listening = served
    with capturing(listening.port, tmp_path, {"listen": f"127.0.0.1:{port}"}):
        yield tmp_path


def options(folder: Path, port: int, name: str = "one") -> SourceOptions:
    return SourceOptions.parse(options_of_reader(folder, name, port))


def refusal(address: FlightAddress, call: str = "describe", **content: Any) -> InformixCdcError:
    return failure_of(lambda: CaptureClient(address).call(call, content))


def test_a_reader_with_its_file_is_admitted(running: Path, port: int) -> None:
    assert published_capture(options(running, port).shared).options["tableEvents"] == "false"


@pytest.mark.only_in_all
def test_a_wrong_token_is_refused(running: Path, port: int) -> None:
    address, _ = address_of(options(running, port).shared)
    refused = refusal(replace(address, token="0" * 64))
    assert isinstance(refused, AccessRefused)
    assert "does not accept this reader" in str(refused)
    assert "0" * 64 not in str(refused)


def test_a_token_works_for_its_own_reader_only(running: Path, port: int) -> None:
    one, _ = address_of(options(running, port, "one").shared)
    address_of(options(running, port, "two").shared)
    refused = refusal(one, "commit", reader="two", run="r", end=NOT_STARTED)
    assert "the token is that of reader one, not of 'two'" in str(refused)


def test_the_file_of_another_reader_is_refused_at_once(running: Path, port: int) -> None:
    known = options_of_reader(running, "one", port)
    wrong = SourceOptions.parse({**known, "reader": "two"})
    assert "is the file of reader one" in str(failure_of(lambda: published_capture(wrong.shared)))


@pytest.mark.only_in_all
def test_an_earlier_file_of_a_reader_is_no_longer_valid(running: Path, port: int) -> None:
    address, _ = address_of(options(running, port).shared)
    CaptureAccess(running).add("one")
    assert isinstance(refusal(address), ConnectionLost)


def test_a_damaged_file_of_readers_keeps_those_out_and_in_that_were(running: Path, port: int) -> None:
    address, _ = address_of(options(running, port).shared)
    assert CaptureClient(address).describe().tables
    (running / "access" / "readers.json").write_text("{")
    assert CaptureClient(address).describe().tables
    others = credentials_of_another_query()
    assert isinstance(refusal(replace(address, credentials=others)), ConnectionLost | AccessRefused)


def test_a_removed_reader_is_refused(running: Path, port: int) -> None:
    is_connected, _ = address_of(options(running, port, "one").shared)
    comes_later, _ = address_of(options(running, port, "two").shared)
    assert CaptureClient(is_connected).describe().tables
    for name in ("one", "two"):
        assert CaptureAccess(running).remove(name)
        assert not CaptureAccess(running).remove(name)
    assert isinstance(refusal(is_connected), AccessRefused)
    refused = refusal(comes_later)
    assert isinstance(refused, ConnectionLost)  # the handshake ends, and says nothing
    assert "If this reader was removed" in refused.remedy


def test_new_files_of_all_readers_make_the_earlier_ones_invalid(running: Path, port: int) -> None:
    earlier, _ = address_of(options(running, port).shared)
    renewed = {each.reader: each for each in CaptureAccess(running).renew()}
    assert isinstance(refusal(earlier), AccessRefused | ConnectionLost)
    now = renewed["one"]
    address = replace(earlier, token=now.token, credentials=now.credentials)
    assert CaptureClient(address).describe().tables


def test_readers_come_and_go_while_others_connect(running: Path, port: int) -> None:
    """The server behind the port is another one each time, and nobody notices."""
    addresses = [address_of(options(running, port, f"reader{n}").shared)[0] for n in range(8)]

    def connect(number: int) -> int:
        CaptureAccess(running).add(f"other{number}")
        return len(CaptureClient(addresses[number]).describe().tables)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(connect, range(8))) == {1}


@pytest.mark.parametrize("kind", ["without TLS", "without a certificate", "of another capture"])
@pytest.mark.only_in_all
def test_strangers_are_refused_in_the_handshake(kind: str, running: Path, port: int) -> None:
    others = credentials_of_another_query()
    location = location_of("127.0.0.1", port)
    shown: dict[str, Any] = {"disable_server_verification": True}
    if kind == "without TLS":
        location, shown = location.replace("+tls", ""), {}
    if kind == "of another capture":
        shown |= {"cert_chain": others.certificate, "private_key": others.key}
    address, _ = address_of(options(running, port).shared)
    with pytest.raises(flight.FlightUnavailableError):
        list(
            flight.FlightClient(location, **shown).do_action(
                flight.Action("describe", b"{}"), call_options(address, 10)
            )
        )


def test_a_reader_tells_nothing_to_a_server_of_another_capture(running: Path, port: int) -> None:
    others = credentials_of_another_query()
    address, _ = address_of(options(running, port).shared)
    assert isinstance(refusal(replace(address, credentials=others)), ConnectionLost | AccessRefused)


@pytest.mark.parametrize(
    ("call", "content"),
    [
        ("next", b"{}"),
        ("next", b"[1]"),
        ("next", b"\xff" * 100),
        ("nothing", b"{}"),
        ("ranges", json.dumps({"reader": "one", "run": 1, "start": 7, "end": []}).encode()),
        ("next", json.dumps({"reader": "one", "start": {}, "limits": {"rows": "x"}}).encode()),
    ],
)
@pytest.mark.only_in_all
def test_a_call_that_makes_no_sense_is_refused_and_shows_no_code(
    call: str, content: bytes, running: Path, port: int
) -> None:
    address, _ = address_of(options(running, port).shared)
    with pytest.raises(flight.FlightError) as caught:
        list(
            flight_connection(address).do_action(
                flight.Action(call, content), call_options(address, 10)
            )
        )
    assert "Traceback" not in str(caught.value)
    assert str(running) not in str(caught.value)


@pytest.mark.only_in_all
def test_rows_of_files_outside_the_capture_are_refused(running: Path, port: int) -> None:
    address, _ = address_of(options(running, port).shared)
    ticket = {"path": "a.arrow", "first": 0, "end": 1, "rows": 1, "size_bytes": 1, "checksum": 0}
    ticket |= {"whole_updates": False}
    for stream in ("../../etc", "", "access", None, 7):
        named = flight.Ticket(json.dumps({**ticket, "stream": stream}).encode())
        with pytest.raises(flight.FlightError, match="names no rows"):
            flight_connection(address).do_get(named, call_options(address, 10))


@pytest.mark.fault(
    fault="strangers hold 2,000 connections to the port of a shared capture, and say nothing",
    outcome="readers are served all the same",
)
@pytest.mark.only_in_all
def test_idle_strangers_keep_no_reader_out(served: Served, running: Path, port: int) -> None:
    server, _ = served
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # theirs are in this process too
    try:
        with contextlib.ExitStack() as strangers:
            for _ in range(STRANGERS):
                strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
            with shared_reader(running, "one", port) as made:
                rows, _ = drained(made, anchor_of(made), insert(server, 1))
        assert numbers(rows) == [1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_secrets_are_shown_nowhere_and_stored_as_digests(running: Path, port: int) -> None:
    given = options(running, port)
    address, _ = address_of(given.shared)
    access = ReaderAccess.from_text(Path(given.shared.reader_file).read_text())
    for shown in (repr(address), repr(access), repr(given.without_secrets()), str(address)):
        assert access.token not in shown
        assert "PRIVATE KEY" not in shown
    stored = (running / "access" / "readers.json").read_text()
    assert access.token not in stored
    for path in (running / "access").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in running.rglob("*.json"):
        assert not re.search(access.token, path.read_text())


@pytest.mark.parametrize("content", ["", "{}", '{"reader": 1}', "x" * (1 << 17)])
def test_a_file_that_is_no_readers_file_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.touch(0o600)
    file.write_text(content)
    known = {"captureAt": "grpc+tls://127.0.0.1:1", "reader": "one", "readerFile": str(file)}
    refused = failure_of(lambda: published_capture(SourceOptions.parse(known).shared))
    assert isinstance(refused, BadOption)
    assert "informix-cdc readers FOLDER --add NAME" in str(refused)


def test_a_capture_that_is_away_is_named_when_the_query_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_capture, "AWAY_SECONDS", 0.0)
    refused = failure_of(lambda: published_capture(options(tmp_path, free_port()).shared))
    assert isinstance(refused, ConnectionLost)
    assert "cannot be reached" in str(refused)
