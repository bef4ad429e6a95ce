"""Spell a column of `syscolumns` the way TABSCHEMA spells it.

Rule: one spelling of types, so that the catalog and the stream go through the same table of types.

Sources: `syscolumns.coltype` and `collength` as the system catalog documents them; DATETIME and
INTERVAL lengths are digits << 8 | first field << 4 | last field (the macros of datetime.h).
"""

from __future__ import annotations

from collections.abc import Callable

_FIELD = {0: "year", 2: "month", 4: "day", 6: "hour", 8: "minute", 10: "second"}
_FLOATING_SCALE = 255
# Flags of syscolumns.coltype: a DISTINCT type, also one made from LVARCHAR or BOOLEAN. Its low byte may
# be that of the type it was made from, but the capture interface does not send such columns.
_DISTINCT = 0x0800 | 0x2000 | 0x4000


def _decimal(name: str) -> Callable[[int], str]:
    def spell(length: int) -> str:
        precision, scale = length >> 8, length & 0xFF
        return f"{name}({precision})" if scale == _FLOATING_SCALE else f"{name}({precision},{scale})"

    return spell


def _sized(name: str) -> Callable[[int], str]:
    return lambda length: f"{name}({length})"


def _varchar(name: str) -> Callable[[int], str]:
    return lambda length: f"{name}({length & 0xFF},{length >> 8 & 0xFF})"


def _qualified(name: str) -> Callable[[int], str]:
    def spell(length: int) -> str:
        digits, first, last = length >> 8, length >> 4 & 0xF, length & 0xF
        fraction = max(last - 10, 0)
        later = (min(last, 10) - min(first, 10)) // 2
        leading = digits - 2 * later - fraction
        start = _FIELD.get(first, f"fraction({fraction})")
        end = _FIELD.get(last, f"fraction({fraction})")
        shown = f"{start}({leading})" if name == "interval" and first in _FIELD else start
        return f"{name} {shown} to {end}"

    return spell


_BY_NUMBER: dict[int, str | Callable[[int], str]] = {
    0: _sized("char"),
    1: "smallint",
    2: "integer",
    3: "float",
    4: "smallfloat",
    5: _decimal("decimal"),
    6: "serial",
    7: "date",
    8: _decimal("money"),
    10: _qualified("datetime"),
    11: "byte",
    12: "text",
    13: _varchar("varchar"),
    14: _qualified("interval"),
    15: _sized("nchar"),
    16: _varchar("nvarchar"),
    17: "int8",
    18: "serial8",
    19: "set",
    20: "multiset",
    21: "list",
    22: "row",
    43: _sized("lvarchar"),
    45: "boolean",
    52: "bigint",
    53: "bigserial",
}
# Types 40 and 41 are "some user-defined type"; these built-in ones are known by their extended id.
_BY_EXTENDED_ID: dict[tuple[int, int], str | Callable[[int], str]] = {
    (40, 1): _sized("lvarchar"),
    (41, 5): "boolean",
    (41, 10): "blob",
    (41, 11): "clob",
}


def type_text(coltype: int, collength: int, extended_id: int) -> str:
    """Return a type as text, `decimal(10,2)`; one we do not know is spelt with its numbers.

    >>> type_text(0x105, 10 * 256 + 2, 0)
    'decimal(10,2)'
    """
    if coltype & _DISTINCT:
        return f"distinct type {extended_id}"
    number = coltype & 0xFF  # 0x100 says NOT NULL, higher bits are flags
    spell = _BY_EXTENDED_ID.get((number, extended_id)) or _BY_NUMBER.get(number)
    if spell is None:
        return f"type {number} extended {extended_id}"
    return spell if isinstance(spell, str) else spell(collength)
