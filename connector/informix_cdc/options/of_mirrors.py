"""The options of the stream of a mirror: what a mirror needs, and its defaults.

Rule: a mirror sets them for its query. Of a shared capture that it reads it needs tableEvents.
"""

from __future__ import annotations

from collections.abc import Mapping

MIRROR_OPTIONS: Mapping[str, str] = {
    "shape": "arrow",
    "truncate": "emit",
    "beforeImage": "true",
    "metadata": "minimal",
    "tableEvents": "true",
}
# A shared capture keeps what readers of every shape need: definitions of tables, and TRUNCATEs.
OF_ANY_READER: Mapping[str, str] = {"shape": "arrow", "truncate": "emit"}
MIRROR_DEFAULTS: Mapping[str, str] = {
    "initialSnapshot": "all",
    "lobs": "content",
    "snapshotParallelism": "4",
}
# The driver has the changes of a batch in memory.
MIRROR_BATCH: Mapping[str, str] = {"maxBytesPerTrigger": "256m"}


def with_mirror_options(source: Mapping[str, str]) -> dict[str, str]:
    """Return options of a source with those that a mirror needs, and with its defaults."""
    given = {name.lower() for name in source}
    fixed = {name.lower() for name in MIRROR_OPTIONS}
    own = {name: text for name, text in source.items() if name.lower() not in fixed}
    defaults = {name: text for name, text in MIRROR_DEFAULTS.items() if name.lower() not in given}
    return {**own, **MIRROR_OPTIONS, **defaults}
