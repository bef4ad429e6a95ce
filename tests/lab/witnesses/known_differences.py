"""Differences between what was written and what other vendors' clients show, with their causes.

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
    """A row of the table: the client, the difference, its cause and a workaround."""

    witness: str
    what: str
    whose: str
    remedy: str


DIFFERENCES = {
    "boolean": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "shows a NULL BOOLEAN as false (ignores the NULL flag in the payload)",
        "the client: rows captured from a live server have the same bytes, `01 00`",
        "none; record NULL in another column",
    ),
    "interval": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "cannot decode a row with an INTERVAL column: Unsupported column type",
        "the client",
        "leave the column out of the capture",
    ),
    "partial datetime": Difference(
        "change-stream client 1.1.3, 1.1.5; JDBC driver, all versions",
        "returns a DATETIME without a full date as a timestamp in 1700, or on the first of a month",
        "JDBC: it has no type for such values",
        "none",
    ),
    "fraction": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "silently leaves out a column of DATETIME FRACTION TO FRACTION and all columns after it",
        "the client",
        "leave the column out of the capture",
    ),
    "long record": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "BufferUnderflowException if a record is longer than one read (`buffer`)",
        "the client: the CDC guide says that a read may end inside a record",
        "a buffer larger than the longest row; Debezium: `cdc.buffersize`",
    ),
    "first of a read": Difference(
        "change-stream client 1.1.5",
        "`getRecord()` returns the first record of each read (of up to 64) and drops the others",
        "the client: `getRecords()` returns all, and 1.1.3 reads one at a time",
        "`getRecords()`, or `maxRecords(1)`",
    ),
    "swallowed timeouts": Difference(
        "change-stream client 1.1.5",
        "`getRecords()` does not return while it receives only TIMEOUT records",
        "the client: its reads return the records",
        "none",
    ),
    "user of a truncate": Difference(
        "change-stream client 1.1.3, 1.1.5",
        "`getUserId()` of a TRUNCATE returns the label of its table",
        "the client: the CDC guide says that the record has no user",
        "`getUserId()` of the transaction's BEGIN",
    ),
    "rounded decimal": Difference(
        "JDBC driver, all versions",
        "rounds a bound BigDecimal of 32 digits before sending it",
        "the driver: the bytes of the bind contain the rounded number",
        "write it as a literal",
    ),
    "native begin": Difference(
        "libsqli",
        "`sqli_begin()` sends SQ_EOT (12) before its message, and waits for an answer",
        "libsqli; its own tool sends `BEGIN WORK` as a statement",
        "send `BEGIN WORK` as a statement",
    ),
    "impatient": Difference(
        "libsqli",
        "treats a pause of 20 ms in an answer as its end: sometimes -410 on a busy machine",
        "libsqli",
        "run it on an idle machine",
    ),
    "young decoders": Difference(
        "libsqli",
        "shows other values for SMALLFLOAT, INTERVAL, DATETIME without a year or in year 1, NULL text",
        "libsqli: IBM's driver reads the same bytes correctly",
        "none",
    ),
    "lvarchar": Difference(
        "change-stream client 1.1.1",
        "ArrayIndexOutOfBoundsException for a row with LVARCHAR",
        "the client: 1.1.3 and 1.1.5 read the same bytes",
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
