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
from informix_cdc.merge_on_read.table import CommitOf


def create_table(
    log: TableLog,
    schema: str,
    *,
    name: str,
    description: str,
    configuration: Mapping[str, str],
    commit: CommitOf,
    on_read: bool,
) -> None:
    """Create a table, unless there is one.

    delta-rs 1.6.6 lists the feature variantType in a table with vectors, which few readers know.

    Args:
        log: of the table.
        schema: as in the log.
        name: of the table.
        description: of the table.
        configuration: further properties of the table.
        commit: what the entry says of itself.
        on_read: whether it has deletion vectors.
    """
    now = int(time.time() * 1000)
    metadata = {
        "id": str(uuid.uuid4()),
        "name": name,
        "description": description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": {**({ENABLED: "true"} if on_read else {}), **configuration},
        "createdTime": now,
    }
    protocol = _protocol(schema, on_read=on_read)
    actions = commit.actions("CREATE TABLE")
    if not log.put([*actions, {"protocol": protocol}, {"metaData": metadata}]):
        log.refresh()


def _protocol(schema: str, *, on_read: bool) -> dict[str, Any]:
    read = ["deletionVectors"] if on_read else []
    read += ["timestampNtz"] if '"timestamp_ntz"' in schema else []
    if not read:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": read,
        "writerFeatures": [*read, "appendOnly", "invariants"],
    }
