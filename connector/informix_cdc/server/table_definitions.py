"""The definition of each captured table in Informix, and the key that identifies its rows.

Rule: with shape=arrow it is sent as text with a table's rows, so that a reader never queries a catalog
that may have changed since the rows were captured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from informix_capture_client.catalog import Catalog, Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.incremental_snapshot import KeyRules, usable_key
from informix_capture_client.sql_names import quoted
from informix_cdc.options import SourceOptions

MASKED = " MASKED"  # behind the type of a column whose values may be longer, or of another type


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column as declared in the catalog.

    Attributes:
        type: the Informix type, in upper case.
        is_nullable: whether Informix allows NULL.
    """

    name: str
    type: str
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as declared in the catalog.

    Attributes:
        table: owner.table, as in SQL.
        columns: in table order.
        key: names of the columns that identify a row; empty if there is no usable key.
        why_no_key: the reason in that case.
    """

    table: str
    columns: tuple[DeclaredColumn, ...]
    key: tuple[str, ...]
    why_no_key: str = ""

    def to_text(self) -> str:
        """Return the definition as text."""
        columns = [[column.name, column.type, column.is_nullable] for column in self.columns]
        known = {"table": self.table, "key": self.key, "why_no_key": self.why_no_key}
        return json.dumps({**known, "columns": columns}, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str | bytes) -> TableDefinition:
        """Parse a text written by `to_text`.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
        """
        try:
            known = json.loads(text)
        except RecursionError:
            raise ValueError("its values are nested too deeply") from None
        columns = tuple(DeclaredColumn(*column) for column in known["columns"])
        return cls(known["table"], columns, tuple(known["key"]), known["why_no_key"])


def table_definitions(
    options: SourceOptions, tables: Sequence[Table], rules: DecodeRules, catalog: Catalog
) -> Iterator[TableDefinition]:
    """Yield the definition of each captured table, in order.

    Args:
        options: option snapshotKey sets keys that are not in the catalog.
        tables: with the captured columns.
        rules: determine whether the values of a column identify rows.
        catalog: of the captured database.
    """
    key_rules = KeyRules(rules, catalog.ignores_case())
    named = options.snapshot_key_names()
    for table, keys in zip(tables, catalog.keys(tables), strict=True):
        found = usable_key(table, keys, key_rules, named.get(table.name, ()))
        key, why_no_key = ((), found) if isinstance(found, str) else (found.names, "")
        columns = tuple(
            DeclaredColumn(
                column.name,
                column.type_text.upper() + (MASKED if column.mask else ""),
                column.name in keys.nullable and column.name not in keys.primary,
            )
            for column in table.delivered
        )
        name = f"{quoted(table.name.owner)}.{quoted(table.name.table)}"
        yield TableDefinition(name, columns, key, why_no_key)
