"""Follow tables with the rows that were there first: a snapshot, and the changes behind it.

Rule: the capture of the Spark source itself, with a spool that is gone afterwards; so a lost connection
is tried again, and a row that changes while others are read is shown as what it was and became.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from informix_capture_client.catalog import Table
from informix_capture_client.positions import Position
from informix_capture_client.shapes import ChangeRow, changes_in, structs_of
from informix_cdc.capture import CaptureState, CaptureThread
from informix_cdc.commands.following import OnRowLoggingOff, look_at_row_logging
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, look_up_tables
from informix_cdc.snapshots import TableProgress
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED
from informix_checkpoints.spool import Spool, delivered, stored_range

_POLL_SECONDS = 0.1


def follow_with_rows(
    options: SourceOptions,
    on_ready: Callable[[], None],
    on_progress: Callable[[Sequence[TableProgress]], None],
    on_switched_on: Callable[[Table], None] = lambda _table: None,
    on_row_logging_off: OnRowLoggingOff | None = None,
) -> Generator[list[ChangeRow], None, None]:
    """Yield the rows that are there, and what commits meanwhile and after, as a stream has them.

    Args:
        options: with initialSnapshot, and a folder for the spool that nobody else uses.
        on_ready: called once, when every later commit will be seen.
        on_progress: called several times a second with how far the snapshot of each table is.
        on_switched_on: called, in another thread, with a table whose full row logging was off before.
        on_row_logging_off: called before tables are captured whose full row logging is off; may refuse.

    Raises:
        InformixCdcError: the capture cannot start or go on.
    """
    source = look_up_tables(options)
    if on_row_logging_off is not None:
        look_at_row_logging(options, source, on_row_logging_off)
    capture = CaptureThread(options, NOT_STARTED, on_switched_on=on_switched_on)
    capture.start()
    try:
        yield from _follow(capture.state, source, on_ready, on_progress)
    finally:
        capture.stop()


def _follow(
    state: CaptureState,
    source: SourceTables,
    on_ready: Callable[[], None],
    on_progress: Callable[[Sequence[TableProgress]], None],
) -> Iterator[list[ChangeRow]]:
    schema, structs = source.schema(), structs_of(source.tables)
    reached: Position | None = None
    while True:
        end = _next_end(state, reached)
        if reached is not None:
            on_progress([*state.counters.snapshots.tables.values()])
        if (spool := state.spool) is None or end is None:
            continue
        if reached is None:
            on_ready()
        else:
            for wanted in spool.between(reached.place, end.place):
                for batch in delivered(stored_range(wanted), schema):
                    changes = changes_in(batch, structs)
                    yield [change for change in changes if not _begins_snapshot(change)]
            spool.trim(end.place)
        reached = end
        state.ack(spool.stream, reached)  # the capture waits for whoever is slow, as it does for Spark


def _begins_snapshot(change: ChangeRow) -> bool:
    """Tell whether a row is the mark by which a sink empties its copy: a reader has none."""
    return change.change_type == "truncate" and bool(change.metadata.get("_snapshot"))


def _next_end(state: CaptureState, reached: Position | None) -> Position | None:
    """Wait a little until the spool goes on; None if it does not.

    Raises:
        InformixCdcError: the capture has ended, and everything before is shown.
    """

    def is_news() -> bool:
        return (spool := state.spool) is not None and _end(spool, reached) is not None

    is_lost = state.outcome.has_come  # read first: what it left behind is there by then
    if not is_news():
        if is_lost:
            state.outcome.raise_()
        state.wait_for(lambda: state.outcome.has_come or is_news(), _POLL_SECONDS)
    return _end(spool, reached) if (spool := state.spool) else None


def _end(spool: Spool, reached: Position | None) -> Position | None:
    if reached is None:
        return spool.manifest.start
    end = spool.end_of_batch(reached, BatchLimits())
    return end if end.place > reached.place else None
