"""Values of delimited messages by their declared types: exactly, or refused."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from db2.decoded import bad_bytes, good, rows_of
from db2.message_writer import Written, by_arrow, by_hand
from db2.test_q_messages import decoder
from informix_capture_client.errors import (
    ProtocolViolation,
)

TYPED = [
    ("SMALLINT", -32768, -32768),
    ("INTEGER", 2147483647, 2147483647),
    ("BIGINT", -(2**63), -(2**63)),
    ("DECIMAL(31,3)", "9999999999999999999999999999.125", Decimal("9999999999999999999999999999.125")),
    ("DOUBLE", "-1.5E+300", -1.5e300),
    ("REAL", "0.1", 0.10000000149011612),
    ("REAL", "-3.4028234E+38", -3.4028234663852886e38),
    ("REAL", "inf", float("inf")),
    ("REAL", "-0.0E+5", 0.0),
    ("DOUBLE", "0", 0.0),
    ("DOUBLE", "-Infinity", float("-inf")),
    ("DOUBLE", "2.5E-308", 2.5e-308),
    ("INTEGER", "+7", 7),
    ("DECFLOAT", "1.10E-3", "1.10E-3"),
]
QUOTED = [
    ("CHAR(4)", "ab  ", "ab  "),
    ("VARGRAPHIC(4)", "漢字", "漢字"),
    ("CLOB", "a\nb", "a\nb"),
    ("LONG VARCHAR", "", ""),
    ("GRAPHIC(2)", "漢字", "漢字"),
    ("LONG VARGRAPHIC", "漢", "漢"),
    ("DBCLOB", "漢", "漢"),
    ("XML", "<a>1</a>", "<a>1</a>"),
    ("TIME", "06:00 PM", "06:00 PM"),
    ("BLOB", "00fF10", b"\x00\xff\x10"),
    ("CHAR(2) FOR BIT DATA", "c1c2", b"\xc1\xc2"),
    ("LONG VARCHAR FOR BIT DATA", "c1c2", b"\xc1\xc2"),
    ("DATE", "2007-08-06", date(2007, 8, 6)),
    ("DATE", "08/06/2007", date(2007, 8, 6)),
    ("DATE", "06.08.2007", date(2007, 8, 6)),
    ("TIME", "18.00.52", "18.00.52"),
    ("TIMESTAMP", "2007-08-06-23.59.59.123456", datetime(2007, 8, 6, 23, 59, 59, 123456)),
    ("TIMESTAMP", "2007-08-06 23:59:59.5", datetime(2007, 8, 6, 23, 59, 59, 500000)),
    ("TIMESTAMP(0)", "0001-01-01-00.00.00", datetime(1, 1, 1)),
    ("TIMESTAMP", "2007-12-31-24.00.00.000000", datetime(2008, 1, 1)),
    ("TIME", "24:00:00", "24:00:00"),
    ("TIME", "12 AM", "12 AM"),
    ("TIMESTAMP", "9999-12-31-23.59.59.999999", datetime.max),
    ("TIMESTAMP(9)", "9999-12-31-24.00.00.000000000", "9999-12-31-24.00.00.000000000"),
    ("TIMESTAMP(7)", "2007-08-06 23:59:59.1234567+02:00", "2007-08-06 23:59:59.1234567+02:00"),
    ("TIMESTAMP(12)", "2007-08-06-23.59.59.123456789012", "2007-08-06-23.59.59.123456789012"),
]


def _record(value: str, *, quoted: bool) -> bytes:
    written = '"' + value + '"' if quoted else value
    return by_arrow(Written("insert", None, [None])).replace(b",,\n", f",,{written}\n".encode())


@pytest.mark.parametrize(("kind", "text", "value"), TYPED + QUOTED)
def test_a_declared_column_has_its_value_exactly(kind: str, text: object, value: object) -> None:
    is_quoted = (kind, text, value) in QUOTED
    (row,) = rows_of(decoder({"TEST.T": f"c {kind}"}), _record(str(text), quoted=is_quoted))
    assert row["c"] == value


WRONG = [
    ("INTEGER", "2147483648", False),
    ("INTEGER", "0x1F", False),
    ("INTEGER", "1.0", False),
    ("INTEGER", "5", True),
    ("SMALLINT", "40000", False),
    ("DECIMAL(5,2)", "1.234", False),
    ("DECIMAL(5,2)", "1234.5", False),
    ("DECIMAL(5,2)", "1,5", True),
    ("DOUBLE", "0x1p3", False),
    ("VARCHAR(5)", "bare", False),
    ("REAL", "1E39", False),
    ("REAL", "-1E39", False),
    ("REAL", "1E-60", False),
    ("DOUBLE", "1E400", False),
    ("DOUBLE", "-0.1e-400", False),
    ("DATE", "2007-02-30", True),
    ("DATE", "0000-01-01", True),
    ("DATE", "12/31/0000", True),
    ("TIMESTAMP", "0000-01-01-00.00.00", True),
    ("TIMESTAMP", "0000-12-31-24.00.00", True),
    ("TIMESTAMP", "2006-06-30-24.00.00\n", True),
    ("TIMESTAMP", "2006-06-30-24.00.01", True),
    ("TIMESTAMP(12)", "2006-99-99-99.99.99", True),
    ("TIMESTAMP(12)", "2006-02-30-01.00.00", True),
    ("TIMESTAMP(12)", "0000-01-01-00.00.00", True),
    ("TIMESTAMP(12)", "2006-02-20-24.00.01", True),
    ("TIME", "99.99.99", True),
    ("TIME", "24.00.01", True),
    ("TIME", "23:60", True),
    ("TIME", "13:00 PM", True),
    ("DATE", "2007-8-6", True),
    ("TIMESTAMP", "2006-06-30-18.05.67", True),
    ("TIMESTAMP", "2006-06-30-18.05.07.1234567", True),
    ("TIMESTAMP", "9999-12-31-24.00.00", True),
    ("TIME", "later", True),
    ("BLOB", "abc", True),
    ("BLOB", "a b0", True),
]


@pytest.mark.parametrize(("kind", "text", "quoted"), WRONG)
def test_a_value_that_is_none_of_its_type_is_refused_by_its_column(
    kind: str, text: str, quoted: bool
) -> None:
    message, sound = _record(text, quoted=quoted), by_arrow(Written("delete", [None], None))
    with pytest.raises(ProtocolViolation, match="file 0, byte 0, record 0: column c "):
        rows_of(decoder({"TEST.T": f"c {kind}"}), message + sound)
    rows = rows_of(decoder({"TEST.T": f"c {kind}"}, bad="row"), sound + message + sound)
    assert [row["_change_type"] for row in good(rows)] == ["delete", "delete"]
    assert bad_bytes(rows) == message


PUT = [
    ("2007218", "000000000000", datetime(2007, 8, 6)),
    ("2007365", "235959999999", datetime(2007, 12, 31, 23, 59, 59, 999999)),
    ("2008366", "010203000004", datetime(2008, 12, 31, 1, 2, 3, 4)),
    ("2007359", "100000000000", datetime(2007, 12, 25, 10)),
    ("2007099", "000000000000", datetime(2007, 4, 9)),
    ("2007366", "000000000000", None),
    ("2007000", "000000000000", None),
    ("2007001", "240000000000", None),
    ("2007001", "006000000000", None),
    ("2007001", "0000", None),
]


@pytest.mark.parametrize(("day", "time", "at"), PUT)
def test_the_day_of_the_year_and_the_time_say_when_a_message_was_put(
    day: str, time: str, at: datetime | None
) -> None:
    message = by_arrow(Written("insert", None, [1]))
    message = message.replace(b"2006030", day.encode()).replace(b"182318000005", time.encode())
    (row,) = rows_of(decoder(), message)
    assert row["_header"]["put_timestamp"] == at
    assert (row["_header"]["put_date"], row["_header"]["put_time"]) == (day, time)


def test_in_a_row_of_hexadecimal_digits_only_characters_are_digits_and_large_objects_are_null() -> None:
    """IBM: LOB and XML columns of such a row are sent as NULL; other rows of the message are text."""
    record = by_arrow(Written("update", [1, None, None, None], [2, None, None, None]))
    columns = "n INT, c CHAR(3), g GRAPHIC(1), l CLOB"
    digits = record.replace(b'"IBM"', b'"IBM-INVALID-COLUMN-0002-B-HEX"').replace(
        b"1,,,,2,,,", b'1,"4A6f","6f22",,2,"4B","6F22",'
    )
    plain = record.replace(b"1,,,,2,,,", '1,"4A","漢","x",2,,,'.encode())
    decode = decoder({"TEST.T": columns}, source_encoding="latin-1", source_graphic_encoding=1200)
    rows = rows_of(decode, digits + plain)
    assert [(row["n"], row["c"], row["l"]) for row in rows] == [
        (1, "Jo", None),
        (2, "K", None),
        (1, "4A", "x"),
        (2, None, None),
    ]
    assert (rows[0]["g"], rows[2]["g"]) == ("漢", "漢")


def test_of_many_values_exactly_the_bad_ones_are_refused() -> None:
    records = [_record(text, quoted=False) for text in ("1", "2", "x", "4", "5", "y")]
    rows = rows_of(decoder({"TEST.T": "c INT"}, bad="row"), b"".join(records))
    assert [row["c"] for row in good(rows)] == [1, 2, 4, 5]
    assert bad_bytes(rows) == records[2] + records[5]


def _of_digits(text: str) -> bytes:
    record = by_arrow(Written("insert", None, [None, None]))
    digits = record.replace(b'"IBM"', b'"IBM-INVALID-COLUMN-0001-A-HEX"')
    return digits[: -len(",,\n")] + f",{text},\n".encode()


def test_no_digits_are_an_empty_string_and_half_a_byte_is_refused() -> None:
    decode = decoder({"TEST.T": "c CHAR(3), d CHAR(3)"}, bad="row", source_encoding="latin-1")
    for text in ('"4"', '"4 "', '"4é"'):
        (row,) = rows_of(decode, _of_digits(text))
        assert "column c is not an even number of hexadecimal digits" in row["_error"], text
    rows = rows_of(decode, _of_digits('""') + _of_digits("") + _of_digits('"41"'))
    assert [(row["c"], row["_error"]) for row in rows] == [("", None), (None, None), ("A", None)]


def test_no_digits_are_no_number() -> None:
    (row,) = rows_of(decoder({"TEST.T": "c INT, d INT"}, bad="row"), _of_digits('""'))
    assert row["_error"]


def test_characters_that_the_source_has_not_are_refused_by_their_column() -> None:
    decode = decoder({"TEST.T": "c CHAR(3), d CHAR(3)"}, bad="row", source_encoding="ascii")
    rows = rows_of(decode, _of_digits('"41"') + _of_digits('"E9"'))
    assert (rows[0]["c"], rows[1]["_error"][:8]) == ("A", "column c")


def test_digits_of_graphic_columns_have_a_code_page_of_their_own() -> None:
    """X'42C1' is one character of two bytes; as bytes of code page 37 it would be two others."""
    columns = {"TEST.T": "c GRAPHIC(1), d CHAR(1)"}
    (row,) = rows_of(decoder(columns, source_encoding=37), _of_digits('"42C1"'))
    assert row["c"] == "42C1"
    (row,) = rows_of(decoder(columns, source_graphic_encoding=1200), _of_digits('"42C1"'))
    assert row["c"] == "\u42c1"


def test_a_transaction_of_one_group_and_no_transaction_of_half_a_one() -> None:
    (row,) = rows_of(decoder(), by_arrow(Written("insert", None, [1], transaction="0388")))
    assert row["_transaction_id"] == "0388"
    (row,) = rows_of(decoder(bad="row"), by_arrow(Written("insert", None, [1], transaction="0388:")))
    assert "groups of four" in row["_error"]


def test_records_are_numbered_in_each_value_anew() -> None:
    sound = by_arrow(Written("insert", None, ["x"]))
    with pytest.raises(ProtocolViolation, match=r"file 1, byte 0, record 0: "):
        rows_of(decoder(), sound + sound, sound.replace(b'"x"', b'x"y"') + sound)


@pytest.mark.parametrize(
    ("point", "encoding", "text"),
    [
        (",", "utf-8", "12,50"),
        ("0x2C", "utf-8", "12,50"),
        ("0x2E", "utf-8", "12.50"),
        (",", "cp037", "12,50"),
        ("0x6B", "cp037", "12,50"),
        ("0x2c", "cp932", "12,50"),
    ],
)
def test_a_decimal_point_given_as_a_byte_reads_as_its_character_does(
    point: str, encoding: str, text: str
) -> None:
    data = by_hand(Written("insert", None, [99999]), ";").decode().replace("99999", text)
    settings = {"column_delimiter": ";", "decimal_point": point, "encoding": encoding}
    (row,) = rows_of(decoder({"TEST.T": "c DECIMAL(9,2)"}, **settings), data.encode(encoding))
    assert row["c"] == Decimal("12.50")


def test_a_midnight_does_not_change_what_is_refused_beside_it() -> None:
    texts = ["2006-06-30-24.00.00", "2006-06-30-24.00.00\n", "2006-06-30-24.00.00.0"]
    records = [_record(text, quoted=True) for text in (*texts, "2006-06-30-23.00.00")]
    rows = rows_of(decoder({"TEST.T": "c TIMESTAMP"}, bad="row"), b"".join(records))
    assert [row["c"] for row in good(rows)] == [datetime(2006, 7, 1)] * 2 + [datetime(2006, 6, 30, 23)]
    assert bad_bytes(rows) == records[1]
