"""What the Flight server answers to readers of a capture, and what it does not do for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import flight

from harness.capture.driving import NOT_STARTED, Served, insert
from harness.capture.shared import RunningCapture, capturing
from harness.runs.patience import wait_until
from informix_capture_client.errors import AccessRefused, DataLoss, InformixCdcError
from informix_capture_client.positions import Position
from informix_cdc.executors import (
    AdmittedReader,
    Credentials,
    FlightAddress,
    FlightServer,
    call_options,
    certificate_of_reader,
    certificate_of_server,
    digest_of,
    flight_connection,
)
from informix_cdc.executors import flight_server as module
from informix_cdc.reading import CaptureFolder
from informix_cdc.reading import reader as reader_module
from informix_cdc.reading.answers import ReaderAnswers
from informix_cdc.reading.capture_folder import NotDecided
from informix_cdc.reading.reader import CaptureReader, Resyncs
from informix_cdc.reading.remote_capture import CaptureClient
from informix_cdc.reading.trigger import Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.requests import RESYNC, RequestFolder
from informix_checkpoints.shared_captures import PreviousStream, PublishedCapture, save_published
from informix_checkpoints.spool import Spool
from informix_checkpoints.spool.manifest import Epoch

LIMITS = {"rows": None, "size_bytes": None}
FAR = 1 << 62


@contextmanager
def serving(answer: Callable[[str, str, bytes], bytes]) -> Iterator[dict[str, FlightAddress]]:
    """Serve two readers in this process, without a relay."""
    own, addresses, admitted = certificate_of_server(), {}, {}
    for name in ("one", "two"):
        certificate, key = certificate_of_reader(name)
        admitted[name] = AdmittedReader(certificate, digest_of(name))
        shown = Credentials(own[0], certificate, key)
        addresses[name] = FlightAddress("127.0.0.1", 0, name, shown)
    server = FlightServer(own, admitted, lambda: admitted, Path, answer)
    try:
        yield {name: replace(each, port=server.port) for name, each in addresses.items()}
    finally:
        server.shutdown()


def refusal(address: FlightAddress, call: str = "next", **content: object) -> InformixCdcError:
    with pytest.raises(AccessRefused) as caught:
        CaptureClient(address).call(call, content)
    return caught.value


def test_an_unexpected_error_shows_neither_code_nor_paths(tmp_path: Path) -> None:
    def fail(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(tmp_path / "manifest.json"))

    with serving(fail) as addresses:
        refused = refusal(addresses["one"])
    assert "does not accept this reader" not in str(refused)
    assert "PermissionError" in str(refused)
    for shown in ("Traceback", ".py", str(tmp_path)):
        assert shown not in str(refused)


def test_a_token_is_accepted_with_the_certificate_of_its_reader_only() -> None:
    with serving(lambda name, *_: json.dumps({"is": name}).encode()) as addresses:
        one, two = addresses["one"], addresses["two"]
        assert CaptureClient(one).call("next", {}) == {"is": "one"}
        assert "does not accept this reader" in str(refusal(replace(one, token=two.token)))


def test_a_call_that_is_too_long_is_not_looked_at() -> None:
    with serving(lambda *_: b"{}") as addresses:
        assert CaptureClient(addresses["one"]).call("next", {"x": "x" * (1 << 19)}) == {}
        assert "too long" in str(refusal(addresses["one"], x="x" * (1 << 20)))


def test_a_reader_has_few_calls_that_are_not_answered_and_keeps_no_other_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_CALLS", 1)
    begun, go_on = threading.Event(), threading.Event()

    def answer(name: str, *_: object) -> bytes:
        if name == "one":
            begun.set()
            go_on.wait()
        return b"{}"

    with serving(answer) as addresses:
        waiting = threading.Thread(target=CaptureClient(addresses["one"]).call, args=("next", {}))
        waiting.start()
        begun.wait()
        assert "calls that are not answered" in str(refusal(addresses["one"]))
        assert CaptureClient(addresses["two"]).call("next", {}) == {}
        go_on.set()
        waiting.join()
        assert CaptureClient(addresses["one"]).call("next", {}) == {}


def test_a_ticket_that_is_too_long_is_not_looked_at() -> None:
    with serving(lambda *_: b"{}") as addresses:
        address = addresses["one"]
        for ticket in (b"[" * 5000, b" " * 4097 + b"{}"):
            with pytest.raises(flight.FlightServerError, match="names no rows"):
                flight_connection(address).do_get(flight.Ticket(ticket), call_options(address, 10))


# what a reader says about its place


@pytest.fixture
def running(served: Served, tmp_path: Path) -> Iterator[RunningCapture]:
    _, listening = served
    with capturing(listening.port, tmp_path) as capture:
        yield capture


def called(answers: ReaderAnswers, call: str, run: str = "r1", **content: object) -> dict[str, Any]:
    known = {"reader": "one", "run": run, "begins_at": "earliest", "on_data_loss": "fail"}
    sent = json.dumps({**known, "limits": LIMITS, "trigger": "continuous", **content}).encode()
    answer: dict[str, Any] = json.loads(answers.answer("one", call, sent))
    return answer


@pytest.mark.parametrize("place", [{"commit": FAR}, {"chunk": FAR}])
def test_rows_that_are_not_stored_are_not_taken_as_read(
    place: dict[str, int], running: RunningCapture, tmp_path: Path
) -> None:
    answers = ReaderAnswers(tmp_path, may_resync=False)
    start = called(answers, "next", start=NOT_STARTED)["offset"]
    with pytest.raises(AccessRefused, match="that the capture has not stored"):
        called(answers, "commit", end={**start, **place})
    answers.close()  # a call that waits for rows is answered at once
    assert called(answers, "next", start={**start, **place}) == {}
    [known] = CaptureFolder(tmp_path).readers.all()
    spool = running.process.state.spool
    assert spool is not None
    assert known.taken.place <= spool.manifest.high_watermark.place
    assert known.done <= spool.manifest.high_watermark.place


def test_what_counts_as_read_goes_back_with_the_slowest_reader(
    served: Served, running: RunningCapture, tmp_path: Path
) -> None:
    server, _ = served
    state, folder = running.process.state, CaptureFolder(tmp_path)
    first = CaptureReader(folder, "first")
    start = first.next_offset(StreamOffset.from_json(NOT_STARTED), BatchLimits(), Trigger.CONTINUOUS)
    assert start is not None
    insert(server, 1, 2, 3)
    end = first.next_offset(start, BatchLimits(), Trigger.AVAILABLE_NOW)
    assert end is not None
    first.commit(end)
    wait_until(lambda: state.bytes_ahead == 0)
    folder.readers.update(replace(folder.readers.register("second", "r"), stream=start.stream))
    insert(server, 4)
    wait_until(lambda: state.bytes_ahead > 0 and state.taken_up_to == 0)


@pytest.mark.parametrize("run", ["", "x" * 65, "../x", "a b", "\n"])
def test_a_run_has_a_short_name(run: str, running: RunningCapture, tmp_path: Path) -> None:
    answers = ReaderAnswers(tmp_path, may_resync=False)
    with pytest.raises(AccessRefused, match="names no run"):
        called(answers, "next", run=run, start=NOT_STARTED)
    assert CaptureFolder(tmp_path).readers.all() == []


def test_readers_on_other_hosts_have_tables_read_again_one_at_a_time_and_seldom(
    running: RunningCapture, tmp_path: Path
) -> None:
    now, folder = [0.0], CaptureFolder(tmp_path)
    resyncs = Resyncs(folder, pause_seconds=600.0, clock=lambda: now[0])
    offset = folder.published.offset
    assert offset is not None
    requests = RequestFolder(tmp_path / offset.stream)
    running.stop()  # nobody answers
    resyncs.ask("one")
    assert [each.kind for each in requests.pending()] == [RESYNC]
    for name in ("one", "two"):
        with pytest.raises(NotDecided):
            resyncs.ask(name)
    [first] = requests.pending()
    requests.cancel(first.id)
    (tmp_path / offset.stream / "requests" / f"{first.id}.done").write_text("{}")
    resyncs.ask("two")
    now[0] = 599.0
    with pytest.raises(NotDecided):
        resyncs.ask("one")


def test_a_reader_that_may_not_have_tables_read_again_ends_with_its_loss(
    running: RunningCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CaptureFolder(tmp_path)
    offset = folder.published.offset
    assert offset is not None
    reader = CaptureReader(
        folder, "one", on_data_loss="resync", resyncs=Resyncs(folder, is_allowed=False)
    )
    monkeypatch.setattr(reader_module.CaptureReader, "_first_kept", lambda *_: (FAR, 0))
    here = replace(offset, position=Position(1, 1))
    with pytest.raises(DataLoss, match="has removed rows"):
        reader.next_offset(here, BatchLimits(), Trigger.CONTINUOUS)
    assert RequestFolder(tmp_path / offset.stream).pending() == []


def test_the_end_of_a_stream_that_was_left_is_committed_although_no_row_follows(tmp_path: Path) -> None:
    """Its last position, after a chunk without rows, is behind the rows that its end is known by."""
    left, following = "a" * 16, "b" * 16
    options, chunk = {"server": "s"}, Epoch(Position(100, 100, chunk=1), {})
    spool = Spool(tmp_path / left, left, "src", Position(100, 100), durable=False)
    spool._replace(spool.manifest.with_epoch(chunk))
    end = StreamOffset(left, "src", spool.manifest.high_watermark)
    other = Spool(tmp_path / following, following, "src", Position(200, 200), durable=False)
    other.store()
    now = PublishedCapture(
        tables=(),
        options=options,
        offset=StreamOffset(following, "src", other.manifest.high_watermark),
        previous={left: PreviousStream((100, 0), following, (200, 0))},
    )
    save_published(now, tmp_path)
    reader = CaptureReader(CaptureFolder(tmp_path), "one", on_data_loss="continue")
    assert end.position.place == (100, 1)
    reader.commit(end)
    [known] = CaptureFolder(tmp_path).readers.all()
    assert (known.stream, known.done) == (left, (100, 0))
    for each in (spool, other):
        each.close()
