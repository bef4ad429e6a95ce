"""Logical log data files of Log Master: header, framing, lengths, segments, rows."""

from __future__ import annotations

import contextlib
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db2 import logical_log_writer as writer
from db2.decoded import bad_bytes, good, rows_of
from db2.logical_log_writer import FIELDS, bdw, header, payload, rdw, xhdf
from harness.runs.examples import examples
from informix_capture_client.errors import (
    BadOption,
    InformixCdcError,
    ProtocolViolation,
    UnsupportedColumn,
)
from informix_db2 import Decoder, logical_log_decoder
from informix_db2.logical_log import LogicalLogSettings, log_reader

READINGS = ["exclusive", "inclusive", "total_exclusive", "total_inclusive"]
EMP = {
    "TEST.EMP": "ID INT NOT NULL, NAME VARCHAR(8), PAY DEC(9,2) NOT NULL, D DATE NOT NULL, C CHAR(4)"
}


def decoder(
    tables: dict[str, str] | None = None, shape: str = "rows", bad: str = "fail", **settings: Any
) -> Decoder:
    return logical_log_decoder(tables, LogicalLogSettings(**settings), shape=shape, bad=bad)


def emp(number: int, name: str | None, pay: str = "010900000d") -> bytes:
    """Write a row of TEST.EMP; the last column is NULL and keeps its room."""
    text = b"\xff\0\0" if name is None else b"\0" + struct.pack(">H", len(name)) + name.encode("cp037")
    fixed = number.to_bytes(4, "big", signed=True) + text + bytes.fromhex(pay)
    return fixed + "2012-10-31".encode("cp037") + b"\xff" + b"\x40" * 4


def change(kind: str, *images: bytes, reading: str = "exclusive", **fields: object) -> bytes:
    return header(CHANGETYPE=kind, **fields) + payload(list(images), reading)


def segments(image: bytes, sizes: list[int], first: int = 1, seglen: str = "payload") -> list[bytes]:
    whole, made, at = payload([image], "exclusive"), [], 0
    for number, size in enumerate(sizes):
        piece = whole[at : at + size] if number < len(sizes) - 1 else whole[at:]
        at += size
        if seglen == "own":
            piece = struct.pack(">H", len(piece)) + piece
        counted = {"payload": len(piece), "record": 288 + len(piece), "descriptor": 292 + len(piece)}
        length = counted.get(seglen, len(piece) - 2)
        fields = {"SEGLEN": length, "TOTALSEGS": len(sizes), "SEGNUM": first + number}
        made.append(header(CHANGETYPE="I ", LOGRBA="00000000123456780000", **fields) + piece)
    return made


BODIES = [change("I ", b"row 1"), change("UB", b"a", b"bb"), change("D ", b"row 3")]
FRAMED = {
    "rdw": rdw(*BODIES),
    "bdw counts itself": bdw(rdw(*BODIES[:2]), rdw(BODIES[2])),
    "bdw does not": bdw(rdw(*BODIES[:2]), rdw(BODIES[2]), counts_itself=False),
    "bdw of 31 bits": bdw(rdw(*BODIES), extended=True),
}
BODIES_OF_EMP = change("I ", emp(1, "x"))


def test_the_header_is_288_bytes_without_a_gap() -> None:
    at = 0
    for name, (offset, width) in sorted(FIELDS.items(), key=lambda item: item[1]):
        assert offset == at + (4 if name == "UORCOMMITLRSN" else 0), name
        at = offset + width
    assert (at, len(FIELDS)) == (0x120, 50)


def test_every_field_of_the_header_is_delivered() -> None:
    (row,) = rows_of(decoder(), rdw(change("I ", b"row")))
    expected = dict(writer.USUAL)
    for name, value in expected.items():
        if name in writer.BYTES:
            expected[name] = str(value).lower()
        elif name not in writer.NUMBERS | writer.MOMENTS:
            expected[name] = str(value).rstrip()
    expected |= {
        "TIMESTAMP": "2012-10-31-20.25.25.690096123456789",
        "UORTIMESTAMP": "2012-10-31-20.25.24.690096000000000",
        "UORCOMMITTIMESTAMP": "2012-10-31-20.25.26.690096000000000",
    }
    assert row["_header"] == expected
    assert row["_commit_lsn"] == "00ca670fbbf3d9000000"
    assert row["_commit_timestamp"] == datetime(2012, 10, 31, 20, 25, 26, 690096, tzinfo=UTC)
    assert (row["_transaction_id"], row["_table"]) == ("DB2A.7.0000000012345678aaaa", "TEST.EMP")
    assert (row["before"], row["after"], row["_data"]) == (None, b"row", None)


