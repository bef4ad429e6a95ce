"""Tables of a lake that hold what Informix tables hold: their columns, keys and definitions.

Rule: derived from the catalog and the options alone; it needs no Spark, and writes nothing.
"""

from __future__ import annotations

from informix_cdc.lake.definitions import DEFINITIONS, definitions
from informix_cdc.lake.lake_types import DELTA, ICEBERG, SPARK, type_in
from informix_cdc.lake.target_tables import TargetColumn, TargetTable, target_tables

__all__ = [
    "DEFINITIONS",
    "DELTA",
    "ICEBERG",
    "SPARK",
    "TargetColumn",
    "TargetTable",
    "definitions",
    "target_tables",
    "type_in",
]
