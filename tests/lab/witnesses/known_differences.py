"""What witnesses show that is not what was written, and whose difference it is.

Rule: a difference stands here with the values that the witness shows, and a test asserts those: when a
newer version shows others, the test fails, and the row goes. docs/witnesses.md has the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

Texts = tuple[str | None, str | None, str | None, str | None]

_REFUSED = "(com.informix.stream.impl.IfxStreamException)"
_NO_COLUMN = "(no such column)"


@dataclass(frozen=True)
class Difference:
    """A row of the table: who shows what, whose it is, and what one does about it."""

    witness: str
    what: str
    whose: str
    remedy: str


DIFFERENCES = {
    "boolean": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "a NULL BOOLEAN is shown as false (the flag of NULL in the payload is not looked at)",
        "the client's: rows captured from a live server have the same bytes, `01 00`",
        "none; ask for NULL in another column",
    ),
    "interval": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "a row with a column of INTERVAL cannot be decoded: Unsupported column type",
        "the client's",
        "leave the column out of the capture",
    ),
    "partial datetime": Difference(
        "change-stream client 1.1.3, 1.1.5; JDBC driver, all versions",
        "a DATETIME without a whole date becomes a whole moment: of 1700, or on the first of a month",
        "JDBC's: it has no type for one",
        "none",
    ),
    "fraction": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "a column of DATETIME FRACTION TO FRACTION, and all columns after it, are left out in silence",
        "the client's",
        "leave the column out of the capture",
    ),
    "long record": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "BufferUnderflowException where a record is longer than one read (`buffer`)",
        "the client's: a read may end inside a record, says the CDC guide",
        "a buffer that takes the longest row; Debezium: `cdc.buffersize`",
    ),
    "first of a read": Difference(
        "change-stream client 1.1.5",
        "`getRecord()` hands out the first record of each read and drops the others: 64 are asked for",
        "the client's: `getRecords()` has them all, and 1.1.3 asks for one",
        "`getRecords()`, or `maxRecords(1)`",
    ),
    "swallowed timeouts": Difference(
        "change-stream client 1.1.5",
        "`getRecords()` does not return while only TIMEOUT records come",
        "the client's: the reads bring them",
        "none",
    ),
    "user of a truncate": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "`getUserId()` of a TRUNCATE is the label of its table",
        "the client's: the record has no user, says the CDC guide",
        "`getUserId()` of the transaction's BEGIN",
    ),
    "rounded decimal": Difference(
        "JDBC driver, all versions",
        "a bound BigDecimal of 32 digits is rounded before it is sent",
        "the driver's: the bytes of the bind hold the rounded number",
        "write it as a literal",
    ),
    "native begin": Difference(
        "libsqli",
        "`sqli_begin()` sends the end of a turn (12) before its message, and waits for an answer",
        "libsqli's; its own tool sends `BEGIN WORK` as a statement",
        "the same",
    ),
    "impatient": Difference(
        "libsqli",
        "a pause of 20 ms in an answer is taken for its end: -410, now and then, on a busy machine",
        "libsqli's",
        "none; a machine that does nothing else",
    ),
    "young decoders": Difference(
        "libsqli",
        "SMALLFLOAT, INTERVAL, DATETIME without a year or in the year 1, NULL of text: shown otherwise",
        "libsqli's: IBM's driver reads the same bytes as they were written",
        "none",
    ),
    "lvarchar": Difference(
        "change-stream client 1.1.1",
        "ArrayIndexOutOfBoundsException at a row with LVARCHAR",
        "the client's: 1.1.3 and 1.1.5 read the same bytes",
        "1.1.3 or later",
    ),
}

# What the change-stream client shows of the usual, lowest and highest value and of NULL.
CHANGE_STREAM_TYPES: dict[str, Texts] = {
    "boolean": ("true", "false", "true", "false"),
    "datetime year to month": (
        "2024-03-01 00:00:00.0",
        "0001-01-01 00:00:00.0",
        "9999-12-01 00:00:00.0",
        None,
    ),
    "datetime month to day": (  # 29 February becomes 1 March: 1700 was no leap year
        "1700-03-01 00:00:00.0",
        "1700-01-01 00:00:00.0",
        "1700-12-31 00:00:00.0",
        None,
    ),
    "datetime hour to minute": ("07:05:00", "00:00:00", "23:59:00", None),
    "datetime second to fraction(1)": (
        "1700-11-01 00:00:05.7",
        "1700-11-01 00:00:00.0",
        "1700-11-01 00:00:59.9",
        None,
    ),
    "datetime fraction to fraction(4)": (_NO_COLUMN,) * 4,
    "interval year to month": (_REFUSED,) * 4,
    "interval year(9) to year": (_REFUSED,) * 4,
    "interval month(3) to month": (_REFUSED,) * 4,
    "interval day to second": (_REFUSED,) * 4,
    "interval day(9) to fraction(5)": (_REFUSED,) * 4,
    "interval hour(9) to minute": (_REFUSED,) * 4,
    "interval second(9) to fraction(2)": (_REFUSED,) * 4,
}
# What IBM's JDBC driver shows, of binds and of rows.
JDBC_TYPES: dict[str, Texts] = {
    **{name: shown for name, shown in CHANGE_STREAM_TYPES.items() if name.startswith("datetime")},
    "datetime fraction to fraction(4)": (
        "1700-11-01 00:00:00.125",
        "1700-11-01 00:00:00.0",
        "1700-11-01 00:00:00.9999",
        None,
    ),
}
# It rounds these when they are bound; written as literals they are read as they are.
ROUNDED_BY_JDBC = ("decimal(32,0)", "decimal(32,15)", "decimal(32)")
# What libsqli's decoders are known to read right.
READ_BY_LIBSQLI = (
    *("smallint", "integer", "serial", "bigint", "bigserial", "int8", "serial8"),
    *("decimal(16,2)", "decimal(5,5)", "decimal(32,0)", "money(16,2)", "date"),
)
