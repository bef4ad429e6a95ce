"""Read the column list that the server describes a table with.

Rule: the text has CREATE TABLE syntax (CDC guide, table 3-9); nothing is evaluated, only cut at
commas outside parentheses and quotes. A type is kept as text until `column_types` compiles it.

    id serial, "Odd, Name" decimal(10,2), ts datetime year to fraction(3), vc varchar(20,0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from informix_cdc.capture_client.errors import ProtocolViolation

_TOKEN = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]|[^"'(),]+)""")
_NAMED = re.compile(r"""\s*(?:"((?:[^"]|"")*)"|([^\s"]+))\s+(\S.*?)\s*""", re.DOTALL)
_CONSTRAINT = re.compile(r"\s+(not\s+null|null|default|primary|unique|references|check|constraint)\b.*")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the server describes it; `type_text` is lower case and free of constraints."""

    name: str
    type_text: str


def parse_columns(text: str) -> tuple[Column, ...]:
    """Return the columns of a column list, in its order.

    Raises:
        ProtocolViolation: the text is not a column list.

    >>> [c.type_text for c in parse_columns("id serial, d decimal(10,2) not null")]
    ['serial', 'decimal(10,2)']
    """
    columns = tuple(_column(piece) for piece in _pieces(text.rstrip("\0")))
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise ProtocolViolation(f"a column list names a column twice: {text[:200]!r}.")
    return columns


def _pieces(text: str) -> Iterator[str]:
    """Cut at commas that are in no parentheses and no quotes."""
    piece, depth = "", 0
    for token in _TOKEN.findall(text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "," and depth == 0:
            yield piece
            piece = ""
        else:
            piece += token
    yield piece


def _column(piece: str) -> Column:
    found = _NAMED.fullmatch(piece)
    if not found:
        raise ProtocolViolation(f"{piece.strip()[:200]!r} in a column list is no column.")
    quoted, plain, type_text = found.groups()
    name = plain if quoted is None else quoted.replace('""', '"')
    plain_type = " ".join(_CONSTRAINT.sub("", type_text.lower()).split())
    return Column(name, re.sub(r"\s*([(),])\s*", r"\1", plain_type).replace(")to", ") to"))
