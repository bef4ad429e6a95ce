"""Query a server's databases, tables and log with plain SQL.

Rule: read-only; no capture session is needed.
"""

from __future__ import annotations

from informix_capture_client.catalog.catalog import (
    Catalog,
    OpenSample,
    TableSize,
    read_databases,
    source_digest,
    table_digest,
)
from informix_capture_client.catalog.column_choice import choose_columns, columns_behind_a_collection
from informix_capture_client.catalog.keys import RowLocks, TableKeys
from informix_capture_client.catalog.log_distance import LogDistance, PlaceInLog, place_in_log
from informix_capture_client.catalog.log_space import (
    UNFLUSHED_LOG,
    LogSpace,
    is_beyond_end,
    read_log_space,
    require_in_log,
)
from informix_capture_client.catalog.partitions import RowCounters, SerialCounters, read_row_logged
from informix_capture_client.catalog.set_up import (
    API_VERSION,
    DatabaseLogging,
    HaRole,
    check_api_version,
    check_cdc_database,
    check_cdc_locale,
    check_database_logging,
    check_ha_role,
    check_locale,
    check_table_kind,
    no_such_database,
    unqualified,
)
from informix_capture_client.catalog.tables import FoundTable, Table

__all__ = [
    "API_VERSION",
    "UNFLUSHED_LOG",
    "Catalog",
    "DatabaseLogging",
    "FoundTable",
    "HaRole",
    "LogDistance",
    "LogSpace",
    "OpenSample",
    "PlaceInLog",
    "RowCounters",
    "RowLocks",
    "SerialCounters",
    "Table",
    "TableKeys",
    "TableSize",
    "check_api_version",
    "check_cdc_database",
    "check_cdc_locale",
    "check_database_logging",
    "check_ha_role",
    "check_locale",
    "check_table_kind",
    "choose_columns",
    "columns_behind_a_collection",
    "is_beyond_end",
    "no_such_database",
    "place_in_log",
    "read_databases",
    "read_log_space",
    "read_row_logged",
    "require_in_log",
    "source_digest",
    "table_digest",
    "unqualified",
]
