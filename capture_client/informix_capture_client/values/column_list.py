"""Parse the column list with which the server describes a table.

Rule: the text has CREATE TABLE syntax (CDC guide, table 3-9); nothing is evaluated, only cut at
commas outside parentheses and quotes. A type is kept as text until `column_types` compiles it.

    id serial, "Odd, Name" decimal(10,2), ts datetime year to fraction(3), vc varchar(20,0)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from informix_capture_client.errors import ProtocolViolation
from informix_capture_client.masks import Mask

_TOKEN = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*'|[(),]|[^"'(),]+)""")
_NAME = re.compile(r""""((?:[^"]|"")+)"(?=\s)|([^\s"(),']+)(?=\s)""")
_CONSTRAINT = re.compile(r" (not null|null|default|primary|unique|references|check|constraint)\b.*")
_SHOWN = 200  # how much of a text that makes no sense an error quotes


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the server describes it; `type_text` is lower case and free of constraints.

    `mask` is what the user wants its values to be replaced by.
    """

    name: str
    type_text: str
    mask: Mask | None = None

    @property
    def mask_of_values(self) -> Mask | None:
        """The mask of what the log has of it: not of the content of a large object."""
        return None if self.mask is None or self.mask.is_of_content else self.mask


def parse_columns(text: str) -> tuple[Column, ...]:
    """Return the columns of a column list, in its order.

    Raises:
        ProtocolViolation: the text is not a column list.

    >>> [c.type_text for c in parse_columns("id serial, d decimal(10,2) not null")]
    ['serial', 'decimal(10,2)']
    """
    columns = tuple(_column(piece.strip()) for piece in _pieces(text.rstrip("\0")))
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise ProtocolViolation(f"a column list names a column twice: {text[:_SHOWN]!r}.")
    return columns


def _pieces(text: str) -> Iterator[str]:
    """Split at commas outside parentheses and quotes."""
    depth, begin, end = 0, 0, 0
    for token in _TOKEN.finditer(text):
        if token.start() != end or depth < 0:
            break
        end = token.end()
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "," and depth == 0:
            yield text[begin : token.start()]
            begin = end
    if end != len(text) or depth != 0:
        raise ProtocolViolation(f"quotes or parentheses do not match in {text[:_SHOWN]!r}.")
    yield text[begin:]


def _column(piece: str) -> Column:
    found = _NAME.match(piece)
    if not found:
        raise ProtocolViolation(f"{piece[:_SHOWN]!r} in a column list is not a column.")
    quoted, plain = found.groups()
    name = plain if quoted is None else quoted.replace('""', '"')
    # Blanks are counted first: patterns that look for runs of them would take quadratic time.
    type_text = _CONSTRAINT.sub("", " ".join(piece[found.end() :].lower().split()))
    return Column(name, re.sub(r" ?([(),]) ?", r"\1", type_text).replace(")to", ") to"))