@pytest.mark.parametrize("reading", READINGS)
def test_a_declared_row_is_read_whichever_way_lengths_are_meant(reading: str) -> None:
    records = [
        change("I ", emp(42, "Ed"), reading=reading),
        change("UB", emp(42, "Ed"), emp(43, None, "000000001c"), reading=reading),
        change("D ", emp(-1, "é"), reading=reading),
    ]
    for settings in ({}, {"image_length": reading}):
        rows = rows_of(decoder(EMP, **settings), rdw(*records))
        assert [(row["_change_type"], row["ID"], row["NAME"], row["PAY"]) for row in rows] == [
            ("insert", 42, "Ed", Decimal("-109000.00")),
            ("update_preimage", 42, "Ed", Decimal("-109000.00")),
            ("update_postimage", 43, None, Decimal("0.01")),
            ("delete", -1, "é", Decimal("-109000.00")),
        ]
        assert {(row["D"], row["C"]) for row in rows} == {(date(2012, 10, 31), None)}


@pytest.mark.parametrize("reading", READINGS)
def test_images_of_undeclared_tables_are_found_by_all_records_of_a_file(reading: str) -> None:
    records = [change("UB", b"old", b"newer", reading=reading), change("I ", b"row", reading=reading)]
    first, second = rows_of(decoder(), rdw(*records))
    assert (first["before"], first["after"]) == (b"old", b"newer")
    assert (second["before"], second["after"]) == (None, b"row")


def test_lengths_that_can_be_meant_in_two_ways_are_refused_unless_the_way_is_named() -> None:
    record = rdw(change("I ", b"row", reading="total_exclusive"))
    with pytest.raises(ProtocolViolation, match="inclusive and total_exclusive"):
        rows_of(decoder(), record)
    assert bad_bytes(rows_of(decoder(bad="row"), record)) == record
    (row,) = rows_of(decoder(image_length="total_exclusive"), record)
    assert row["after"] == b"row"
    (row,) = rows_of(decoder(image_length="inclusive"), record)
    assert row["after"] == b"\0\x03row"


KINDS = [
    ("DM", "mass_delete", b""),
    ("DM", "mass_delete", b"limit keys"),
    ("DT", "truncate", b""),
    ("DR", "truncate", b""),
    ("CO", "ddl", b"CREATE"),
    ("CM", "command", b"-STO DB"),
    ("SC", "status", b"x"),
]


@pytest.mark.parametrize(("code", "kind", "data"), KINDS)
def test_records_without_a_row_come_with_their_bytes(code: str, kind: str, data: bytes) -> None:
    for tables in (None, EMP):
        (row,) = rows_of(decoder(tables), rdw(header(CHANGETYPE=code) + data))
        assert (row["_change_type"], row["_data"]) == (kind, data)
        assert all(row[name] is None for name in ("before", "after", "ID", "NAME") if name in row)


@pytest.mark.parametrize("total", [None, 0, 2])
def test_an_exchange_names_the_clone(total: int | None) -> None:
    names = b"".join(writer.image(text.encode("cp037")) for text in ("OWNER2", "CLONE"))
    data = names if total is None else struct.pack(">H", len(names) + total) + names
    (row,) = rows_of(decoder(), rdw(header(CHANGETYPE="E") + data))
    assert (row["_change_type"], row["_exchange"]) == ("exchange", {"owner": "OWNER2", "name": "CLONE"})


def test_the_envelope_of_a_truncate_has_debezium_s_letter() -> None:
    (row,) = rows_of(decoder(EMP, "envelope"), rdw(header(CHANGETYPE="DT")))
    assert (row["op"], row["before"], row["after"]) == ("t", None, None)


def test_a_load_s_insert_is_an_insert() -> None:
    (row,) = rows_of(decoder(), rdw(change("IL", b"row")))
    assert (row["_change_type"], row["_header"]["CHANGETYPE"]) == ("insert", "IL")


