"""Delimited messages of Q Replication: the page's records, and what must not go wrong."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db2.decoded import Row, bad_bytes, good, rows_of
from db2.message_writer import Written, by_arrow, by_hand
from db2.page_examples import AS_PRINTED, HEX, MENDED, NULL
from harness.runs.examples import examples
from informix_capture_client.errors import (
    InformixCdcError,
    ProtocolViolation,
)
from informix_db2 import Decoder, decoding, q_messages_decoder
from informix_db2.q_messages import QMessageSettings, messages

EMPLOYEE = (
    "first VARCHAR(20), last VARCHAR(20), position CHAR(8), department CHAR(8),"
    " salary DECIMAL(9,2), commission INTEGER"
)
T1 = {"ASN.T1": "id INT, a CHAR(8), b CHAR(8)"}
T = "a VARCHAR(9), n INT"


def decoder(
    tables: dict[str, str] | None = None, shape: str = "rows", bad: str = "fail", **settings: Any
) -> Decoder:
    return q_messages_decoder(tables, QMessageSettings(**settings), shape=shape, bad=bad)


def texts(values: list[Row] | None) -> list[str | None] | None:
    return None if values is None else [value["text"] for value in values]


@pytest.mark.parametrize("version", ["V10", "V11"])
def test_the_page_s_employees_come_as_typed_rows(version: str) -> None:
    rows = rows_of(decoder({"TEST.EMPLOYEE": EMPLOYEE}), MENDED[version])
    shown = [(row["_change_type"], row["first"], row["salary"], row["commission"]) for row in rows]
    assert shown == [
        ("insert", "John", Decimal("120000.00"), 12000),
        ("update_preimage", "Ed", Decimal("109000.00"), 10900),
        ("update_postimage", "Ed", Decimal("150000.00"), 15000),
        ("update_preimage", "Bill", Decimal("105000.00"), 10500),
        ("update_postimage", "Bill", Decimal("110000.00"), 11000),
    ]
    assert [row["_change_ordinal"] for row in rows] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("version", ["V10", "V11"])
def test_a_commit_at_67_seconds_is_null_and_its_row_stays(version: str) -> None:
    rows = rows_of(decoder(), MENDED[version])
    assert [row["_commit_timestamp"] for row in rows] == [
        datetime(2006, 6, 30, 18, 0, 52, tzinfo=UTC),
        datetime(2006, 6, 30, 18, 1, 2, tzinfo=UTC),
        None,
    ]
    assert rows[2]["_header"]["commit_time"] == "2006-06-30-18.05.67"


@pytest.mark.parametrize(("version", "more"), [("V10", ""), ("V11", "0000")])
def test_every_field_of_the_header_is_delivered(version: str, more: str) -> None:
    row = rows_of(decoder(), MENDED[version])[0]
    assert row["_transaction_id"] == "00000000038846420000" + more
    assert row["_commit_lsn"] == "0000000000000271000c000000000000"
    assert row["_table"] == "TEST.EMPLOYEE"
    assert (row["_segment"], row["_is_last_segment"]) == (0, True)
    assert row["_header"] == {
        "type": 10,
        "identifier": "IBM",
        "invalid": None,
        "put_timestamp": datetime(2006, 1, 30, 18, 23, 18, 5),
        "put_date": "2006030",
        "put_time": "182318000005",
        "commit_lsn": "0000:0000:0000:0271:000c:0000:0000:0000",
        "commit_time": "2006-06-30-18.00.52",
        "plan_name": "ASNQC910",
        "segment_number": "0000",
    }


@pytest.mark.parametrize("version", ["V10", "V11"])
def test_the_typographic_quote_that_the_page_prints_is_refused_by_name(version: str) -> None:
    with pytest.raises(ProtocolViolation, match=r"file 0, byte \d+, record 1: .*typographic"):
        rows_of(decoder(), AS_PRINTED[version])
    rows = rows_of(decoder(bad="row"), AS_PRINTED[version])
    assert [texts(row["after"])[0] for row in good(rows)] == ["John", "Bill"]  # type: ignore[index]
    assert bad_bytes(rows) == AS_PRINTED[version].splitlines(keepends=True)[1]


@pytest.mark.parametrize("version", ["V10", "V11"])
def test_invalid_characters_come_as_digits_unless_their_code_page_is_named(version: str) -> None:
    (row,) = rows_of(decoder(T1), HEX[version])
    assert (row["id"], row["a"], row["b"]) == (1, "4A6F686E", "446F65")
    assert row["_header"]["invalid"] == {"column": 2, "image": "A", "mode": "HEX"}
    (row,) = rows_of(decoder(T1, source_encoding="latin-1"), HEX[version])
    assert (row["id"], row["a"], row["b"]) == (1, "John", "Doe")


@pytest.mark.parametrize("version", ["V10", "V11"])
def test_characters_that_were_not_sent_are_told_from_nulls(version: str) -> None:
    (row,) = rows_of(decoder(T1), NULL[version])
    assert (row["id"], row["a"], row["b"]) == (1, None, None)
    assert row["_header"]["invalid"] == {"column": 2, "image": "A", "mode": "NULL"}


def test_the_identifier_may_be_written_as_the_page_describes_it() -> None:
    message = by_arrow(Written("delete", [1], None, identifier="IBM-INVALID-COLUMN-0012-B-HEX"))
    (row,) = rows_of(decoder(), message)
    assert row["_header"]["invalid"] == {"column": 12, "image": "B", "mode": "HEX"}
    assert row["after"] is None


def test_null_is_nothing_and_an_empty_string_is_quoted() -> None:
    (row,) = rows_of(decoder(), by_arrow(Written("insert", None, ["", None, 7])))
    assert row["after"] == [
        {"text": "", "quoted": True},
        {"text": None, "quoted": False},
        {"text": "7", "quoted": False},
    ]
    assert row["before"] is None


def test_a_column_delimiter_in_front_of_the_record_s_is_taken_as_such() -> None:
    """The page's form of a row has it, none of its examples do."""
    message = by_arrow(Written("delete", ["a", 1], None))
    for end in (b"\n", b",\n"):
        (row,) = rows_of(decoder({"TEST.T": T}), message[:-1] + end)
        assert (row["a"], row["n"], row["_change_type"]) == ("a", 1, "delete")


