"""Which tables a stream has, and which join or leave.

Rule: what a stream knows of its tables is in its offsets and in its spool; what it shall have, in the
options. Nothing is guessed from one to the other.
"""

from __future__ import annotations

from dataclasses import replace

from informix_cdc.capture.guard import other_source
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset


def in_this_version(offset: StreamOffset, source: SourceTables) -> StreamOffset:
    """Return an offset with what it says of tables; version 1 has one digest for all of them.

    It is that of the list of tables in the options, or of the first of them, where others were added
    behind them since.

    Raises:
        DataLoss: it is of another list of tables, or of another server.
    """
    if offset.tables is not None:
        return offset
    for count in range(len(source.tables), 0, -1):
        if source.of_first(count) == offset.source:
            states = source.states()
            known = {name: states[name] for name in source.names[:count]}
            return replace(offset, source=source.source, tables=known)
    raise other_source(offset.source, source.of_first(len(source.tables)))
