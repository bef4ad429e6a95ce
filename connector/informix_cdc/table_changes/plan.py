"""Determine the tables of the options that a session does not capture yet, and how they join.

Rule: the spool has the tables of a stream, the receipt those that were altered.
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
    """Return the receipt of option schemaChange.

    Raises:
        BadOption: the receipt does not exist.
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
    """Return the tables that are in the options but not in the stream in their current state.

    Altered tables come first: until they have returned, nothing after that position is delivered.

    Args:
        options: where to connect.
        source: the captured tables.
        spool: of the stream.
        late: tables that are not in the stream, with their new state.
        altered: altered tables of the stream, with their new state.
        receipt: has the position at which those return.
        is_free: whether no planned batch comes first.
        clock: a monotonic clock.
    """
    ask = partial(ask_server, options)
    if altered:
        assert receipt is not None  # otherwise no altered table is accepted
        assert receipt.acquired is not None
        acquired, is_buffered = receipt.acquired, source.is_buffered
        return Returning(altered, late, acquired, spool, ask, is_buffered, is_free, clock)
    if late:
        return Joining(late, spool, ask, source.is_buffered, is_free, clock)
    return Absent()


def watch_writers(
    receipt: Receipt | None, source: SourceTables, known: Tables
) -> list[Callable[[RecordBlock], None]]:
    """Return a function that receives each block of records, to detect writes during an ALTER.

    Args:
        receipt: the receipt of option schemaChange.
        source: the captured tables.
        known: table states of the stream; tables that have returned by this receipt are watched.
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
