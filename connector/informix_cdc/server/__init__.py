"""The server that the options name: connections, captured tables, log.

Rule: the only room that knows which transport belongs to which options.
"""

from __future__ import annotations

from informix_cdc.server.connections import (
    Wrap,
    every_connection,
    is_locked,
    open_capture_connection,
    open_catalog,
    open_connection,
    open_in_locale,
    open_object_connection,
    open_snapshot_connection,
    silent_seconds,
    trace_wire,
)
from informix_cdc.server.named_tables import (
    matched_tables,
    named_tables,
    tables_there,
    with_named_tables,
)
from informix_cdc.server.server_facts import (
    LONG_TRANSACTIONS,
    CdcFacts,
    DriverFacts,
    ServerFacts,
    TableFacts,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
    why_no_table,
)
from informix_cdc.server.server_log import ServerLog, open_server_log, read_server_log
from informix_cdc.server.source_tables import (
    SourceTables,
    describe_tables,
    look_up_tables,
    require_capturing_server,
    require_logged_database,
    server_version_text,
)
from informix_cdc.server.table_definitions import (
    MASKED,
    TableDefinition,
    table_definitions,
)

__all__ = [
    "LONG_TRANSACTIONS",
    "MASKED",
    "CdcFacts",
    "DriverFacts",
    "ServerFacts",
    "ServerLog",
    "SourceTables",
    "TableDefinition",
    "TableFacts",
    "Wrap",
    "describe_tables",
    "every_connection",
    "is_locked",
    "look_up_tables",
    "matched_tables",
    "named_tables",
    "open_capture_connection",
    "open_catalog",
    "open_connection",
    "open_in_locale",
    "open_object_connection",
    "open_server_log",
    "open_snapshot_connection",
    "read_cdc_facts",
    "read_server_facts",
    "read_server_log",
    "read_table_facts",
    "require_capturing_server",
    "require_logged_database",
    "server_version_text",
    "silent_seconds",
    "table_definitions",
    "tables_there",
    "trace_wire",
    "why_no_table",
    "with_named_tables",
]