@pytest.mark.parametrize(
    ("field", "value"),
    [("UORDISP", "A"), ("LOGRECDISP", "A"), ("LOGRECDISP", "S"), ("LOGRECDISP", "O")],
)
def test_what_was_rolled_back_comes_only_where_it_is_asked_for(field: str, value: str) -> None:
    data = rdw(change("I ", b"gone", **{field: value}), change("I ", b"kept"))
    assert [row["after"] for row in rows_of(decoder(), data)] == [b"kept"]
    rows = rows_of(decoder(rolled_back="rows"), data)
    assert (rows[0]["after"], rows[0]["_header"][field]) == (b"gone", value)


@pytest.mark.parametrize("code", ["X", "?", " "])
@pytest.mark.parametrize("field", ["UORDISP", "LOGRECDISP"])
def test_a_row_with_a_disposition_that_is_none_of_the_page_s_is_refused(field: str, code: str) -> None:
    data = rdw(change("I ", b"odd", **{field: code}), change("I ", b"kept"))
    with pytest.raises(ProtocolViolation, match=f"disposition {field} '.?' is unknown"):
        rows_of(decoder(), data)
    rows = rows_of(decoder(bad="row"), data)
    assert [row["after"] for row in good(rows)] == [b"kept"]
    assert bad_bytes(rows) == rdw(change("I ", b"odd", **{field: code}))


def test_a_command_without_a_unit_of_recovery_has_no_disposition_and_comes() -> None:
    (row,) = rows_of(decoder(), rdw(change("CM", b"-STOP", UORDISP=" ", LOGRECDISP=" ")))
    assert (row["_change_type"], row["_data"][-5:]) == ("command", b"-STOP")


# headers


def test_a_timestamp_of_zeros_or_of_no_digits_is_null_and_its_row_stays() -> None:
    for digits in ("00" * 17, "2012103A" + "00" * 13):
        (row,) = rows_of(decoder(), rdw(change("I ", b"row", UORCOMMITTIMESTAMP=digits)))
        assert (row["_commit_timestamp"], row["after"]) == (None, b"row")


@pytest.mark.parametrize("base", [0, 1])
def test_a_header_of_another_layout_is_read_by_its_control_file(base: int) -> None:
    places, at = {"LENGTH": (0, 2)}, 6
    for name in reversed([name for name in FIELDS if name != "LENGTH"]):
        places[name] = (at, FIELDS[name][1])
        at += FIELDS[name][1]
    made = header(places, 300, CHANGETYPE="I ") + payload([b"row"], "exclusive")
    records = [xhdf(name, where + base, width) for name, (where, width) in places.items()]
    control = rdw("XTYPLLCF".encode("cp037"), *records)
    (row,) = rows_of(decoder(control=control), rdw(made))
    assert (row["after"], row["_header"]["LENGTH"]) == (b"row", 300)
    assert row["_header"]["LUWSEQUENCENO"] == writer.USUAL["LUWSEQUENCENO"]


def test_a_longer_header_is_passed_over_by_its_length() -> None:
    made = header(size=300, CHANGETYPE="I ") + payload([b"row"], "exclusive")
    (row,) = rows_of(decoder(), rdw(made))
    assert row["after"] == b"row"


WRONG = [
    ("a header that is too short", lambda: header(size=288, LENGTH=100), "a header of 100 bytes"),
    ("a header longer than the record", lambda: header(size=288, LENGTH=289), "289 bytes"),
    ("a change type that is none", lambda: header(CHANGETYPE="??"), "change type"),
    ("an exchange without names", lambda: header(CHANGETYPE="E") + b"x", "exchange"),
    ("an insert without an image", lambda: header(CHANGETYPE="I "), "lengths"),
]


@pytest.mark.parametrize(("name", "write", "reason"), WRONG, ids=[case[0] for case in WRONG])
def test_a_record_that_cannot_be_read_is_refused_and_its_neighbours_are_read(
    name: str, write: Any, reason: str
) -> None:
    data = rdw(BODIES[1], write())
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder(), data)
    rows = rows_of(decoder(bad="row"), data)
    assert [row["after"] for row in good(rows)] == [b"bb"], name
    assert bad_bytes(rows) == rdw(write())


@pytest.mark.slow
@examples(200)
@given(st.integers(0, 900), st.binary(max_size=12), st.integers(0, 12))
@pytest.mark.only_in_all
def test_whatever_comes_it_is_read_or_refused(at: int, noise: bytes, cut: int) -> None:
    one, two = segments(emp(42, "Ed"), [7, 0])
    for framing, data in (("rdw", rdw(one, BODIES_OF_EMP, two)), ("bdw_rdw", FRAMED["bdw does not"])):
        data = data[:at] + noise + data[at + cut :]
        for tables in (None, EMP):
            rows_of(decoder(tables, bad="row", framing=framing), data)
            with contextlib.suppress(InformixCdcError):
                rows_of(decoder(tables, framing=framing), data)