def test_a_plan_name_is_null_outside_z_os() -> None:
    (row,) = rows_of(decoder(), by_arrow(Written("insert", None, [1], plan=None)))
    assert row["_header"]["plan_name"] is None


def test_commit_points_of_both_lengths_sort_in_one_order() -> None:
    short = Written("insert", None, [1], lsn="0000:0271:000c:0000:0001")
    long = Written("insert", None, [1], lsn="0000:0000:0271:000C:0000:0002:0000:0000")
    found = [row["_commit_lsn"] for row in rows_of(decoder(), by_arrow(short) + by_arrow(long))]
    assert found == [
        "00000000" + tail for tail in ("0271000c0000000100000000", "0271000c0000000200000000")
    ]


BROKEN = [
    (
        "a record of eleven fields",
        "fewer than 12 fields",
        b',"2006-06-30-18.00.52","ASNQCAP",0000',
        b"",
    ),
    ("an operation that is none", "operation", b"ISRT", b"XXXX"),
    ("a type that is no number", "type", b"10,", b"1x,"),
    ("a type in quotes", "quoted wrongly", b"10,", b'"10",'),
    ("a table without quotes", "quoted wrongly", b'"T"', b"T"),
    ("a log place of odd digits", "commit LSN", b"000c:", b"00c:"),
    ("a log place of 14 bytes", "10 nor 16", b"000c:", b""),
    ("a transaction of no digits", "transaction identifier", b"0388:", b"03g8:"),
    ("a segment that is no number", "segment", b",0000,", b",00x0,"),
    ("a half value", "differ", b"0000,,", b"0000,,1,"),
    ("an insert with a before value", "before values", b"0000,,", b"0000,1,"),
    ("invalid data in an unknown form", "identifier", b'"IBM"', b'"IBM-INVALID-x"'),
    ("a quote in the middle of a field", "middle", b'"TEST"', b'"TE"ST"'),
    ("text between two strings of a field", "middle", b'"TEST"', b'"TE"x"ST"'),
    ("text behind the closing quote", "only partly quoted", b'"TEST"', b'"TEST"x'),
]


