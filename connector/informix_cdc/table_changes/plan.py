"""Which tables of the options a session does not capture yet, and who watches over their return.

Rule: the spool says which tables a stream has, the receipt what was altered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from informix_capture_client.records import RecordBlock
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_cdc.snapshots import ask_server
from informix_cdc.table_changes.absent import Absent
from informix_cdc.table_changes.joining import Joining
from informix_cdc.table_changes.returning import NobodyWrote, Returning
from informix_checkpoints.receipts import Receipt, load_receipt
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import Tables


def named_receipt(options: SourceOptions) -> Receipt | None:
    """Return what option schemaChange names.

    Raises:
        BadOption: there is no receipt.
    """
    return load_receipt(Path(options.schema_change)) if options.schema_change else None


def plan_joining(
    options: SourceOptions,
    source: SourceTables,
    spool: Spool,
    late: Tables,
    altered: Tables,
    receipt: Receipt | None,
    is_free: Callable[[], bool],
    clock: Callable[[], float],
) -> Absent:
    """Return the tables that are in the options, and not in the stream as they are.

    Altered ones come first: until they are back, nothing behind that place is delivered.

    Args:
        options: where to ask the server.
        source: the captured tables.
        spool: of the stream.
        late: those that the stream has not, as they will be.
        altered: those of the stream that are others now, as they will be.
        receipt: what says of those where they are back.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.
    """
    ask = partial(ask_server, options)
    if altered:
        assert receipt is not None  # or nothing was altered that may be
        assert receipt.acquired is not None
        acquired, is_buffered = receipt.acquired, source.is_buffered
        return Returning(altered, late, acquired, spool, ask, is_buffered, is_free, clock)
    if late:
        return Joining(late, spool, ask, source.is_buffered, is_free, clock)
    return Absent()


def watch_writers(
    receipt: Receipt | None, source: SourceTables, known: Tables
) -> list[Callable[[RecordBlock], None]]:
    """Return what is shown each block of records of a session, so that nobody has written unseen.

    Args:
        receipt: what option schemaChange names.
        source: the captured tables.
        known: what the stream knows of its tables; those that are back by this receipt are watched.
    """
    if receipt is None or receipt.acquired is None:
        return []
    since = receipt.acquired.since
    back = {
        number: name
        for number, name in enumerate(source.names)
        if name in receipt.digests and name in known and known[name].since == since
    }
    return [NobodyWrote(back, since).watch] if back else []
