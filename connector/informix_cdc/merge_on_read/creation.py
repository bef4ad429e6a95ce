"""Create Delta tables that are merged on read.

Source: Delta protocol, "Change Metadata" and "Protocol Evolution".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from informix_cdc.merge_on_read.features import ENABLED
from informix_cdc.merge_on_read.log import TableLog
from informix_cdc.merge_on_read.places import TablePlace


def create_table(
    place: TablePlace,
    schema: str,
    *,
    name: str,
    description: str,
    configuration: Mapping[str, str],
    text: str,
    engine: str,
) -> bool:
    """Create a table with deletion vectors, unless there is one; return whether it was created.

    delta-rs 1.6.6 lists the feature variantType in such a table, which few readers know.

    Args:
        place: of the table.
        schema: as in the log.
        name: of the table.
        description: of the table.
        configuration: further properties of the table.
        text: for `userMetadata` of the commit.
        engine: what writes, for the log.
    """
    now = int(time.time() * 1000)
    metadata = {
        "id": str(uuid.uuid4()),
        "name": name,
        "description": description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {ENABLED: "true", **configuration},
        "createdTime": now,
    }
    info = {
        "timestamp": now,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "engineInfo": engine,
        "userMetadata": text,
    }
    return TableLog(place).put(
        0, [{"commitInfo": info}, {"protocol": _protocol(schema)}, {"metaData": metadata}]
    )


def _protocol(schema: str) -> dict[str, Any]:
    read = ["deletionVectors", *(["timestampNtz"] if '"timestamp_ntz"' in schema else [])]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": read,
        "writerFeatures": [*read, "appendOnly", "invariants"],
    }
