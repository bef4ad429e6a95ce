"""What the catalog says of a table: its columns, and whether it can be captured.

Rule: values only; `Catalog` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog.set_up import check_table_kind
from informix_capture_client.findings import Finding
from informix_capture_client.sql_names import TableName
from informix_capture_client.values import Column


@dataclass(frozen=True, slots=True)
class Table:
    """One captured table, as the catalog describes it now.

    Attributes:
        reselected: TEXT and BYTE columns, which are delivered and not captured, by their places in
            `delivered`.
        hidden: shadow columns of the server, such as those of WITH VERCOLS: neither captured nor
            delivered.
    """

    name: TableName
    table_id: int
    partition_number: int
    created: str
    columns: tuple[Column, ...]
    reselected: tuple[tuple[int, Column], ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def delivered(self) -> tuple[Column, ...]:
        """The columns that rows have, in table order."""
        found = list(self.columns)
        for place, column in self.reselected:
            found.insert(place, column)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class FoundTable:
    """The object that a name refers to: a kind of `set_up`, and `table` if it stores rows.

    Attributes:
        near: tables with a similar name, if the name refers to none.
    """

    name: TableName
    kind: str
    table: Table | None = None
    near: tuple[str, ...] = ()

    def finding(self) -> Finding:
        """Check whether it is a table that can be captured."""
        return check_table_kind(str(self.name), self.kind, self.near)
