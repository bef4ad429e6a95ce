"""What goes wrong while objects are read neither loses rows nor holds anybody up."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_contents import LOBS, Files, content, files, pictures
from connector.object_contents.test_simple_objects import Notes, informix
from harness.capture.driving import anchor_of, drained, next_offset, reader, rows_of
from harness.runs.patience import patiently
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.object_readers.odbc_objects import OdbcObjects
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_cdc.object_contents import plan
from informix_cdc.server import connections
from informix_emulator.large_objects.sbspace import Sbspace
from odbc_driver.build import build_drivers

__all__ = ["files", "informix"]

pytestmark = pytest.mark.slow


@pytest.mark.fault(
    fault="a connection that reads objects does not answer, several times, while the log moves on",
    outcome="it is tried again; the log is not held to be unreadable, and nothing is left out",
    seeds="4 silences in a row",
)
@pytest.mark.only_in_all
def test_a_silent_connection_for_objects_is_no_log_that_cannot_be_read(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences: list[int] = []
    whole = SqliObjects.read

    def read(reader: SqliObjects, *given: Any) -> memoryview:
        if len(silences) < 4:
            silences.append(1)
            time.sleep(3)  # until the server's log has been asked for
            reader._transport.close()
            raise ConnectionLost("informix did not answer in time", is_silence=True)
        return whole(reader, *given)

    monkeypatch.setattr(SqliObjects, "read", read)
    options = {
        **LOBS,
        "spoolPath": str(tmp_path),
        "onDataLoss": "continue",
        "stream__max_records_per_read": 50,
    }
    with reader(files.port, **options) as made:
        start = anchor_of(made)
    files.insert((1, files.object(b"x"), None))
    for number in range(2, 300):
        files.insert((number, None, None))
    files.server.switch_log()
    last = files.insert((300, None, None))
    with reader(files.port, **options) as made:
        rows: list[dict[str, Any]] = []
        while start["commit"] < last:
            end = next_offset(made, start, seconds=60)
            rows += rows_of(made, start, end)
            start = end
    assert [each["id"] for each in rows] == list(range(1, 301))
    assert (len(silences), rows[0]["picture"]) == (4, content(b"x"))


@pytest.mark.only_in_all
def test_a_query_that_is_stopped_reads_no_more_objects_and_may_begin_again(
    files: Files, tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all of them would take a minute."""
    whole, seconds = Sbspace.read, [0.2]

    def slow(sbspace: Sbspace, *given: Any) -> bytes:
        time.sleep(*seconds)
        return whole(sbspace, *given)

    monkeypatch.setattr(Sbspace, "read", slow)
    rows = [(number, files.object(b"x"), None) for number in range(600)]
    options = {**LOBS, "spoolPath": str(tmp_path), **way}
    sbspace = files.server.sbspace
    with reader(files.port, **options) as made:
        start = anchor_of(made)
        files.insert(*rows)
        deadline = time.monotonic() + patiently(20)
        while not sbspace.reads and time.monotonic() < deadline:
            time.sleep(0.05)
    then = sbspace.reads
    assert 0 < then < 300
    time.sleep(1)
    assert sbspace.reads <= then + 4  # what was on its way
    seconds[:] = [0.0]
    with reader(files.port, **options) as made:
        end = next_offset(made, start)
        assert pictures(rows_of(made, start, end)) == [content(b"x")] * 600


def test_a_read_that_never_returns_holds_the_stream_up_no_longer_than_a_silent_server(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a driver manager there is no time limit; the objects are read over another connection."""
    released, hung, read = threading.Event(), list[int](), OdbcObjects.read
    monkeypatch.setattr(connections, "_SILENT_SECONDS", 0.5)
    monkeypatch.setattr(connections, "_SILENT_TIMEOUTS", 1)
    monkeypatch.setattr(plan, "_SILENT_REQUESTS", 1)

    def hangs_once(objects: OdbcObjects, descriptor: int, most_bytes: int) -> memoryview:
        if not hung:
            hung.append(descriptor)
            released.wait(patiently(120))
        return read(objects, descriptor, most_bytes)

    monkeypatch.setattr(OdbcObjects, "read", hangs_once)
    options = {**LOBS, "spoolPath": str(tmp_path), "transport": "odbc", "lobMaxBytes": "64k"}
    with reader(files.port, **options, driver=str(build_drivers().narrow)) as made:
        start = anchor_of(made)
        last = files.insert((1, files.object(b"x"), None))
        rows, _ = drained(made, start, last)
        assert not released.is_set()
    released.set()
    assert (len(hung), pictures(rows)) == (1, [content(b"x")])


@pytest.mark.fault(
    fault="a TEXT or BYTE takes longer than a server may be silent, over a slow line",
    outcome="it is waited for: no connection that goes on is given up",
)
def test_a_long_value_over_a_slow_line_is_waited_for(
    informix: Notes, tmp_path: Path, way: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes by one call. The query ended with "has not answered", after five tries."""
    monkeypatch.setattr(connections, "_SILENT_SECONDS", 0.0)  # so that three seconds are a silence
    calls = list[float]()
    for objects in (SqliObjects, OdbcObjects):
        whole = objects.simple_object

        def slow(reader: Any, *given: Any, whole: Any = whole) -> Any:
            calls.append(time.monotonic())
            time.sleep(9)
            return whole(reader, *given)

        monkeypatch.setattr(objects, "simple_object", slow)
    found = informix.streamed(tmp_path, lambda: informix.put((1, b"x" * 100, None)), **way)
    assert pictures(found) == [content(b"x" * 100)]
    assert len(calls) < 3, "it was read again"
