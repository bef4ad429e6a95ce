"""Features of Delta tables, by what this engine does with a table that has them.

Source: Delta protocol, "Valid Feature Names in Table Features".
"""

from __future__ import annotations

from informix_cdc.merge_on_read.log import Action

ENABLED = "delta.enableDeletionVectors"
HANDLED = frozenset(
    {
        "deletionVectors",
        "timestampNtz",
        "invariants",
        "appendOnly",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",  # delta-rs 1.6.6 adds it with properties; no column of ours has the type
    }
)


class NotHandled(Exception):
    """A table has features that this engine does not handle.

    Args:
        features: their names, as in the log.
    """

    def __init__(self, *features: str) -> None:
        super().__init__(*features)
        self.features = features


def require_handled(protocol: Action, metadata: Action) -> None:
    """Refuse a table that this engine cannot write as its features demand.

    Raises:
        NotHandled: names the features.
    """
    listed = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    found = listed - HANDLED
    configuration = metadata.get("configuration") or {}
    if "deletionVectors" not in listed or configuration.get(ENABLED) != "true":
        found.add("no deletionVectors")
    if metadata.get("partitionColumns"):
        found.add("partitions")
    if configuration.get("delta.appendOnly") == "true":
        found.add("appendOnly")
    if found:
        raise NotHandled(*sorted(found))
