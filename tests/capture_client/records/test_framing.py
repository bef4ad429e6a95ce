from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from harness.capture.shaped import Shaped
from harness.capture.streams import (
    begin,
    blocks,
    commit,
    cut_at,
    discard,
    error,
    in_chunks,
    raw_blocks,
    read_all,
    rollback,
    row,
    table_schema,
    timeout,
    truncate,
)
from harness.capture.tables import make_table
from harness.runs.examples import examples
from harness.runs.places import at
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.positions import Position
from informix_capture_client.records import framing
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import (
    RecordKind,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions

SCHEMA = "id integer, amount decimal(10,2), made datetime year to second, note varchar(20,0)"
ROW = bytes.fromhex("00000007 c1013200 0000 c71418030f0a141e 026869".replace(" ", ""))


def stream_of_every_kind() -> bytes:
    rows = [row(101 + n, 1, ROW, RecordKind(40 + n % 4), sizes=[3]) for n in range(8)]
    return b"".join(
        [
            table_schema(0, (4 + 6 + 8, 3, 1), SCHEMA.encode() + b"\0"),
            begin(100, 1, 1_700_000_000, 501),
            *rows,
            begin(110, 2, 1_700_000_000, 501),
            row(111, 2, ROW, sizes=[3]),
            truncate(112, 2, 0),
            discard(111, 2),
            commit(120, 1, 1_700_000_001),
            rollback(121, 2),
            timeout(121),
            error(1, -83790),
        ]
    )


STREAM = stream_of_every_kind()
EXPECTED = read_all([STREAM])


def test_a_stream_in_one_piece_gives_all_its_records() -> None:
    assert len(EXPECTED) == 18


def test_a_cut_at_any_byte_changes_no_record() -> None:
    for place in range(len(STREAM) + 1):
        with at(f"cut at {place}"):
            assert read_all([STREAM[:place], STREAM[place:]]) == EXPECTED


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 128, 4096, 1 << 20], ids="chunks of {}".format)
def test_chunks_of_any_size_give_the_same_records(size: int) -> None:
    many = STREAM * 20
    assert read_all(in_chunks(many, size)) == EXPECTED * 20


