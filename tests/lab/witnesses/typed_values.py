"""Every type that can be captured, with values that a witness must write and read as they are.

Rule: the values are those of `end_to_end/test_every_type.py`; here stands only how JDBC is given one,
and how the text of what it gives is read. What a witness cannot say of a type stands among the known
differences.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from end_to_end.test_every_type import HIGHEST, LOWEST, USUAL, VALUES, name_of, pair
from lab.witnesses.known_differences import Texts

ROWS = (USUAL, LOWEST, HIGHEST, 3)  # the last is that of NULLs
NULL_ROW = ROWS[-1]
ABSENT = "(no such column)"
# A handle of a smart large object is made by the server, and no value to write.
WRITABLE = tuple(text for text in VALUES if text not in ("blob", "clob"))

_INTEGERS = {"smallint": "short", "integer": "int", "serial": "int"}
_OF_PYTHON: dict[type, tuple[str, Callable[[Any], str]]] = {
    bool: ("boolean", lambda value: str(value).lower()),
    int: ("long", str),
    float: ("double", repr),
    Decimal: ("decimal", str),
    date: ("timestamp", lambda value: f"{value.isoformat()} 00:00:00"),
    datetime: ("timestamp", lambda value: value.isoformat(" ")),
    str: ("string", str),
}
_MOMENT_LENGTHS = {"hour": 13, "minute": 16, "second": 19, "fraction(3)": 23, "fraction(5)": 25}
_KINDS = {**_INTEGERS, "smallfloat": "float"}
_NULLS = {"short": "SMALLINT", "int": "INTEGER", "long": "BIGINT", "float": "REAL", "string": "VARCHAR"}


def table_of(declaration: str) -> str:
    """Return the name of the table that has a column x of a type."""
    return f"t_{name_of(declaration)}"


def written(declaration: str, which: int) -> Any:
    """Return a value of one of the four rows as the emulator takes it; serials cannot be NULL."""
    if which == NULL_ROW:
        return 3 if "serial" in declaration else None
    return pair(VALUES[declaration][which])[0]


def bound(declaration: str, which: int) -> str:
    """Return a value as Conversation.java takes it: kind=text."""
    value = written(declaration, which)
    if value is None:
        kind = bound(declaration, USUAL).partition("=")[0]
        return f"null={_NULLS.get(kind, kind.upper())}"
    kind, text = _OF_PYTHON[type(value)]
    if declaration == "date":
        return f"date={value.isoformat()}"
    return f"{_KINDS.get(declaration, kind)}={text(value)}"


def literal(declaration: str, which: int) -> str:
    """Return a value as a statement has it."""
    value = written(declaration, which)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "'t'" if value else "'f'"
    if isinstance(value, int | float | Decimal):
        return repr(value) if isinstance(value, float) else str(value)
    if declaration == "date":
        return f"mdy({value.month}, {value.day}, {value.year})"
    return "'" + _literal_text(declaration, value).replace("'", "''") + "'"


def _literal_text(declaration: str, value: Any) -> str:
    if isinstance(value, datetime):
        text = value.isoformat(" ", "microseconds")
        return text[: _MOMENT_LENGTHS[declaration.rpartition(" to ")[2]]]
    return value.isoformat() if isinstance(value, date) else str(value)


def expected(known: Mapping[str, Texts]) -> dict[str, list[object]]:
    """Return what a witness must be found to show of every type."""
    return {
        text: list(known[text]) if text in known else [_plain(text, written(text, row)) for row in ROWS]
        for text in WRITABLE
    }


def found(known: Mapping[str, Texts], declaration: str, texts: Sequence[Any]) -> list[object]:
    """Return what a witness shows of the four rows: values, or texts where they are known to differ."""
    if declaration in known:
        return list(texts)
    examples = [written(declaration, which) for which in (*ROWS[:-1], USUAL)]
    read = [like(text, example) for text, example in zip(texts, examples, strict=True)]
    return [_plain(declaration, value) for value in read]


def like(text: Any, example: object) -> object:
    """Return a text of JDBC as a value like the example; as it is if it is none."""
    if text is None or example is None:
        return text
    try:
        return _READERS[type(example)](text)
    except (ValueError, ArithmeticError, KeyError):
        return text


def _plain(declaration: str, value: object) -> object:
    """Take away what makes no difference: the blanks of CHAR, the decimals of a SMALLFLOAT."""
    if isinstance(value, str) and declaration.startswith(("char", "nchar")):
        return value.rstrip(" ")
    if isinstance(value, str) and declaration.startswith("interval"):
        return value.strip()
    if isinstance(value, float) and declaration == "smallfloat":
        return struct.unpack("f", struct.pack("f", value))[0]
    return value


def _day(text: str) -> date:
    moment = datetime.fromisoformat(text)
    if moment.time() != moment.min.time():
        raise ValueError(text)
    return moment.date()


_READERS: dict[type, Callable[[str], object]] = {
    bool: lambda text: {"true": True, "false": False}[text],
    int: int,
    float: float,
    Decimal: Decimal,
    date: _day,
    datetime: datetime.fromisoformat,
    str: str,
}