@pytest.mark.parametrize(("name", "reason", "old", "new"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_record_is_refused_and_its_neighbours_are_read(
    name: str, reason: str, old: bytes, new: bytes
) -> None:
    sound = by_arrow(Written("insert", None, [5]))
    broken = sound.replace(old, new, 1)
    assert broken != sound, name
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder(), sound + broken)
    rows = rows_of(decoder(bad="row"), sound + broken + sound)
    assert len(good(rows)) == 2
    assert bad_bytes(rows) == broken


def test_an_update_of_another_width_than_declared_is_refused() -> None:
    message = by_arrow(Written("update", [1], [2]))
    with pytest.raises(ProtocolViolation, match="1 columns instead of 2"):
        rows_of(decoder({"TEST.T": "a INT, b INT"}), message)


def test_a_record_of_another_table_is_refused_or_left_out_as_asked() -> None:
    message = by_arrow(Written("insert", None, [1], table="OTHER")) + by_arrow(
        Written("insert", None, [2])
    )
    with pytest.raises(ProtocolViolation, match=r"table TEST\.OTHER is not declared"):
        rows_of(decoder({"TEST.T": "a INT"}), message)
    rows = rows_of(decoder({"TEST.T": "a INT"}, other_tables="skip"), message)
    assert [(row["a"], row["_change_ordinal"]) for row in rows] == [(2, 1)]


def test_more_columns_than_are_declared_are_refused() -> None:
    message = by_arrow(Written("update", [1, 2, 3], [4, 5, 6]))
    with pytest.raises(ProtocolViolation, match="3 columns instead of 2"):
        rows_of(decoder({"TEST.T": "a INT, b INT"}), message)


def test_rows_and_records_are_numbered_through_windows_and_bad_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = by_arrow(Written("update", [1], [2]))
    broken = sound.replace(b'"TEST"', b'"TE"ST"')
    monkeypatch.setattr(messages, "WINDOW_BYTES", 2 * len(sound) + 9)
    rows = rows_of(decoder({"TEST.T": "a INT"}, bad="row"), 5 * sound + broken, broken + 3 * sound)
    assert [row["_change_ordinal"] for row in good(rows)] == [*range(10), *range(6)]
    with pytest.raises(ProtocolViolation, match=r"file 1, byte \d+, record 4"):
        rows_of(decoder({"TEST.T": "a INT"}), sound, 4 * sound + broken)


def test_several_tables_are_a_struct_each() -> None:
    tables = {"TEST.T": "a INT", "TEST.U": "b VARCHAR(5)"}
    message = by_arrow(Written("insert", None, [1])) + by_arrow(
        Written("delete", ["x"], None, table="U")
    )
    first, second = rows_of(decoder(tables), message)
    assert (first["T"], first["U"]) == ({"a": 1}, None)
    assert (second["T"], second["U"]) == (None, {"b": "x"})


def test_tables_of_one_name_and_two_owners_are_told_apart() -> None:
    schema = decoder({"A.T": "a INT", "B.T": "b INT", "B.U": "c INT"}).schema
    assert schema.names[:3] == ["A_T", "B_T", "U"]


def test_the_envelope_of_several_tables_has_the_image_of_the_one_that_changed() -> None:
    tables = {"TEST.T": "a INT", "TEST.U": "b VARCHAR(5)"}
    (row,) = rows_of(decoder(tables, "envelope"), by_arrow(Written("insert", None, [1])))
    assert (row["before"], row["after"]) == (None, {"T": {"a": 1}, "U": None})


def test_the_envelope_is_debezium_s() -> None:
    message = by_arrow(Written("update", [1], [2])) + by_arrow(Written("delete", [3], None))
    update, delete = rows_of(decoder({"TEST.T": "a INT"}, "envelope"), message)
    assert (update["op"], update["before"], update["after"]) == ("u", {"a": 1}, {"a": 2})
    assert (delete["op"], delete["before"], delete["after"]) == ("d", {"a": 3}, None)
    assert update["source"]["table"] == "TEST.T"
    assert update["ts_ms"] == update["source"]["ts_ms"] == 1_151_690_452_000
    assert [row["transaction"]["total_order"] for row in (update, delete)] == [0, 2]


SEGMENTS = [("0001", 1, False), ("0004", 4, False), ("9999", 9999, False), ("0000", 0, True)]


@pytest.mark.parametrize(("text", "number", "is_last"), SEGMENTS)
def test_a_message_says_which_part_of_its_transaction_it_is(
    text: str, number: int, is_last: bool
) -> None:
    (row,) = rows_of(decoder(), by_arrow(Written("insert", None, [1], segment=text)))
    assert (row["_segment"], row["_is_last_segment"]) == (number, is_last)


MESSAGE = by_hand(Written("update", ['a"\n', 1], ["", None])) + by_hand(
    Written("delete", ["x,y", 22], None)
)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_message_cut_at_any_byte_gives_its_whole_records_and_the_rest_as_bytes() -> None:
    first = len(by_hand(Written("update", ['a"\n', 1], ["", None])))
    for typed in (None, {"TEST.T": T}):
        for cut in range(len(MESSAGE) + 1):
            rows = rows_of(decoder(typed, bad="row"), MESSAGE[:cut])
            whole = (cut >= first) + (cut == len(MESSAGE))
            changes = {row["_change_ordinal"] for row in good(rows)}
            assert len({min(ordinal // 2, 1) for ordinal in changes}) == whole, cut
            assert bad_bytes(rows) == MESSAGE[[0, first, len(MESSAGE)][whole] : cut], cut
            if cut not in (0, first, len(MESSAGE)):
                with pytest.raises(ProtocolViolation, match=f"record {whole}: .*is missing"):
                    rows_of(decoder(typed), MESSAGE[:cut])


def test_an_empty_record_is_none() -> None:
    assert rows_of(decoder(), b"\n\n", None, b"") == []


def test_a_row_and_bad_bytes_know_their_value_however_many_are_decoded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = [MESSAGE, None, MESSAGE[:-1], MESSAGE]
    first = by_hand(Written("update", ['a"\n', 1], ["", None]))
    names = [f"file {number}" for number in range(4)]
    for together in (1, len(MESSAGE), decoding.TOGETHER_BYTES):
        monkeypatch.setattr(decoding, "TOGETHER_BYTES", together)
        found = list(decoder(bad="row").rows(values, names))
        rows = [row for rows in found for row in zip(rows.values, rows.batch["_bad"], strict=True)]
        is_bad = sorted((int(value), bad.as_py() is not None) for value, bad in rows)
        assert is_bad == [(0, False), (0, False), (2, False), (2, True), (3, False), (3, False)]
        with pytest.raises(ProtocolViolation, match=rf"file 2, byte {len(first)}, record 1"):
            rows_of(decoder(), *values)


def test_a_record_never_reaches_into_the_next_value() -> None:
    cut = MESSAGE[:-1]
    rows = rows_of(decoder(bad="row"), cut, MESSAGE, cut)
    assert len(good(rows)) == 4
    assert bad_bytes(rows) == 2 * by_hand(Written("delete", ["x,y", 22], None))[:-1]


HOSTILE = st.lists(
    st.sampled_from([",", "\n", '"', "\r", "\0", "\x85", "é", "\U0001f600", "1", "IBM", " "])
).map("".join)
VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | HOSTILE


@st.composite
def changes(draw: st.DrawFn) -> Written:
    kind = draw(st.sampled_from(["insert", "update", "delete"]))
    width = draw(st.integers(1, 5))
    row = st.lists(VALUES, min_size=width, max_size=width)
    before = None if kind == "insert" else draw(row)
    after = None if kind == "delete" else draw(row)
    return Written(kind, before, after, segment=draw(st.sampled_from(["0000", "0003"])))


def _as_fields(values: Any) -> list[Row] | None:
    if values is None:
        return None
    return [
        {"text": value if value is None else str(value), "quoted": isinstance(value, str)}
        for value in values
    ]


@pytest.mark.slow
@examples(200)
@given(st.lists(st.lists(changes(), max_size=4), min_size=1, max_size=4))
@pytest.mark.only_in_all
def test_what_was_written_is_read_whatever_the_split_into_messages(parts: list[list[Written]]) -> None:
    messages = [b"".join(map(by_hand, part)) for part in parts]
    expected = [
        (change.kind, _as_fields(change.before), _as_fields(change.after))
        for part in parts
        for change in part
    ]
    for values in (messages, [b"".join(messages)]):
        rows = rows_of(decoder(), *values)
        assert [(row["_change_type"], row["before"], row["after"]) for row in rows] == expected


@pytest.mark.slow
@examples(200)
@given(st.binary(max_size=200), st.integers(0, len(MESSAGE)), st.integers(0, len(MESSAGE)))
def test_whatever_comes_bytes_are_conserved_or_the_error_is_ours(
    noise: bytes, at: int, end: int
) -> None:
    data = MESSAGE[:at] + noise + MESSAGE[end:]
    rows = rows_of(decoder(bad="row"), MESSAGE, data, MESSAGE)
    empty = data.count(b"\n")
    records = len(bad_bytes(rows)) + sum(map(_written_size, good(rows)))
    assert 0 <= 2 * len(MESSAGE) + len(data) - records <= empty
    with contextlib.suppress(InformixCdcError):
        rows_of(decoder({"TEST.T": T}), data)


def _written_size(row: Row) -> int:
    """Return how long a record was: its fields as they were delivered, quoted again."""
    head = row["_header"]
    owner, _, table = row["_table"].partition(".")
    count = (len(row["_transaction_id"]) // 4) * 5 - 1
    texts = [head["identifier"], head["put_date"], head["put_time"], owner, table, "ISRT"]
    size = sum(len(text.replace('"', '""').encode()) + 3 for text in [*texts, head["commit_lsn"]])
    size += count + 3 + len(head["commit_time"].replace('"', '""').encode()) + 3
    size += len(str(head["type"])) + 1 + len(head["segment_number"]) + 1
    size += 1 if head["plan_name"] is None else len(head["plan_name"].replace('"', '""').encode()) + 3
    sides = [row["before"], row["after"]]
    width = max(len(side or ()) for side in sides)
    for side in sides:
        for value in side or [{"text": None, "quoted": False}] * width:
            size += (
                1
                + (2 if value["quoted"] else 0)
                + len((value["text"] or "").replace('"', '""').encode())
            )
    return size


def test_text_that_would_not_become_the_same_bytes_again_is_refused() -> None:
    """An escape sequence that changes nothing: from ASCII to ASCII."""
    message = by_arrow(Written("insert", None, ["a"]))
    assert len(rows_of(decoder(encoding="iso2022_jp"), message)) == 1
    with pytest.raises(ProtocolViolation, match="in its canonical form"):
        rows_of(decoder(encoding="iso2022_jp"), b"\x1b(B" + message)
