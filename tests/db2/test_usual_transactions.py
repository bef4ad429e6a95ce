"""Transactions read by columns are those that are read record by record.

Rule: the plain reading is `transactions.py` alone: records are all declared unusual, so that nothing of
the columns decides anything but where rows lie.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db2.decoded import Row, rows_of
from db2.log_writer import LogWriter
from informix_capture_client.errors import BadOption
from informix_db2 import LogSettings, decoding, log_records_decoder
from informix_db2.log_records import log_reader, logged_changes, usual_transactions

TABLES = {"4.5": "a INT NOT NULL, b VARCHAR(9)"}
FIXED = 9


def user(number: int, text: bytes | None = b"ab") -> bytes:
    head = struct.pack("<iHHB", number, 9, len(text or b""), text is None)
    return head + (text or b"")


USUAL = (
    *("insert", "insert", "update", "delete", "insert to an empty page", "function 104"),
    *("not propagated", "commit", "commit", "commit with four bytes of time", "short commit", "abort"),
)
ODD = (
    *("other table", "short row", "server's own row", "half", "undo", "bracket", "lob", "no body"),
    *("lob as a delete", "multi-insert", "kind of row", "second of an update", "row's length"),
    "row of before a column was added",
)


def _words(names: tuple[str, ...]) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    word = st.tuples(st.sampled_from(names), st.integers(1, 3), st.integers(0, 9))
    return st.lists(word, max_size=40)


# In the last most transactions are odd; in the others few or none.
STREAMS = st.one_of(_words(USUAL), _words(USUAL * 4 + ODD), _words(USUAL + ODD))


def written(words: list[tuple[str, int, int]], mark: str = "<") -> list[bytes]:
    """Write a log: each word of a transaction, and a number that rows and row identifiers have."""
    log = LogWriter(mark, fixed=FIXED)
    return [_record(log, *word) for word in words]


def _record(log: LogWriter, word: str, tid: int, n: int) -> bytes:
    row, tables = user(n, None if n == 3 else b"text"[: n % 4]), {"transaction": tid}
    changed = bytearray(log.update(row, user(n + 1), n, **tables))
    changed[68 + 8 + len(row) :][:2] = b"xx"
    second = 40 + 20 + 8 + len(row)
    changed[second] = 9
    long_row = bytearray(log.row(162, row, n, **tables))
    struct.pack_into(log.mark + "H", long_row, 62, 999)
    made: dict[str, Any] = {
        "insert": lambda: log.row(162, row, n, **tables),
        "update": lambda: log.update(row, user(n + 1, b""), n, **tables),
        "delete": lambda: log.row(161, row, n, **tables),
        "insert to an empty page": lambda: log.row(165, row, n, **tables),
        "other table": lambda: log.row(162, row, n, (4, 6), **tables),
        "short row": lambda: log.row(162, row[:5], n, **tables),
        "server's own row": lambda: log.row(162, row, n, **tables, form=2),
        "half": lambda: log.row(162, row, n, **tables, flags=0x8000),
        "undo": lambda: log.undo(110, n % 3, **tables),
        "bracket": lambda: log.out_of_row(**tables),
        "lob": lambda: log.lob(64, 1, b"piece", **tables),
        "lob as a delete": lambda: log.lob(66, 65535, b"old", 2, **tables),
        "no body": lambda: log.record(0x4E, b"", tid),
        "multi-insert": lambda: log.row(167, row, n, **tables),
        "function 104": lambda: log.row(104, row, n, **tables),
        "not propagated": lambda: LogWriter(log.mark, log.lsn, 0, FIXED).row(162, row, n, **tables),
        "row of before a column was added": lambda: log.row(162, row, n, **tables, fixed=4),
        "kind of row": lambda: log.row(162, row, n, **tables, kind=7),
        "second of an update": lambda: bytes(changed),
        "row's length": lambda: bytes(long_row),
        "commit": lambda: log.commit(1_700_000_000 + n, **tables),
        "commit with four bytes of time": lambda: log.record(0x84, b"\1\2\3" + b"\xff" * 7, tid),
        "short commit": lambda: log.record(0x84, b"\1\2\3\4\5"[:n], tid),
        "abort": lambda: log.abort(tid),
    }
    found: bytes = made[word]()
    return found


def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_usual(data: Any, places: Any, *_: Any) -> usual_transactions.Separated:
        everything = np.arange(len(places.starts))
        return usual_transactions.Separated(logged_changes.nothing_of(), everything, everything[:0])

    monkeypatch.setattr(log_reader, "separate", nothing_usual)


def _told(rows: list[Row]) -> tuple[list[Row], list[tuple[str, bytes]]]:
    """Return changes in order, and what was refused in any: one reading meets it earlier."""
    bad = sorted((row["_error"], row["_bad"]) for row in rows if row["_error"] is not None)
    return [row for row in rows if row["_error"] is None], bad


def _read(values: list[bytes], tables: dict[str, str] | None, **settings: Any) -> Any:
    decoder = log_records_decoder(tables, LogSettings(**settings), bad="row")
    rows = rows_of(decoder, *values)
    rest = [row for more in decoder.finish() for row in more.batch.to_pylist()]
    return _told(rows + rest)


@given(
    most=st.sampled_from([1, 3, 50]),
    tables=st.sampled_from([TABLES, None]),
    words=STREAMS,
    cuts=st.sets(st.integers(1, 39), max_size=2),
)
@pytest.mark.only_in_all
def test_columns_give_what_records_one_by_one_give(
    most: int, tables: dict[str, str] | None, words: list[tuple[str, int, int]], cuts: set[int]
) -> None:
    records = written(words)
    bounds = [0, *sorted(cuts), len(records)]
    files = [b"".join(records[a:b]) for a, b in pairwise(bounds)]
    ways: list[tuple[list[bytes], dict[str, Any]]] = [
        ([b"".join(records)], {"byte_order": "little"}),
        (files, {"byte_order": "little", "across_values": True}),
        (records, {"byte_order": "little", "container": "message"}),
    ]
    for values, settings in ways:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_reader, "TOGETHER_RECORDS", most)
            patch.setattr(log_reader, "TOGETHER_ROWS", 2)
            patch.setattr(decoding, "TOGETHER_BYTES", 300)  # some values at a time
            found = _read(values, tables, **settings)
            _plain(patch)
            patch.setattr(log_reader, "TOGETHER_RECORDS", 1000)
            assert found == _read(values, tables, **settings)


def test_usual_rows_are_read_without_their_own_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    log, taken = LogWriter(fixed=FIXED), list[int]()
    data = b"".join(log.row(162, user(n), n) + log.update(user(n), user(n)) for n in range(5))
    data += log.commit() + log.row(162, user(9), transaction=2) + log.commit(transaction=2)
    take = log_reader.Assembler.take

    def counted(self: Any, record: Any) -> Any:
        taken.append(1)
        return take(self, record)

    monkeypatch.setattr(log_reader.Assembler, "take", counted)
    rows = rows_of(log_records_decoder(TABLES, LogSettings()), data)
    assert [row["_change_ordinal"] for row in rows] == [*range(15), 0]
    assert not taken


@pytest.mark.parametrize("is_usual", [True, False], ids=["by columns", "record by record"])
@pytest.mark.parametrize("is_ended", [True, False], ids=["ended", "open"])
def test_a_transaction_larger_than_may_be_is_refused_with_the_remedy(
    is_usual: bool, is_ended: bool
) -> None:
    log = LogWriter(fixed=FIXED)
    records = [log.row(162, user(n)) for n in range(9)] + ([] if is_usual else [log.out_of_row()])
    data, size = b"".join(records), sum(map(len, records))
    data += log.commit() if is_ended else b""
    assert len(_read([data], TABLES, max_transaction_bytes=size)[0]) == 9
    with pytest.raises(BadOption, match="max_transaction_bytes") as refused:
        _read([data], TABLES, max_transaction_bytes=size - 1)
    assert "Raise max_" in str(refused.value)


def test_a_small_transaction_beside_many_others_is_not_too_large() -> None:
    log = LogWriter(fixed=FIXED)
    data = b"".join(log.row(162, user(n)) + log.commit() for n in range(50))
    assert len(_read([data], TABLES, max_transaction_bytes=100)[0]) == 50


def test_a_value_larger_than_may_be_is_refused_by_name() -> None:
    data = LogWriter(fixed=FIXED).row(162, user(1))
    assert len(_read([data], None, max_value_bytes=len(data))[0]) == 1
    decoder = log_records_decoder(None, LogSettings(max_value_bytes=len(data) - 1))
    with pytest.raises(BadOption, match=r"file 0 has .* max_value_bytes"):
        rows_of(decoder, data)


def test_a_long_open_transaction_is_looked_at_a_few_times_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, seen = LogWriter(fixed=FIXED), list[int]()
    data = b"".join(log.row(162, user(1)) for _ in range(2000)) + log.commit()
    separate = log_reader.separate

    def counted(data: Any, places: Any, *more: Any) -> Any:
        seen.append(len(places.starts))
        return separate(data, places, *more)

    monkeypatch.setattr(log_reader, "separate", counted)
    monkeypatch.setattr(log_reader, "TOGETHER_RECORDS", 10)
    assert len(_read([data], TABLES)[0]) == 2000
    assert sum(seen) < 3 * 2001


def test_usual_transactions_come_in_the_order_of_commit_with_times_of_four_or_eight_bytes() -> None:
    log = LogWriter(fixed=FIXED)
    data = log.row(162, user(1), transaction=1) + log.row(162, user(2), transaction=2)
    data += log.commit(7, transaction=2) + log.record(0x84, b"\x09\0\0\0" + b"\xff" * 6, 1)
    rows = rows_of(log_records_decoder(TABLES, LogSettings()), data)
    found = [(row["a"], row["_commit_timestamp"].timestamp()) for row in rows]
    assert found == [(2, 7), (1, 9)]


def _open_logs(count: int) -> tuple[list[bytes], int]:
    """Write transactions that go on in the next value, and what all of them have."""
    log = LogWriter(fixed=FIXED)
    begun = [log.row(162, user(n), transaction=n) for n in range(1, count + 1)]
    ends = [log.commit(transaction=n) for n in range(1, count + 1)]
    return [b"".join(begun), b"".join(ends)], sum(map(len, begun))


def test_all_open_transactions_together_have_a_most_that_names_its_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding, "TOGETHER_BYTES", 1)
    values, size = _open_logs(9)
    assert len(_read(values, TABLES, across_values=True, max_open_bytes=size)[0]) == 9
    with pytest.raises(BadOption, match=r"9 open transactions .* max_open_bytes=") as refused:
        _read(values, TABLES, across_values=True, max_open_bytes=size - 1)
    assert "Raise max_" in str(refused.value)


def test_what_has_ended_is_no_longer_counted_among_what_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each value begins with the end of the transaction before; every other one is rolled back."""
    monkeypatch.setattr(decoding, "TOGETHER_BYTES", 1)
    log, values, end = LogWriter(fixed=FIXED), list[bytes](), b""
    for n in range(1, 20):
        begun = log.row(162, user(n), transaction=n)
        values.append(end + begun)
        end = log.commit(transaction=n) if n % 2 else log.abort(n)
    found, _ = _read(values, TABLES, across_values=True, max_open_bytes=2 * len(begun))
    assert [row["a"] for row in found] == list(range(1, 20, 2))
    alone, _ = _read(values, TABLES, max_open_bytes=len(begun))
    assert len(alone) == 19


@pytest.mark.parametrize("size", range(6))
def test_a_commit_with_less_than_four_bytes_of_time_has_none(size: int) -> None:
    log = LogWriter(fixed=FIXED)
    row = log.row(162, user(1))
    (found,) = _read([row + log.record(0x84, b"\1\2\3\4\5"[:size])], TABLES)[0]
    assert (found["_commit_timestamp"] is None) == (size < 4)
