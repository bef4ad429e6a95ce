from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harness.capture.streams import (
    begin,
    commit,
    error,
    row,
    timeout,
)
from harness.runs.patience import patiently, wait_until
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client.errors import ConnectionLost, InformixCdcError, ServerRefused
from informix_capture_client.positions import Position
from informix_capture_client.session import read_ahead
from informix_capture_client.session.read_ahead import BUSY_BYTES, JOINED_BYTES, ReadAhead
from informix_capture_client.session.session import CaptureSession, SessionSettings
from informix_capture_client.stream import Read, Silence, Starting
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions, PositionPassed

Start = Callable[[ScriptedTransport], ReadAhead]


def session_on(transport: ScriptedTransport) -> CaptureSession:
    return CaptureSession(transport, SessionSettings(server="informix"))


@pytest.fixture
def start() -> Iterator[Start]:
    readers: list[ReadAhead] = []

    def begin_reading(transport: ScriptedTransport) -> ReadAhead:
        readers.append(ReadAhead(lambda: session_on(transport), transport.close))
        return readers[-1]

    yield begin_reading
    for reader in readers:
        assert reader.stop(patiently(5))


def joined(reader: ReadAhead, timeout_seconds: float) -> bytes:
    return b"".join(reader.read(timeout_seconds) or [])


def reads_of(transport: ScriptedTransport) -> int:
    return sum(1 for call in transport.calls if call[0] == "lo_read")


def test_bytes_come_in_their_order_and_are_copies(start: Start) -> None:
    buffer, transport = bytearray(b"abc"), ScriptedTransport()
    transport.reads = [buffer, b"def", ConnectionLost("gone")]

    def use_the_buffer_again() -> None:
        if ("lo_read", 77, 256 * 1024) in transport.calls:
            buffer[:] = b"zzz"

    transport.on_read = use_the_buffer_again
    reader = start(transport)
    wait_until(transport.closed.is_set)
    assert joined(reader, patiently(5)) == b"abcdef"
    with pytest.raises(ConnectionLost):
        reader.read(patiently(5))


def test_nothing_in_time_is_none(start: Start) -> None:
    gate = threading.Event()
    late: list[bytes | BaseException] = [b"late", ConnectionLost("gone")]
    reader = start(ScriptedTransport(reads=late, on_read=lambda: _wait(gate)))
    assert reader.read(0.01) is None
    assert reader.read(-1) is None
    gate.set()
    assert joined(reader, patiently(5)) == b"late"


def test_what_waits_is_handed_on_joined(start: Start) -> None:
    transport = ScriptedTransport(reads=[b"abc", b"", b"def", b"g", ConnectionLost("gone")])
    reader = start(transport)
    wait_until(transport.closed.is_set)
    assert joined(reader, patiently(5)) == b"abcdefg"
    with pytest.raises(ConnectionLost):
        reader.read(patiently(5))


_HALF = JOINED_BYTES // 2
SIZES = [
    ("as many as fit", [_HALF] * 3, [JOINED_BYTES, _HALF]),
    ("no more than fit", [_HALF, _HALF + 1], [_HALF, _HALF + 1]),
    ("a larger one alone", [JOINED_BYTES + 5, 1], [JOINED_BYTES + 5, 1]),
]


@pytest.mark.parametrize(("reads", "taken"), [s[1:] for s in SIZES], ids=[s[0] for s in SIZES])
def test_no_more_is_joined_than_a_block_may_hold(
    reads: list[int], taken: list[int], start: Start
) -> None:
    transport = ScriptedTransport(reads=[*map(bytes, reads), ConnectionLost("gone")])
    reader = start(transport)
    wait_until(transport.closed.is_set)
    assert [len(joined(reader, patiently(5))) for _ in taken] == taken


COMPANY = [
    ("in a busy stream bytes wait for company", bytes(BUSY_BYTES), b"de"),
    ("in a quiet one they do not", bytes(BUSY_BYTES - 1), b"d"),
]


@pytest.mark.parametrize(("first", "second"), [c[1:] for c in COMPANY], ids=[c[0] for c in COMPANY])
def test_only_a_busy_stream_waits_for_more(
    first: bytes, second: bytes, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "JOINING_SECONDS", 1000)
    gates = [threading.Event() for _ in range(3)]
    transport = ScriptedTransport(reads=[first, b"d", b"e", ConnectionLost("gone")])
    transport.on_read = lambda: _wait(gates[n - 1]) if (n := reads_of(transport)) else None
    reader = start(transport)
    assert joined(reader, patiently(5)) == first  # nothing came before it
    gates[0].set()
    taken: list[bytes | None] = []
    taker = threading.Thread(target=lambda: taken.append(joined(reader, patiently(5))))
    taker.start()
    if second == b"d":
        taker.join(patiently(5))
    gates[1].set()
    gates[2].set()
    taker.join(patiently(5))  # the error behind the last bytes ends the waiting
    assert taken == [second]


def test_the_reading_thread_gets_the_interpreter_back_soon(start: Start) -> None:
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        start(ScriptedTransport(reads=[ConnectionLost("gone")]))
        assert sys.getswitchinterval() < 0.001
        sys.setswitchinterval(0.00001)
        start(ScriptedTransport(reads=[ConnectionLost("gone")]))
        assert sys.getswitchinterval() == pytest.approx(0.00001)
    finally:
        sys.setswitchinterval(before)


