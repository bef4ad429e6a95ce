"""Records of the LOB manager that do not fit the row in front of which they stand.

Rule: they are reported in `_warnings`; their bytes are delivered in `_lobs`, whatever the row says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from informix_db2.declared_tables import LOBS, Db2Column
from informix_db2.log_records.lob_records import (
    ADDED,
    DELETE_DATA,
    STRINGS_COLUMN,
    LobValue,
    LobValues,
    strings_of,
)
from informix_db2.refused_bytes import BadDb2Value

# Whether the value of a column is elsewhere than in its row, None where it is NULL; by number, and only
# of columns that may be elsewhere.
Elsewhere = dict[int, bool | None]


def misfits_of(
    lobs: LobValues, columns: Sequence[Db2Column], elsewhere: Elsewhere, is_old: bool
) -> list[str]:
    """Return a sentence for each value that is not one of the row as declared."""
    found: list[str] = []
    for value in lobs.values():
        if value.column == STRINGS_COLUMN:
            if value.data is not None and is_old == (value.operation == DELETE_DATA):
                found += _of_strings(value.data, columns, elsewhere)
        elif misfit := _of_column(value, columns, elsewhere, is_old):
            found.append(f"large-object records of column {misfit}")
    return found


def _of_column(
    value: LobValue, columns: Sequence[Db2Column], elsewhere: Elsewhere, is_old: bool
) -> str | None:
    if value.column >= len(columns):
        return f"{value.column}, counted from 0: the table is declared with {len(columns)} columns"
    column = columns[value.column]
    if column.kind not in LOBS:
        return f"{column.name}, which is declared {column.kind}"
    if is_old or value.operation not in ADDED or elsewhere[value.column]:
        return None
    where = "says is NULL" if elsewhere[value.column] is None else "has in itself"
    return f"{column.name}, which the row {where}"


def _of_strings(data: bytes, columns: Sequence[Db2Column], elsewhere: Elsewhere) -> Iterator[str]:
    try:
        strings = strings_of(data, len(columns), ("little", "big"))
    except BadDb2Value as bad:
        yield bad.reason
        return
    for number, string in enumerate(strings):
        if string and (columns[number].kind in LOBS or not elsewhere.get(number)):
            size, name = len(string), columns[number].name
            yield f"column 65535 has {size} bytes of column {name}, of which the row says otherwise"
