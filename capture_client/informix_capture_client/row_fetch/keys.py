"""Convert the text of a fetched value to an argument of the next query.

Rule: the declared type decides. What a transport would send as text in a form that a setting of the
server or of the environment decides (DBDATE for a DATE), goes as a value of its own.
"""

from __future__ import annotations

import datetime
import re

from informix_capture_client.transport import Argument

_INTEGERS = ("smallint", "integer", "int", "serial", "bigint", "bigserial", "int8", "serial8")
_BOOLEANS = {"0": "f", "1": "t"}  # a driver prints digits, and a server reads letters
_FAMILY = re.compile(r"[a-z0-9_]+")


def key_argument(type_text: str, text: str) -> Argument:
    """Return a value of `Blocks.last_row` as an argument.

    >>> key_argument("serial", "7"), key_argument("date", "2024-02-29"), key_argument("char(3)", "7  ")
    (7, datetime.date(2024, 2, 29), '7  ')
    """
    found = _FAMILY.match(type_text)
    family = found[0] if found else ""
    if family in _INTEGERS:
        return int(text)
    if family == "date":
        return datetime.date.fromisoformat(text)
    return _BOOLEANS.get(text, text) if family == "boolean" else text
