"""Read the column list of a CREATE TABLE statement.

This module knows the syntax, not the meaning of types. `"a" decimal(10,2) not null, b date` becomes one
`ColumnDefinition` per column, with type names in lower case and single blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKENS = re.compile(r"""'[^']*'|"(?:[^"]|"")*"|[(),]|[^'"(),]+""")
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|(\w+))\s*')
_QUALIFIED = re.compile(
    r"(datetime|interval)\s+(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*to\s+(\w+)\s*(?:\(\s*(\d+)\s*\))?",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"(double\s+precision|character\s+varying|\w+)\s*(?:\(\s*([\d\s,]*)\s*\))?", re.IGNORECASE
)
_COLLECTION = re.compile(r"(set|multiset|list)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)", re.IGNORECASE)
_NOT_NULL = re.compile(r"\b(not\s+null|primary\s+key)\b", re.IGNORECASE)
_PRIMARY_KEY = re.compile(r"\bprimary\s+key\b", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"]|\"\")*\"")
_TABLE_CONSTRAINT = re.compile(
    r"\s*(primary\s+key|unique|distinct|foreign\s+key|check|constraint)\b(?=.*\()",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TypeText:
    """A type as written: its name, the numbers in parentheses, the fields of a qualifier."""

    name: str
    numbers: tuple[int, ...] = ()
    first_field: str = ""
    last_field: str = ""
    lead_digits: int | None = None
    fraction_digits: int | None = None


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column as written."""

    name: str
    type: TypeText
    not_null: bool


def parse_column_list(text: str) -> list[ColumnDefinition]:
    """Return the columns of a column list in its order; table constraints are passed over."""
    items = [item for item in split_at_commas(text) if not _TABLE_CONSTRAINT.match(item)]
    columns = [_column(item) for item in items]
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a table needs columns of different names, not {names}")
    return columns


def primary_key(text: str) -> tuple[str, ...]:
    """Return the columns of the primary key that a column list declares."""
    for item in split_at_commas(text):
        if _PRIMARY_KEY.search(_QUOTED.sub("", item)):
            if _TABLE_CONSTRAINT.match(item):
                inner = item[item.index("(") + 1 : item.rindex(")")]
                return tuple(column_name(name) for name in split_at_commas(inner))
            return (column_name(_NAME.match(item)[0]),)  # type: ignore[index]  # it begins with a name
    return ()


def split_at_commas(text: str) -> Iterator[str]:
    """Cut a list at the commas that are neither in parentheses nor in quotes."""
    depth, start = 0, 0
    for token in _TOKENS.finditer(text):
        mark = token.group()
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if mark == "," and depth == 0:
            yield text[start : token.start()]
            start = token.end()
    yield text[start:]


def column_name(text: str) -> str:
    """Return a column's name: a delimited one as it is, any other in lower case."""
    match = _NAME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a column name")
    return _name(match)


def _name(match: re.Match[str]) -> str:
    delimited: str | None = match[1]
    return delimited.replace('""', '"') if delimited else match[2].lower()


def _column(item: str) -> ColumnDefinition:
    name = _NAME.match(item)
    rest = item[name.end() :] if name else ""
    if name is None or not rest:
        raise ValueError(f"{item.strip()!r} is not a column with its type")
    type_text, length = _type(rest)
    return ColumnDefinition(_name(name), type_text, _NOT_NULL.search(rest, length) is not None)


def _type(text: str) -> tuple[TypeText, int]:
    if match := _QUALIFIED.match(text):
        kind, first, lead, last, fraction = match.groups()
        digits = [int(number) if number else None for number in (lead, fraction)]
        return TypeText(kind.lower(), (), first.lower(), last.lower(), *digits), match.end()
    if match := _COLLECTION.match(text):
        return TypeText(match[1].lower()), match.end()
    if match := _PLAIN.match(text):
        numbers = tuple(int(number) for number in (match[2] or "").split(",") if number.strip())
        return TypeText(" ".join(match[1].lower().split()), numbers), match.end()
    raise ValueError(f"{text!r} does not begin with a type")