REFUSED = [
    ("a framing that is none", {"framing": "tape"}, "framing"),
    ("a way to read lengths that is none", {"image_length": "both"}, "image_length"),
    ("floats of nobody", {"float_format": "vax"}, "float_format"),
    ("numbers that are none", {"tables": EMP, "ids": {"TEST.EMP": "4.5"}}, "ids"),
    (
        "a field of another width",
        {"control": rdw(*(xhdf(n, a, w + (n == "DBID")) for n, (a, w) in FIELDS.items()))},
        "field DBID has 3 bytes",
    ),
    (
        "positions that count from 2",
        {"control": rdw(*(xhdf(n, a + 2, w) for n, (a, w) in FIELDS.items()))},
        "do not place",
    ),
    ("a control file without lengths", {"control": rdw(xhdf("DBID", 6, 2))}, "LENGTH"),
]


@pytest.mark.parametrize(("name", "given_", "word"), REFUSED, ids=[case[0] for case in REFUSED])
def test_an_option_that_cannot_be_is_refused(name: str, given_: dict[str, Any], word: str) -> None:
    with pytest.raises(BadOption, match=word):
        decoder(**given_)


def test_a_value_that_is_not_in_the_row_is_refused_by_its_column() -> None:
    with pytest.raises(UnsupportedColumn, match=r"column a of TEST\.EMP is CLOB"):
        decoder({"TEST.EMP": "a CLOB"})


@pytest.mark.parametrize("tables", [None, EMP], ids=["undeclared", "declared"])
@pytest.mark.parametrize("reading", READINGS)
def test_a_file_is_decoded_some_records_at_a_time_and_read_in_one_way(
    reading: str, tables: dict[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = segments(emp(2, "Al"), [7, 0]) if reading == "exclusive" else (b"", b"")
    records = [change("I ", emp(number, "Ed"), reading=reading) for number in range(3, 9)]
    records += [change("UB", emp(1, "x"), emp(2, None), reading=reading), header(CHANGETYPE="DT")]
    records += [change("I ", b"gone", UORDISP="A"), *filter(None, (two, one)), header(CHANGETYPE="??")]
    data = rdw(*records, change("D ", emp(9, "z"), reading=reading))
    whole = rows_of(decoder(tables, bad="row"), data)
    assert len(good(whole)) >= 8
    monkeypatch.setattr(log_reader, "TOGETHER_RECORDS", 2)
    assert sorted(rows_of(decoder(tables, bad="row"), data), key=str) == sorted(whole, key=str)
    batches = [len(rows.batch) for rows in decoder(tables, bad="row").rows([data], ["file"])]
    assert max(batches) <= 4


def test_rows_of_all_parts_decide_how_lengths_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths of inserts fit two ways, and only the first part has a row that fits one of them."""
    records = [change("I ", emp(1, "Ed"), reading="total_exclusive"), *[header(CHANGETYPE="DT")] * 5]
    monkeypatch.setattr(log_reader, "TOGETHER_RECORDS", 2)
    first, *others = rows_of(decoder(EMP), rdw(*records))
    assert (first["ID"], len(others)) == (1, 5)


def test_a_record_for_undo_is_no_change_unless_it_is_asked_for() -> None:
    data = rdw(change("D ", b"undone", SQLTYPE="U"), change("I ", b"kept", SQLTYPE=" "))
    assert [row["after"] for row in rows_of(decoder(), data)] == [b"kept"]
    rows = rows_of(decoder(rolled_back="rows"), data)
    assert [(row["before"], row["_header"]["SQLTYPE"]) for row in rows] == [
        (b"undone", "U"),
        (None, ""),
    ]


def test_a_total_that_is_not_that_of_the_images_is_refused() -> None:
    images = writer.image(b"row")
    for total, errors in ((len(images) + 2, 0), (len(images) + 1, 1), (99, 1)):
        record = header(CHANGETYPE="I ") + struct.pack(">H", total) + images
        rows = rows_of(decoder(bad="row", image_length="total_exclusive"), rdw(record))
        assert sum(row["_error"] is not None for row in rows) == errors, total
