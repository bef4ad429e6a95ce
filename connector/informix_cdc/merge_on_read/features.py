"""Features of Delta tables, by what this engine does with a table that has them.

Source: Delta protocol, "Valid Feature Names in Table Features".
"""

from __future__ import annotations

from informix_cdc.merge_on_read.log import LoggedState

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
# Versions of writers up to 2 have appendOnly and invariants only; from 7 on, features are listed.
_MOST_WITHOUT_LIST, _LEAST_LISTED = 2, 7


class NotHandled(Exception):
    """A table has features that this engine does not handle.

    Args:
        features: their names, as in the log.
    """

    def __init__(self, *features: str) -> None:
        super().__init__(*features)
        self.features = features


def require_mergeable(state: LoggedState) -> None:
    """Refuse a table that this engine cannot merge into as its features demand.

    Raises:
        NotHandled: names the features.
    """
    found = _not_handled(state)
    if "deletionVectors" not in _listed(state) or state.configuration.get(ENABLED) != "true":
        found.add("no deletionVectors")
    if state.configuration.get("delta.appendOnly") == "true":
        found.add("appendOnly")
    if found:
        raise NotHandled(*sorted(found))


def require_appendable(state: LoggedState) -> None:
    """Refuse a table to which this engine cannot append as its features demand.

    Raises:
        NotHandled: names the features.
    """
    if found := _not_handled(state):
        raise NotHandled(*sorted(found))


def _not_handled(state: LoggedState) -> set[str]:
    found = _listed(state) - HANDLED
    if _LEAST_LISTED > int(state.protocol.get("minWriterVersion", 0)) > _MOST_WITHOUT_LIST:
        found.add("a protocol without a list of features")
    if state.metadata.get("partitionColumns"):
        found.add("partitions")
    if '"delta.invariants"' in state.metadata.get("schemaString", ""):
        found.add("invariants")
    return found


def _listed(state: LoggedState) -> set[str]:
    names = (state.protocol.get(kind) or () for kind in ("readerFeatures", "writerFeatures"))
    return {name for each in names for name in each}