@given(places=st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_any_cutting_gives_the_same_records(places: list[int]) -> None:
    assert read_all(cut_at(STREAM, places)) == EXPECTED


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search all bytes of every chunk, however small, as is done with large ones."""
    monkeypatch.setattr(framing, "_LEAST_SEARCHED_BYTES", 16)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("size", [1, 16, 50, 333, 1 << 20], ids="chunks of {}".format)
def test_a_search_of_all_bytes_finds_the_same_records(size: int) -> None:
    assert read_all(in_chunks(STREAM * 20, size)) == EXPECTED * 20


LOOKALIKES = st.one_of(
    st.binary(max_size=60),
    st.just(timeout(7)),
    st.just(timeout(7)[4:] + timeout(8) * 3),
    st.just(row(5, 1, b"x" * 9)[:-3]),
    st.just((66).to_bytes(4) * 5),
)


@examples(100, HealthCheck.function_scoped_fixture)
@given(
    payloads=st.lists(LOOKALIKES, min_size=1, max_size=12),
    places=st.lists(st.integers(0, 2000), max_size=3),
)
def test_payloads_that_look_like_records_are_payloads(
    payloads: list[bytes], places: list[int], searched: None
) -> None:
    stream = b"".join(row(n, 1, payload) for n, payload in enumerate(payloads)) + timeout(99)
    found = read_all(cut_at(stream, places))
    assert [read[4] for read in found[:-1]] == payloads  # type: ignore[index]
    assert found[-1] == Timeout(99)


@pytest.mark.usefixtures("searched")
def test_a_search_refuses_what_a_step_per_record_refuses() -> None:
    for _, header in REFUSED:
        with pytest.raises(ProtocolViolation):
            read_all([STREAM + STREAM + bytes.fromhex(header) + STREAM])


def test_blocks_know_the_stream_byte_at_which_they_begin() -> None:
    found = list(raw_blocks(cut_at(STREAM, [70, 200, 333])))
    assert [raw.origin for raw in found] == [
        sum(before.size_bytes for before in found[:number]) for number in range(len(found))
    ]


def test_a_memoryview_is_copied_so_that_its_buffer_may_be_used_again() -> None:
    buffer = bytearray(STREAM)
    cutter = RecordCutter()
    raw = cutter.feed(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert raw is not None
    assert raw.data[: raw.size_bytes] == STREAM


def test_an_empty_chunk_is_no_record() -> None:
    assert RecordCutter().feed(b"") is None


REFUSED = [
    ("a header smaller than the common header", "0000000f 00000000 00000042 00000001"),
    ("a header of no bytes", "00000000 00000000 00000042 00000001"),
    ("a header larger than any row's", "00020021 00000000 00000042 00000001"),
    ("a payload larger than any row's", "00000024 01000001 00000042 00000028"),
    ("sizes of all ones", "ffffffff ffffffff 00000042 00000001"),
    ("another packet scheme", "00000018 00000000 00000041 000000c9 0000000000000001"),
    ("another packet scheme in a record not yet whole", "00000024 00ffffff 00000041 00000028"),
]


@pytest.mark.parametrize("header", [r[1] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_header_that_cannot_be_is_refused_with_its_place(header: str) -> None:
    cutter = RecordCutter()
    cutter.feed(STREAM)
    with pytest.raises(ProtocolViolation, match=f"stream byte {len(STREAM)} "):
        cutter.feed(bytes.fromhex(header))


MISTAKEN = [
    ("record number 0", "00000018 00000000 00000042 00000000 0000000000000001"),
    ("record number 4", "00000018 00000000 00000042 00000004 0000000000000001"),
    ("a record number above the table", "00000018 00000000 00000042 000000cb 0000000000000001"),
    ("a record number of all ones", "00000018 00000000 00000042 ffffffff 0000000000000001"),
    ("a BEGINTX of 39 bytes", "00000027 00000000 00000042 00000001" + "00" * 23),
    ("a COMMTX of 35 bytes", "00000023 00000000 00000042 00000002" + "00" * 19),
    ("an RBTX of 27 bytes", "0000001b 00000000 00000042 00000003" + "00" * 11),
    ("an INSERT of 35 bytes", "00000023 00000000 00000042 00000028" + "00" * 19),
    ("a DISCARD of 27 bytes", "0000001b 00000000 00000042 0000003e" + "00" * 11),
    ("a TRUNCATE of 31 bytes", "0000001f 00000000 00000042 00000077" + "00" * 15),
    ("a TABSCHEMA of 35 bytes", "00000023 00000000 00000042 000000c8" + "00" * 19),
    ("a TIMEOUT of 23 bytes", "00000017 00000000 00000042 000000c9" + "00" * 7),
    ("an ERROR of 23 bytes", "00000017 00000000 00000042 000000ca" + "00" * 7),
    ("a row beyond 63 bits", "00000024 00000000 00000042 00000028 80" + "00" * 19),
    ("a TIMEOUT beyond 63 bits", "00000018 00000000 00000042 000000c9 ffffffffffffffff"),
    (
        "a BEGINTX before 1970",
        "00000028 00000000 00000042 00000001 0000000000000001 00000001 ffffffffffffffff 00000000",
    ),
    (
        "a COMMTX in the year 292 billion",
        "00000024 00000000 00000042 00000002 0000000000000001 00000001 7fffffffffffffff",
    ),
    (
        "a COMMTX in the year 10000",
        "00000024 00000000 00000042 00000002 0000000000000001 00000001 0000003afff44180",
    ),
    (
        "a TABSCHEMA that is not UTF-8",
        "00000024 00000001 00000042 000000c8 00000000 00000000 00000000 00000000 00000000 ff",
    ),
]


@pytest.mark.parametrize("record", [m[1] for m in MISTAKEN], ids=[m[0] for m in MISTAKEN])
def test_a_record_that_cannot_be_is_refused_with_its_place(record: str) -> None:
    with pytest.raises(ProtocolViolation, match=rf"stream byte {len(STREAM)}\b"):
        read_all([STREAM, bytes.fromhex(record)])


LONGER = [
    ("TIMEOUT", timeout(7)),
    ("BEGINTX", begin(7, 1, 2, 3)),
    ("COMMTX", commit(7, 1, 2)),
    ("TRUNCATE", truncate(7, 1, 0)),
    ("ERROR", error(0, -5)),
    ("TABSCHEMA", table_schema(0, (4, 1, 0), b"a integer\0")),
]


@pytest.mark.parametrize("record", [r[1] for r in LONGER], ids=[r[0] for r in LONGER])
def test_a_header_longer_than_we_know_is_skipped_by_the_size_it_states(record: bytes) -> None:
    header = int.from_bytes(record[:4])
    longer = (header + 8).to_bytes(4) + record[4:header] + b"\xab" * 8 + record[header:]
    assert read_all([longer, timeout(8)]) == read_all([record, timeout(8)])


def read_whole_way(chunks: list[bytes]) -> int:
    """Take chunks the whole way to rows; return how many rows came out."""
    encoder = Shaped([make_table("t", SCHEMA)], DecodeRules(), RowForm(truncate="emit"))
    assembler = TransactionAssembler(Position(0, 0))
    found = 0
    for block in blocks(chunks):
        for event in assembler.feed(block):
            if isinstance(event, TableSchema):
                encoder.announce(event)
            elif isinstance(event, CommittedTransactions):
                rows = encoder.delivered(encoder.encode([event]))
                found += sum(len(batch.to_pylist()) for batch in rows)
    return found


def test_the_whole_way_delivers_the_rows_of_the_stream() -> None:
    assert read_whole_way([STREAM]) == 8


def read_or_refused(chunks: list[bytes]) -> None:
    started = time.thread_time()
    with contextlib.suppress(InformixCdcError):
        read_whole_way(chunks)
    assert time.thread_time() - started < 5


@given(noise=st.binary(max_size=400), places=st.lists(st.integers(0, 400), max_size=3))
def test_random_bytes_are_refused_or_wait_for_more(noise: bytes, places: list[int]) -> None:
    read_or_refused(cut_at(noise, places))


@given(noise=st.binary(max_size=200), kind=st.sampled_from(list(RecordKind)), extra=st.integers(0, 30))
def test_random_bytes_in_a_well_formed_frame_are_read_or_refused(
    noise: bytes, kind: RecordKind, extra: int
) -> None:
    header = min(16 + len(noise), 24 + extra)
    sizes = header.to_bytes(4) + (16 + len(noise) - header).to_bytes(4)
    frame = sizes + (66).to_bytes(4) + kind.to_bytes(4)
    read_or_refused([STREAM[:-24], frame + noise, commit(999, 1, 5)])


@given(
    flips=st.lists(
        st.tuples(st.integers(0, len(STREAM) - 1), st.integers(1, 255)), min_size=1, max_size=4
    ),
    size=st.sampled_from([1, 50, 10_000]),
)
def test_flipped_bytes_are_read_or_refused(flips: list[tuple[int, int]], size: int) -> None:
    damaged = bytearray(STREAM)
    for place, mask in flips:
        damaged[place] ^= mask
    read_or_refused(list(in_chunks(bytes(damaged), size)))


def test_a_large_record_in_small_chunks_takes_linear_time() -> None:
    big = row(5, 1, bytes(8_000_000))
    started = time.thread_time()
    assert len(read_all(in_chunks(big, 1024))) == 1
    assert time.thread_time() - started < 2


def test_negative_numbers_of_a_row_stay_negative() -> None:
    header = "00000024 00000000 00000042 00000028 0000000000000005 fffffffd fffffffe 00000000"
    raw = RecordCutter().feed(bytes.fromhex(header))
    assert raw is not None
    block = parse_block(raw)
    assert (int(block.transaction_ids[0]), int(block.table_ids[0])) == (-3, -2)


def test_a_record_that_swallows_the_next_reads_is_refused_and_not_waited_for() -> None:
    cutter = RecordCutter()
    longer = bytearray(row(2, 1, b"abc"))
    longer[5] ^= 0x10  # a megabyte more of payload
    assert cutter.feed(begin(1, 1, 5, 6) + longer) is not None
    for _ in range(2):
        with pytest.raises(ProtocolViolation, match="sent the next record before") as caught:
            cutter.feed(timeout(2))
    assert caught.value.facts["stream_byte"] == 40


def test_the_last_bytes_of_a_record_may_look_like_a_record() -> None:
    whole = row(2, 1, b"x" * 300 + timeout(2))
    cutter = RecordCutter()
    assert cutter.feed(whole[:-24]) is None
    found = cutter.feed(whole[-24:])
    assert found is not None
    assert len(found.kinds) == 1
