"""Ask one question about many tables at once: what grows with the number of tables is asked in lists.

Rule: a question names its tables by `IN (?)`; here the one parameter becomes as many as there are
names, up to a hundred in a statement. Informix takes statements of 64 KB (Guide to SQL: Syntax,
"PREPARE"), and a hundred parameters make 300 bytes; what is bound is at most 13 KB of names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from informix_capture_client.transport import (
    Row,
    Transport,
    checked_rows,
    integer,
    selected_columns,
)

MOST_AT_ONCE = 100
_ONE = "IN (?)"


def rows_about(transport: Transport, statement: str, keys: Iterable[int | str]) -> list[Row]:
    """Return the rows that a question has for any of the keys."""
    wanted = list(dict.fromkeys(keys))
    lists = (wanted[at : at + MOST_AT_ONCE] for at in range(0, len(wanted), MOST_AT_ONCE))
    return [
        row for some in lists for row in checked_rows(transport, about(statement, len(some)), *some)
    ]


def about(statement: str, count: int) -> str:
    """Return a question about so many keys.

    >>> about("SELECT a FROM b WHERE c IN (?)", 3)
    'SELECT a FROM b WHERE c IN (?, ?, ?)'
    """
    return statement.replace(_ONE, f"IN ({', '.join('?' * count)})")


def rows_by_number(transport: Transport, statement: str, keys: Iterable[int]) -> dict[int, list[Row]]:
    """Return the rows that a question has, by their first value, a number, and without it."""
    column = selected_columns(statement)[0]
    found: dict[int, list[Row]] = defaultdict(list)
    for number, *rest in rows_about(transport, statement, keys):
        found[integer(number, statement, column)].append(tuple(rest))
    return found
