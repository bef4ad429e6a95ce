"""Rows of log records by their declared columns: exactly, or refused."""

from __future__ import annotations

import struct
from datetime import date, datetime
from decimal import Decimal

import pytest

from db2.decoded import bad_bytes, good
from db2.log_writer import LogWriter
from db2.test_log_records import MARKS, decoder, rows_of
from informix_capture_client.errors import BadOption, ProtocolViolation

TYPES = (
    "S SMALLINT, I INT NOT NULL, B BIGINT, R REAL, F DOUBLE, D DECIMAL(9,2), T DATE, U TIME,"
    " V TIMESTAMP, W CHAR(2), X VARCHAR(9), Y VARCHAR(9), G GRAPHIC(1), L BLOB, Z CHAR(2) FOR BIT DATA"
)


def row_of_types(mark: str) -> bytes:
    packed = [
        struct.pack(mark + "h", -2) + b"\0",
        struct.pack(mark + "i", 7),
        struct.pack(mark + "q", -(2**63)) + b"\0",
        struct.pack(mark + "f", 1.5) + b"\0",
        struct.pack(mark + "d", -0.1) + b"\0",
        bytes.fromhex("010900000d") + b"\0",
        bytes.fromhex("20121031") + b"\0",
        bytes.fromhex("235958") + b"\0",
        bytes.fromhex("20121031235958123456") + b"\0",
        b"ab\0",
    ]
    tail = ["漢".encode("utf-16-be") + b"\0", None, b"\xff\x00\0"]
    fixed = sum(map(len, packed)) + 5 + 5 + 3 + 5 + 3
    entries = struct.pack(mark + "HHB", fixed, 3, 0) + struct.pack(mark + "HHB", 0, 0, 1)
    blob = struct.pack(mark + "HHB", fixed + 3, 6, 0)
    return b"".join(packed) + entries + tail[0] + blob + tail[2] + b"x\xc3\xa9" + b"\x69\0\0\0hi"  # type: ignore[operator]


@pytest.mark.parametrize("mark", MARKS)
def test_a_declared_row_has_its_values_exactly(mark: str) -> None:
    log = LogWriter(mark, fixed=sum((3, 4, 9, 5, 9, 6, 5, 4, 11, 3, 5, 5, 3, 5, 3)))
    (row,) = rows_of(decoder({"4.5": TYPES}), log.row(162, row_of_types(mark)) + log.commit())
    shown = {name: value for name, value in row.items() if len(name) == 1}
    assert shown == {
        "S": -2,
        "I": 7,
        "B": -(2**63),
        "R": 1.5,
        "F": -0.1,
        "D": Decimal("-109000.00"),
        "T": date(2012, 10, 31),
        "U": "23.59.58",
        "V": datetime(2012, 10, 31, 23, 59, 58, 123456),
        "W": "ab",
        "X": "xé",
        "Y": None,
        "G": "漢",
        "L": b"hi",
        "Z": b"\xff\x00",
    }


def test_a_real_row_of_emp_resume_is_read() -> None:
    """As a user posted it (bytes.com, topic 942367): Db2 9.7, little endian, the CLOB is in the row.

    Its header says 15 of its fixed part: a CHAR(6), two entries of 4 bytes, a null byte.
    """
    data = bytes.fromhex(
        "3030303033300F00050014001E0000 6173636969 69000000"
        "5468697320697320616E6F74686572206E657720726573756D65"
    )
    columns = "EMPNO CHAR(6) NOT NULL, FORMAT VARCHAR(10) NOT NULL, RESUME CLOB"
    log = LogWriter(fixed=15)
    (row,) = rows_of(decoder({"4.5": columns}), log.row(162, data) + log.commit())
    assert (row["EMPNO"], row["FORMAT"], row["RESUME"]) == (
        "000030",
        "ascii",
        "This is another new resume",
    )


SPOILT = [
    ("a row shorter than its columns", "but its columns need", b"", 5),
    ("a string outside of the row", "outside of the row", struct.pack("<iHHB", 1, 9, 200, 0), 0),
    ("a null byte that is none", "null byte", struct.pack("<iHHB", 1, 9, 0, 7), 0),
    ("text of another code page", "utf-8", struct.pack("<iHHB", 1, 9, 1, 0) + b"\xff", 0),
]


