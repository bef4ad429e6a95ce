"""Rows in a PostgreSQL database: its types, COPY, and a connection that comes back.

    ColumnType, column_type     the type of a column, by its Informix type and the Arrow type of values
    arrow_type                  the Arrow type of a column that there is
    csv_of, rows_of_csv         rows as COPY takes and returns them; texts_of: a few rows, as parameters
    PostgresDatabase                    a connection, in which statements are one transaction or none
    Place                       host, database and schema of `postgresql://host/database/schema`
    unfit_value                 why a row cannot be stored; Refused: why a statement is refused for good

Rule: it takes Arrow tables and names, and knows neither mirrors nor Spark.

Sources: PostgreSQL 17, "COPY", "Data Types", "Appendix A. Error Codes"; psycopg 3, "Using COPY".
"""

from __future__ import annotations

from informix_cdc.postgresql.column_types import (
    ColumnType,
    arrow_type,
    column_type,
    quoted,
    selected,
)
from informix_cdc.postgresql.database import (
    BRIEF_SECONDS,
    PATIENT_SECONDS,
    Place,
    PostgresDatabase,
    Refused,
)
from informix_cdc.postgresql.local_server import LocalServer, find_programs, local_server
from informix_cdc.postgresql.rows import csv_of, rows_of_csv, texts_of, unfit_value

__all__ = [
    "BRIEF_SECONDS",
    "PATIENT_SECONDS",
    "ColumnType",
    "LocalServer",
    "Place",
    "PostgresDatabase",
    "Refused",
    "arrow_type",
    "column_type",
    "csv_of",
    "find_programs",
    "local_server",
    "quoted",
    "rows_of_csv",
    "selected",
    "texts_of",
    "unfit_value",
]
