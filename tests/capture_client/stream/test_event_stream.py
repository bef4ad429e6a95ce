"""A stream that breaks: what was whole before the first record that makes no sense comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from harness.capture.streams import (
    begin,
    commit,
    row,
    rows_of,
    timeout,
)
from harness.runs.patience import patiently
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import RecordBlock, RecordKind
from informix_capture_client.session.session import CaptureSession, SessionSettings
from informix_capture_client.stream import Answer, Read
from informix_capture_client.stream.event_stream import Begun, ChangeStream, in_our_numbers
from informix_capture_client.transactions import StreamEvent
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions

WHOLE = begin(1, 1, 5, 6) + row(2, 1, b"abc") + commit(3, 1, 7)
BROKEN = [
    ("sizes that cannot be", "ffffffff ffffffff 00000042 00000001"),
    ("another packet scheme", "00000018 00000000 00000041 000000c9 0000000000000001"),
    ("another packet scheme in a record not yet whole", "00000024 00ffffff 00000041 00000028"),
    ("a kind we do not know", "00000018 00000000 00000042 00000063 0000000000000001"),
    ("a header too short", "0000001b 00000000 00000042 00000003" + "00" * 11),
    ("a number beyond 63 bits", "00000024 00000000 00000042 00000028 80" + "00" * 19),
    (
        "a time before 1970",
        "00000028 00000000 00000042 00000001 0000000000000001 00000001 ffffffffffffffff 00000000",
    ),
]


def stream_of(
    *reads: bytes, watch: Callable[[RecordBlock], None] | None = None, heartbeat: int | None = None
) -> ChangeStream:
    transport = ScriptedTransport(reads=list(reads))
    session = CaptureSession(transport, SessionSettings(server="informix"))
    begun = Begun(session, TransactionAssembler(Position(0, 0)), heartbeat)
    return ChangeStream(lambda: begun, transport.close, on_block=watch)


def events_of(answer: Answer) -> Sequence[StreamEvent]:
    assert isinstance(answer, Read)
    return answer.events


@pytest.mark.parametrize("record", [b[1] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_what_is_whole_comes_before_the_error(record: str) -> None:
    stream = stream_of(WHOLE + bytes.fromhex(record) + WHOLE, timeout(9))
    (event,) = events_of(stream.next(patiently(5)))
    assert isinstance(event, CommittedTransactions)
    assert [found[1] for found in rows_of(event)] == [2]
    for _ in range(2):
        with pytest.raises(ProtocolViolation, match=f"stream byte {len(WHOLE)} "):
            stream.next(patiently(5))
    assert stream.stop(patiently(5))


@pytest.mark.parametrize("heartbeat", [None, 0], ids=["captured", "heartbeat"])
def test_every_record_is_shown_to_who_watches_and_goes_with_what_it_says(heartbeat: int | None) -> None:
    watched: list[RecordBlock] = []
    stream = stream_of(WHOLE, timeout(3), watch=watched.append, heartbeat=heartbeat)
    answer = stream.next(patiently(5))
    assert isinstance(answer, Read)
    assert answer.block is watched[0]
    assert watched[0].raw.kinds.tolist()[:3] == [
        RecordKind.BEGINTX,
        RecordKind.INSERT,
        RecordKind.COMMTX,
    ]
    assert stream.stop(patiently(5))


def test_records_before_an_error_are_shown_but_do_not_stand_for_what_has_been_told() -> None:
    """What they say may have been told in part: nothing is proven by them."""
    watched: list[RecordBlock] = []
    stream = stream_of(WHOLE + bytes.fromhex(BROKEN[3][1]), watch=watched.append)
    answer = stream.next(patiently(5))
    assert isinstance(answer, Read)
    assert answer.block is None
    assert len(watched) == 1
    assert stream.stop(patiently(5))


def test_the_first_of_several_broken_records_is_the_one_that_is_named() -> None:
    late_kind, early_time = bytes.fromhex(BROKEN[3][1]), bytes.fromhex(BROKEN[6][1])
    stream = stream_of(WHOLE + early_time + WHOLE + late_kind)
    assert len(events_of(stream.next(patiently(5)))) == 1
    with pytest.raises(ProtocolViolation, match=f"record 1 at stream byte {len(WHOLE)} "):
        stream.next(patiently(5))
    assert stream.stop(patiently(5))


def test_a_number_that_the_server_does_not_list_is_named_with_its_place_in_the_block() -> None:
    renumbered = {**{int(kind): kind for kind in RecordKind}, 500: RecordKind.TIMEOUT}
    raw = RecordCutter().feed(WHOLE + row(9, 1, b"x", cast("RecordKind", 99)) + WHOLE)
    assert raw is not None
    with pytest.raises(ProtocolViolation, match="record number 99 at stream byte") as caught:
        in_our_numbers(raw, renumbered)
    assert caught.value.record == 3
