"""Choose the key by which a table's rows are read in chunks and identified.

Rule: a key is unique, never NULL, captured, and has types whose different values stay different after
decoding. Other keys are rejected by name, with a remedy. The choice depends only on catalog and
options, so that a restart continues with the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.catalog import Table, TableKeys
from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, quoted
from informix_capture_client.values import Column

_BLANK_PADDED = ("char", "character", "nchar")
_NATIONAL = ("nchar", "nvarchar")
_INEXACT = ("float", "smallfloat", "real", "double precision")
_CHARACTERS = (*_BLANK_PADDED, *_NATIONAL, "varchar", "character varying", "lvarchar")
_FLOATING_DECIMAL = ("decimal", "dec", "numeric")


@dataclass(frozen=True, slots=True)
class SnapshotKey:
    """The columns that identify the rows of a table, in the order in which rows are read.

    Attributes:
        replaceable: the text columns whose invalid bytes are replaced, so that two keys may become
            equal.
    """

    table: TableName
    columns: tuple[Column, ...]
    replaceable: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def compared(self, place: int, values: pa.Array) -> pa.Array:
        """Return the values of a key column for comparison: CHAR values without trailing blanks.

        Whether blanks are delivered is an option, which may differ between the rows of a SELECT and
        those of the log; a key is the same with and without blanks.
        """
        if _kind(self.columns[place]) not in _BLANK_PADDED:
            return values
        return pc.ascii_rtrim(values, characters=" ")


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Settings that determine whether columns can be a key, besides their declarations.

    Attributes:
        decode: the decoding options.
        ignores_case: whether the database was created with NLSCASE INSENSITIVE.
    """

    decode: DecodeRules
    ignores_case: bool = False


def choose_key(
    table: Table, keys: TableKeys, rules: KeyRules, named: Sequence[str] = ()
) -> SnapshotKey:
    """Return the key of a table: the named one, or the best one in the catalog.

    The best one is the primary key, or else the unique index with the fewest columns.

    Args:
        table: with the columns that are captured.
        keys: the table's keys in the catalog.
        rules: other settings.
        named: the columns in option snapshotKey for this table, which the user declares as unique.

    Raises:
        BadOption: there is no usable key.
    """
    found = usable_key(table, keys, rules, named)
    if isinstance(found, str):
        raise _no_key(table.name, found)
    return found


def usable_key(
    table: Table, keys: TableKeys, rules: KeyRules, named: Sequence[str] = ()
) -> SnapshotKey | str:
    """Return the result of `choose_key`, or the reason why no key is usable."""
    why_not: list[str] = []
    for columns in _candidates(keys, named):
        if not (
            refusals := [why for refuse in _REFUSALS for why in refuse(table, keys, rules, columns)]
        ):
            return _key(table, columns, rules.decode)
        why_not += refusals
    return why_not[0] if why_not else "it has no primary key and no unique index"


def _candidates(keys: TableKeys, named: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield candidate keys, best first."""
    if named:
        yield tuple(named)
        return
    if keys.primary:
        yield keys.primary
    yield from sorted(keys.unique, key=lambda columns: (len(columns), columns))


def _key(table: Table, names: Sequence[str], rules: DecodeRules) -> SnapshotKey:
    by_name = {column.name: column for column in table.columns}
    columns = tuple(by_name[name] for name in names)
    is_replaced = rules.bad_characters == "replace"
    replaceable = [n for n, each in enumerate(columns) if is_replaced and _kind(each) in _CHARACTERS]
    return SnapshotKey(table.name, columns, tuple(replaceable))


def _kind(column: Column) -> str:
    return column.type_text.partition("(")[0]


_Refusals = Iterator[str]


def _not_captured(table: Table, _keys: TableKeys, _rules: KeyRules, names: Sequence[str]) -> _Refusals:
    captured = {column.name for column in table.columns}
    for name in names:
        if name not in captured:
            yield f"column {quoted(name)} of its key {_listed(names)} is not captured"


def _named_twice(_table: Table, _keys: TableKeys, _rules: KeyRules, names: Sequence[str]) -> _Refusals:
    if len(set(names)) < len(names):
        yield f"its key {_listed(names)} names a column twice"


def _may_be_null(_table: Table, keys: TableKeys, _rules: KeyRules, names: Sequence[str]) -> _Refusals:
    """Reject nullable columns: no comparison finds a row with NULL, so no chunk would have it."""
    for name in names:
        if name in keys.nullable and tuple(names) != keys.primary:
            yield f"column {quoted(name)} of its key {_listed(names)} may be NULL"


def _of_no_use(table: Table, _keys: TableKeys, rules: KeyRules, names: Sequence[str]) -> _Refusals:
    """Reject types whose different values may compare equal, or whose equal values may differ."""
    for column in table.columns:
        if column.name in names and (why := _why_not(column, rules)):
            yield f"column {quoted(column.name)} of its key {_listed(names)} {why}"


_REFUSALS: tuple[Callable[[Table, TableKeys, KeyRules, Sequence[str]], _Refusals], ...] = (
    _not_captured,
    _named_twice,
    _may_be_null,
    _of_no_use,
)


def _why_not(column: Column, rules: KeyRules) -> str:
    kind, declared = _kind(column), column.type_text.upper()
    if column.mask is not None and column.mask.kind != "hash":
        return f"has mask {column.mask.kind}, which makes different keys equal"
    if kind in _INEXACT:
        return f"is a {declared}, which is not an exact type"
    if kind in _FLOATING_DECIMAL and "," not in declared and rules.decode.floating_decimal == "double":
        return f"is a {declared}, which floatingDecimal=double rounds"
    if kind in _NATIONAL and rules.ignores_case:
        return f"is a {declared} in a database that ignores case (NLSCASE INSENSITIVE)"
    return ""


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(map(quoted, names))})"


def _no_key(table: TableName, why: str) -> BadOption:
    short = f"{quoted(table.owner)}.{quoted(table.table)}"
    return BadOption(
        f"table {table} cannot be read in chunks: {why}.",
        f"Name another unique key with option snapshotKey={short}(column, ...), remove the table from"
        " option initialSnapshot, or set snapshotWithoutKey=lock to read it in one pass under a lock"
        " that blocks writers.",
        option="initialSnapshot",
        table=str(table),
    )