@pytest.mark.parametrize(("name", "reason", "data", "cut"), SPOILT, ids=[case[0] for case in SPOILT])
def test_a_row_that_is_not_as_declared_is_refused_by_its_column(
    name: str, reason: str, data: bytes, cut: int
) -> None:
    log, columns = LogWriter(fixed=9), {"4.5": "a INT NOT NULL, b VARCHAR(300)"}
    sound = log.row(162, struct.pack("<iHHB", 5, 9, 1, 0) + b"x")
    spoilt = log.row(162, data[: len(data) - cut] if cut else data)
    with pytest.raises(ProtocolViolation, match=reason):
        rows_of(decoder(columns), sound + spoilt + log.commit())
    rows = rows_of(decoder(columns, bad="row"), sound + spoilt + log.commit())
    assert [row["a"] for row in good(rows)] == [5], name
    assert bad_bytes(rows) == spoilt


def test_a_row_of_another_table_is_refused_or_left_out_as_asked() -> None:
    log = LogWriter()
    data = log.row(162, b"other", table=(4, 6)) + log.row(162, struct.pack("<i", 5)) + log.commit()
    with pytest.raises(ProtocolViolation, match="table space 4, table 6 is not declared"):
        rows_of(decoder({"4.5": "a INT NOT NULL"}), data)
    (row,) = rows_of(decoder({"4.5": "a INT NOT NULL"}, other_tables="skip"), data)
    assert (row["a"], row["_change_ordinal"]) == (5, 1)


@pytest.mark.parametrize(("digits", "mark"), [("(1)", "f"), ("(21)", "f"), ("(25)", "d"), ("", "d")])
def test_a_float_has_the_bytes_of_its_digits(digits: str, mark: str) -> None:
    log = LogWriter(fixed=4 + struct.calcsize(mark))
    tables = {"4.5": f"A FLOAT{digits} NOT NULL, B INT NOT NULL"}
    data = log.row(162, struct.pack(f"<{mark}i", 1.5, 7)) + log.commit()
    assert [(row["A"], row["B"]) for row in rows_of(decoder(tables), data)] == [(1.5, 7)]


@pytest.mark.parametrize("digits", [0, 22, 24, 54])
def test_a_float_whose_bytes_depend_on_the_platform_is_refused(digits: int) -> None:
    with pytest.raises(
        BadOption, match=rf"FLOAT\({digits}\).* Write REAL for 4 bytes, or DOUBLE for 8"
    ):
        decoder({"4.5": f"A FLOAT({digits})"})


# how it is declared, and what is told of a row of A INT NOT NULL, V VARCHAR(20)
OTHERWISE = [
    ("A INT NOT NULL, V VARCHAR(20), N INT", r"2 of the 3, from before ALTER TABLE ADD COLUMN"),
    ("A INT, V VARCHAR(20)", "do not match the row"),
    ("A INT NOT NULL, V VARCHAR(20) NOT NULL", "do not match the row"),
    ("A BIGINT NOT NULL", "do not match the row"),
]


@pytest.mark.parametrize(("columns", "reason"), OTHERWISE)
def test_a_row_whose_fixed_part_is_not_that_of_the_columns_is_refused(
    columns: str, reason: str
) -> None:
    """Also where its bytes are enough for them: they would be read as what they are not."""
    log = LogWriter(fixed=9)
    row = log.row(162, struct.pack("<iHHB", 1, 9, 12, 0) + b"Hello, world")
    as_it_is = {"4.5": "A INT NOT NULL, V VARCHAR(20)"}
    (found,) = rows_of(decoder(as_it_is), row + log.commit())
    assert (found["A"], found["V"]) == (1, "Hello, world")
    for data in (row + log.commit(), row + log.out_of_row() + log.commit(), row):
        with pytest.raises(ProtocolViolation, match=rf"fixed part has 9 bytes.*{reason}"):
            rows_of(decoder({"4.5": columns}), data)


def test_of_an_update_each_row_has_a_fixed_part_of_its_own() -> None:
    """As the first update of a row behind ALTER TABLE ADD COLUMN."""
    log = LogWriter(fixed=4)
    old, new = struct.pack("<i", 1), struct.pack("<ii", 1, 2)
    update = bytearray(log.update(old, new))
    struct.pack_into("<H", update, len(update) - len(new) - 2, 8)
    tables = {"4.5": "A INT NOT NULL, N INT NOT NULL"}
    with pytest.raises(ProtocolViolation, match=r"fixed part has 4 bytes.*1 of the 2"):
        rows_of(decoder(tables), bytes(update) + log.commit())
    struct.pack_into("<H", update, 40 + 20 + 6, 8)
    with pytest.raises(ProtocolViolation, match="a row of 4 bytes, but its columns need 8"):
        rows_of(decoder(tables), bytes(update) + log.commit())