def _wait(gate: threading.Event) -> None:
    assert gate.wait(patiently(5))


def test_an_error_of_the_thread_is_raised_where_bytes_are_taken_and_again(start: Start) -> None:
    reader = start(ScriptedTransport(reads=[b"abc", ConnectionLost("the line broke")]))
    assert joined(reader, patiently(5)) == b"abc"
    for _ in range(3):
        with pytest.raises(ConnectionLost, match="the line broke"):
            reader.read(patiently(5))


def test_an_error_of_opening_is_raised_and_the_connection_closed(start: Start) -> None:
    transport = ScriptedTransport(answers={"cdc_opensess": -83715})
    reader = start(transport)
    with pytest.raises(ServerRefused, match="CDC_E_DUPLSESS"):
        reader.read(patiently(5))
    assert transport.closed.is_set()


def test_an_error_while_closing_does_not_hide_why_it_ended() -> None:
    def refuse() -> None:
        raise ServerRefused("cannot close")

    transport = ScriptedTransport(reads=[ConnectionLost("the line broke")])
    reader = ReadAhead(lambda: session_on(transport), refuse)
    with pytest.raises(ConnectionLost, match="the line broke"):
        reader.read(patiently(5))
    assert reader.stop(patiently(5))


def test_a_mistake_of_ours_ends_the_stream_instead_of_hanging_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    transport = ScriptedTransport(reads=[ZeroDivisionError("a bug")])
    reader = ReadAhead(lambda: session_on(transport), transport.close)
    with pytest.raises(ZeroDivisionError):
        reader.read(patiently(5))
    assert reader.stop(patiently(5))
    assert transport.closed.is_set()
    assert len(seen) == 1


@pytest.mark.parametrize(("chunk", "most"), [(b"x", 64), (bytes(JOINED_BYTES), 2)])
def test_a_slow_consumer_holds_reading_back(start: Start, chunk: bytes, most: int) -> None:
    transport = ScriptedTransport(reads=[chunk])
    reader = start(transport)
    wait_until(lambda: reads_of(transport) >= most)
    time.sleep(0.25)
    assert reads_of(transport) == most
    taken = len(joined(reader, patiently(5))) // len(chunk)
    assert taken == min(most, JOINED_BYTES // len(chunk))
    wait_until(lambda: reads_of(transport) == most + taken)


def test_stopping_while_much_waits_closes_the_session_and_the_connection(start: Start) -> None:
    transport = ScriptedTransport(reads=[b"x"])
    reader = start(transport)
    wait_until(lambda: reads_of(transport) >= 64)
    assert reader.stop(patiently(5))
    assert transport.calls[-1] == ("cdc_closesess", 77)
    assert transport.closed.is_set()
    assert reader.stop(0)


def test_stopping_while_the_server_is_silent_tells_that_it_was_not_in_time() -> None:
    is_in_read, gate = threading.Event(), threading.Event()
    transport = ScriptedTransport(reads=[b"x"], on_read=lambda: (is_in_read.set(), _wait(gate))[1])
    reader = ReadAhead(lambda: session_on(transport), transport.close)
    assert is_in_read.wait(patiently(5))  # before that it would just end
    assert not reader.stop(0.02)
    gate.set()
    assert reader.stop(patiently(5))


def test_only_one_thread_ever_uses_the_connection(start: Start) -> None:
    threads: set[int] = set()
    transport = ScriptedTransport(reads=[b"x"], on_read=lambda: threads.add(threading.get_ident()))
    reader = start(transport)
    for _ in range(20):
        reader.read(patiently(5))
    assert reader.stop(patiently(5))
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def stream_on(transport: ScriptedTransport) -> ChangeStream:
    def open_stream() -> Begun:
        return Begun(session_on(transport), TransactionAssembler(Position(0, 0)))

    return ChangeStream(open_stream, transport.close)


def test_a_stream_turns_chunks_into_events() -> None:
    whole = begin(1, 1, 5, 6) + row(2, 1, b"abc") + commit(3, 1, 7) + timeout(3)
    gate = threading.Event()
    transport = ScriptedTransport(reads=[whole[:50], whole[50:], ConnectionLost("end")])
    transport.on_read = lambda: _wait(gate) if reads_of(transport) else None
    stream = stream_on(transport)
    first = stream.next(patiently(5))
    assert isinstance(first, Read)
    assert first.events == []
    gate.set()
    second = stream.next(patiently(5))
    assert isinstance(second, Read)
    assert [type(event) for event in second.events] == [CommittedTransactions, PositionPassed]
    assert second.assembler.counters.transactions == 1
    with pytest.raises(ConnectionLost):
        stream.next(patiently(5))
    assert stream.stop(patiently(5))


def test_an_error_record_ends_the_stream_with_its_symbolic_name() -> None:
    stream = stream_on(ScriptedTransport(reads=[error(1, -83713)]))
    with pytest.raises(InformixCdcError, match=r"capture failed: CDC_E_LSN \(-83713\): The log"):
        stream.next(patiently(5))
    assert stream.stop(patiently(5))


def test_a_stream_without_bytes_in_time_says_so() -> None:
    gate = threading.Event()
    stream = stream_on(ScriptedTransport(reads=[timeout(1)], on_read=lambda: _wait(gate)))
    while isinstance(answer := stream.next(0.01), Starting):
        pass
    assert isinstance(answer, Silence)
    gate.set()
    assert stream.stop(patiently(5))
