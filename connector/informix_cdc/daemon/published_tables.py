"""What a capture publishes about its tables and rows, for readers that open no connection."""

from __future__ import annotations

from informix_capture_client.object_readers import delivered_schema
from informix_capture_client.shapes import table_schema
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_checkpoints.shared_captures import PublishedCapture, PublishedTable


def described(options: SourceOptions, source: SourceTables) -> PublishedCapture:
    """Return what is published before a stream has begun."""
    schemas = (
        delivered_schema(table, table_schema(table, source.rules), source.rules)
        for table in source.tables
    )
    pairs = zip(source.definitions, schemas, strict=False)  # only shape=arrow has definitions
    return PublishedCapture(
        row_form=options.row_form().of_keys,
        schema=source.schema().serialize().to_pybytes(),
        options={
            "server": options.server,
            "database": options.database,
            "shape": options.shape,
            "metadata": options.metadata,
            "truncate": options.truncate,
            "beforeImage": str(options.before_image).lower(),
            "tableEvents": str(options.table_events).lower(),
        },
        tables=tuple(
            PublishedTable(definition.to_text(), schema.serialize().to_pybytes())
            for definition, schema in pairs
        ),
    )
