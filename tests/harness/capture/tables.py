"""Tables as the catalog would describe them."""

from __future__ import annotations

from informix_capture_client.catalog.tables import Table
from informix_capture_client.sql_names import TableName
from informix_capture_client.values.column_list import parse_columns


def make_table(name: str, columns: str, owner: str = "informix") -> Table:
    """Return a table of database `stores`."""
    return Table(TableName("stores", owner, name), 100, 1, "2024-01-01", parse_columns(columns))
