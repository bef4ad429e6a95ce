"""A stream cut after every single byte, and with every byte flipped; in one process, without sockets.

TCP has its checksum and the capture protocol has none: a flip that makes another valid stream cannot
be seen by anybody. What can be seen must be an error of ours, and what cannot must stay in its row.
"""

from __future__ import annotations

import itertools

import pytest

from faults.record_fields import fields_of
from faults.recorded_sessions import (
    Captured,
    CutAfter,
    Recorded,
    ScriptEnds,
    cut_at,
    flip_at,
    recorded,
)
from harness.runs.examples import some_of
from informix_capture_client.errors import (
    DataLoss,
    ProtocolViolation,
    ServerRefused,
    UnsupportedColumn,
)

pytestmark = pytest.mark.slow

READ_BYTES = 200  # so that records are cut and continued
FRAMING = ("size", "scheme", "table", "fixed bytes", "column size")
LAST_RECORD = bytes(24)  # a TIMEOUT


@pytest.fixture(scope="module")
def log() -> Recorded:
    return recorded()


def only_forward(captured: Captured) -> bool:
    places = [(each.commit, each.restart) for each in captured.positions]
    return all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(places))


def test_the_account_is_what_an_undisturbed_session_delivers(log: Recorded) -> None:
    captured = log.captured()
    captured.connect(log.server)
    assert isinstance(captured.error, ScriptEnds)
    assert captured.rows == log.account
    assert len(log.stream) > 900


@pytest.mark.fault(
    fault="the stream is cut after every byte of a recorded session",
    outcome="reconnects; rows as committed, once, in order; positions only forward",
)
def test_a_cut_after_any_byte_loses_and_repeats_nothing(log: Recorded) -> None:
    for place in some_of(range(len(log.stream))):
        captured = log.captured()
        captured.connect(log.server, cut_at(place), READ_BYTES)
        assert isinstance(captured.error, CutAfter), place
        assert captured.rows == log.account[: len(captured.rows)], place
        captured.connect(log.server, read_bytes=READ_BYTES)
        assert captured.rows == log.account, place
        assert only_forward(captured), place


def rows_with_other_values(captured: Captured, log: Recorded) -> int:
    """Return how many rows differ in kind or value; all are there, each in its transaction."""
    assert [row[:2] for row in captured.rows] == [row[:2] for row in log.account]
    return sum(a != b for a, b in zip(captured.rows, log.account, strict=True))


def flipped(log: Recorded, place: int) -> Captured:
    captured = log.captured()
    captured.connect(log.server, flip_at(place, 1 << place * 5 % 8))
    return captured  # whatever is no InformixCdcError has come out of `connect` and ended the test


def places_of(log: Recorded, *names: str) -> list[int]:
    """Return the bytes of these fields, the last record's not: nothing comes after it to tell by."""
    fields = fields_of(log.stream)[: -len(LAST_RECORD)]
    return [place for place, (_, name) in enumerate(fields) if name in names]


def was_told(captured: Captured) -> bool:
    return type(captured.error) in (ProtocolViolation, DataLoss, UnsupportedColumn, ServerRefused)


@pytest.mark.fault(
    fault="a bit is flipped in the sizes, scheme, table number or column list of a record",
    outcome="IFXCDC-0007, -0006, -0005 or -0004 after all whole transactions before it, or no row is"
    " touched",
)
def test_a_flip_in_what_frames_a_record_is_told_or_touches_nothing(log: Recorded) -> None:
    told = 0
    column_list = [n for n, field in enumerate(fields_of(log.stream)) if field == (200, "payload")]
    for place in places_of(log, *FRAMING) + column_list:
        captured = flipped(log, place)
        if was_told(captured):
            told += 1
            assert captured.rows == log.account[: len(captured.rows)], place
        else:  # of a record that was rolled back, or in a letter's case
            assert captured.rows == log.account, place
    assert told > 300


@pytest.mark.fault(
    fault="a bit is flipped in a cell of a row",
    outcome="IFXCDC-0007 where no such value exists, else that row differs, and no other: the protocol"
    " has no checksum",
)
@pytest.mark.only_in_all
def test_a_flip_in_a_cell_stays_in_its_row(log: Recorded) -> None:
    rows = [n for n, (kind, _) in enumerate(fields_of(log.stream)) if kind in range(40, 44)]
    differing = 0
    for place in sorted(set(rows) & set(places_of(log, "payload"))):
        captured = flipped(log, place)
        if was_told(captured):
            assert captured.rows == log.account[: len(captured.rows)], place
        else:
            differing += rows_with_other_values(captured, log)
            assert rows_with_other_values(captured, log) <= 1, place
    assert differing > 20  # a flipped cell cannot be seen: that is why TCP's checksum matters


@pytest.mark.fault(
    fault="a bit is flipped in a time, a user id or a reserved word",
    outcome="IFXCDC-0007 for a time beyond the year 9999, else the rows are the same",
)
@pytest.mark.only_in_all
def test_a_flip_beside_the_rows_leaves_them_alone(log: Recorded) -> None:
    for place in places_of(log, "time", "user", "reserved", "column counts"):
        captured = flipped(log, place)
        assert captured.rows == log.account[: len(captured.rows)], place
        assert was_told(captured) or captured.rows == log.account, place


@pytest.mark.fault(
    fault="a bit is flipped in a record number, a transaction id or a sequence number",
    outcome="an error where the stream then contradicts itself; else it is another valid stream, which"
    " nobody can tell: no hang, no other exception",
)
def test_a_flip_that_makes_another_valid_stream_neither_hangs_nor_crashes(log: Recorded) -> None:
    ends = [flipped(log, place) for place in places_of(log, "number", "id", "sequence")]
    told = [captured for captured in ends if was_told(captured)]
    assert len(told) > 100
    assert all(isinstance(captured.error, ScriptEnds) for captured in ends if captured not in told)


def test_a_commit_number_that_falls_within_a_session_is_told(log: Recorded) -> None:
    first = next(n for n, field in enumerate(fields_of(log.stream)) if field == (2, "sequence"))
    captured = log.captured()
    captured.connect(log.server, flip_at(first + 2, 0x10))  # the first COMMTX: far above the others
    assert was_told(captured)


def test_a_begin_number_above_its_own_rows_is_told(log: Recorded) -> None:
    first = next(n for n, field in enumerate(fields_of(log.stream)) if field == (1, "sequence"))
    captured = log.captured()
    captured.connect(log.server, flip_at(first + 2, 0x10))
    assert was_told(captured)
