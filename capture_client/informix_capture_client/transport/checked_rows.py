"""Run queries and check their results before values are used.

Rule: unexpected columns, or a text instead of a number, raise a `ProtocolViolation` that names
statement and column. Callers parse numbers of a row only with these functions.
"""

from __future__ import annotations

import math
import re
from functools import cache

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.transport.base import Argument, Row, Transport

_SELECTED = re.compile(r"SELECT (.+?) FROM ")
_BETWEEN_COLUMNS = re.compile(r", (?![^(]*\))")  # not within dbinfo('version', 'full')
_ALIAS = re.compile(r"\bt\.")
_SHOWN_CHARACTERS = 40
_SHOWN_OF_STATEMENT = 200  # the rest may be a hundred question marks
_REMEDY = "Check that host, port and server name an Informix server; if so, report its version."
MOST_32_BITS = (1 << 32) - 1
_MOST = (1 << 63) - 1


def checked_rows(transport: Transport, statement: str, *arguments: Argument) -> list[Row]:
    """Run a query and return its rows, each with one value per column of the statement.

    Raises:
        ProtocolViolation: a row has more or fewer; and as `Transport.rows` does.
    """
    rows = transport.rows(statement, *arguments)
    count = len(selected_columns(statement))
    for row in rows:
        if count and len(row) != count:
            raise ProtocolViolation(
                f"The server returned {len(row)} columns for {statement[:_SHOWN_OF_STATEMENT]!r}"
                f" instead of {count}.",
                _REMEDY,
            )
    return rows


@cache
def selected_columns(statement: str) -> tuple[str, ...]:
    """Return the columns that a SELECT names, without alias; empty for `*` and for other statements.

    >>> selected_columns("SELECT t.uniqid, dbinfo('version', 'full') FROM logs t WHERE t.a = ?")
    ('uniqid', "dbinfo('version', 'full')")
    """
    found = _SELECTED.match(statement)
    if found is None or found[1] == "*":
        return ()
    return tuple(_BETWEEN_COLUMNS.split(_ALIAS.sub("", found[1])))


def integer(value: str | None, statement: str, column: str, most: int = _MOST) -> int:
    """Return the integer in a column of a result, ignoring blanks; NULL is 0.

    Raises:
        ProtocolViolation: it is not an integer, or its magnitude is above `most`.
    """
    try:
        number = int(value or 0)
    except ValueError:
        raise _no_number(value, statement, column) from None
    if abs(number) > most:
        raise _no_number(value, statement, column)
    return number


def integers(row: Row, statement: str, most: int = _MOST) -> tuple[int, ...]:
    """Return the values of a row of integers; see `integer`."""
    columns = selected_columns(statement)
    return tuple(
        integer(value, statement, name, most) for value, name in zip(row, columns, strict=True)
    )


def real(value: str | None, statement: str, column: str) -> float:
    """Return the number in a FLOAT column; NULL is 0.

    Raises:
        ProtocolViolation: it is not a finite number.
    """
    try:
        number = float(value or 0)
    except ValueError:
        raise _no_number(value, statement, column) from None
    if not math.isfinite(number):
        raise _no_number(value, statement, column)
    return number


def _no_number(value: str | None, statement: str, column: str) -> ProtocolViolation:
    shown = (value or "")[:_SHOWN_CHARACTERS]
    return ProtocolViolation(
        f"The server returned {shown!r} in column {column} of {statement!r} instead of a number.",
        _REMEDY,
    )
