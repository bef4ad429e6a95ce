"""What a capture publishes about its tables, for readers that open no connection."""

from __future__ import annotations

from informix_capture_client.shapes import delivered_tables
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_checkpoints.shared_captures import PublishedCapture, PublishedTable


def described(options: SourceOptions, source: SourceTables) -> PublishedCapture:
    """Return what is published before a stream has begun."""
    delivered = delivered_tables(source.tables, source.rules)
    return PublishedCapture(
        tables=tuple(
            PublishedTable(table.name, table.columns.serialize().to_pybytes(), definition.to_text())
            for table, definition in zip(delivered, source.definitions, strict=True)
        ),
        options={
            "server": options.connection.server,
            "database": options.connection.database,
            "tableEvents": str(options.rows.table_events).lower(),
        },
    )
