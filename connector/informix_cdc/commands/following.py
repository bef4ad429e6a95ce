"""Follow committed changes of a server without Spark, for `tail`.

Rule: `follow` uses the session, assembler and decoder of the Spark source, but no spool, no checkpoint
and no reconnect; it fails if reads return nothing for too long. `follow_with_rows` runs the capture of
the Spark source itself with a temporary spool, for snapshots and contents of large objects; it
reconnects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from informix_capture_client.catalog import Table
from informix_capture_client.choices import RowForm
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.positions import Position
from informix_capture_client.records import TableSchema
from informix_capture_client.shapes import (
    ChangeEncoder,
    ChangeRow,
    RowDelivery,
    changes_in,
    delivered_tables,
    row_schema,
    structs_of,
)
from informix_capture_client.stream import Answer, ChangeStream, Read, Silence, Starting
from informix_capture_client.transactions import CommittedTransactions, PositionPassed, StreamEvent
from informix_cdc.capture import (
    UNSEEN_WAIT_SECONDS,
    CaptureStart,
    CaptureState,
    CaptureThread,
    Liveness,
)
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server import (
    SourceTables,
    look_up_tables,
    open_catalog,
    server_version_text,
    silent_seconds,
)
from informix_cdc.snapshots import TableProgress
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED
from informix_checkpoints.spool import Spool, stored_range

# Called with the tables, and whether the server is the emulator.
OnRowLoggingOff = Callable[[Sequence[Table], bool], None]

_EMULATOR = " emulator Version "  # part of the emulator's version, in every emulated version
_POLL_SECONDS = 0.1
_STOP_MARGIN_SECONDS = 2.0


@dataclass(slots=True)
class TailFigures:
    """Counts of printed rows; rows of a transaction that are not printed do not count.

    `existing_rows` are those of a snapshot, which belong to no transaction.
    """

    transactions: int = 0
    rows: int = 0
    existing_rows: int = 0
    latest_commit: int = -1
    begun_at: float = field(default_factory=time.monotonic)

    def count(self, commit: int, *, is_existing: bool = False) -> None:
        """Count a printed row; rows of one commit are consecutive."""
        if is_existing:
            self.existing_rows += 1
            return
        self.rows += 1
        self.transactions += commit != self.latest_commit
        self.latest_commit = commit

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun_at


def follow(
    options: SourceOptions,
    figures: TailFigures,
    on_ready: Callable[[], None],
    on_switched_on: Callable[[Table], None] = lambda _table: None,
    on_row_logging_off: OnRowLoggingOff | None = None,
) -> Generator[list[ChangeRow], None, None]:
    """Yield the changes committed after option startingPosition, in whole transactions.

    Args:
        options: where to connect and what to capture.
        figures: has the start time; the caller counts the rows that it prints.
        on_ready: called once, when every later commit will be returned.
        on_switched_on: called in another thread with a table whose full row logging was switched on.
        on_row_logging_off: called with tables whose full row logging is off, before it is switched on;
            may refuse.

    Raises:
        InformixCdcError: the capture cannot start or continue.
    """
    source = look_up_tables(options)
    if on_row_logging_off is not None:
        report_row_logging_off(options.connection, source, on_row_logging_off)
    start = CaptureStart(options, source, None, on_switched_on=on_switched_on)
    stream = ChangeStream(start.begin, start.close)
    contact = _Contact(2 * silent_seconds(options.connection))  # the transport normally times out first
    try:
        yield from _follow(stream, source, figures, on_ready, contact)
    except ConnectionLost as reason:
        if not reason.is_silence:
            raise
        raise ConnectionLost(
            f"A read does not return: {reason.message}",
            "If it happens again, run informix-cdc record and send us the file.",
            is_silence=True,
        ) from None
    finally:
        stream.stop(options.connection.read_timeout_seconds + _STOP_MARGIN_SECONDS)


def report_row_logging_off(
    connection: ConnectionOptions, source: SourceTables, on_off: OnRowLoggingOff
) -> None:
    """Call `on_off` if a capture would have to switch full row logging of a table on.

    Raises:
        InformixCdcError: the server cannot be reached, or `on_off` refuses.
    """
    with open_catalog(connection) as catalog:
        off = catalog.without_row_logging(source.tables)
        is_emulator = bool(off) and is_of_emulator(server_version_text(catalog))
    if off:
        on_off(off, is_emulator)


def is_of_emulator(version: str) -> bool:
    """Return whether a server's version is that of the emulator, where switching needs no confirmation.

    >>> is_of_emulator("IBM Informix Dynamic Server Version 14.10.FC10")
    False
    """
    return _EMULATOR in version


class _Contact:
    """Requires that a stream receives something from the server; see `Liveness`."""

    def __init__(self, silent_seconds: float) -> None:
        self._liveness = Liveness(silent_seconds, stalled_seconds=float("inf"))
        self._liveness.connect(time.monotonic())  # the session may be open before the first answer

    def require(self, answer: Answer) -> None:
        """Fail if the server has sent nothing for too long.

        Raises:
            ConnectionLost: reads bring no bytes, or do not return.
        """
        now = time.monotonic()
        if isinstance(answer, Starting):
            self._liveness.connect(now)
        elif isinstance(answer, Silence):
            self._liveness.require_contact(now, answer.empty_reads)
        else:
            self._liveness.on_read(now, answer.reached)


def _follow(
    stream: ChangeStream,
    source: SourceTables,
    figures: TailFigures,
    on_ready: Callable[[], None],
    contact: _Contact,
) -> Generator[list[ChangeRow], None, None]:
    # By default a TRUNCATE fails a Spark query; here it is printed.
    encoder, structs = ChangeEncoder(source.tables, source.rules), structs_of(source.tables)
    form = RowForm(truncate="emit")
    schema = row_schema(delivered_tables(source.tables, source.rules), form)
    delivery = RowDelivery(form, schema)
    is_ready = False
    while True:
        answer = stream.next(_POLL_SECONDS)
        contact.require(answer)
        events = answer.events if isinstance(answer, Read) else ()
        if not is_ready and any(
            isinstance(event, PositionPassed | CommittedTransactions) for event in events
        ):
            is_ready = True
            on_ready()
        if (
            figures.seconds > UNSEEN_WAIT_SECONDS
        ):  # do not wait forever for transactions that were open before
            stream.stop_waiting_for_unseen()
        if committed := _committed(events, encoder):
            batches = delivery.rows(encoder.encode(committed))
            yield [change for batch in batches for change in changes_in(batch, structs)]


def _committed(events: Sequence[StreamEvent], encoder: ChangeEncoder) -> list[CommittedTransactions]:
    for event in events:
        if isinstance(event, TableSchema):
            encoder.announce(event)
    return [event for event in events if isinstance(event, CommittedTransactions)]


def follow_with_rows(
    options: SourceOptions,
    on_ready: Callable[[], None],
    on_progress: Callable[[Sequence[TableProgress]], None],
    on_switched_on: Callable[[Table], None] = lambda _table: None,
    on_row_logging_off: OnRowLoggingOff | None = None,
) -> Generator[list[ChangeRow], None, None]:
    """Yield the existing rows, and the changes committed during and after the snapshot, as in a stream.

    Args:
        options: with initialSnapshot, and a spool folder that nothing else uses.
        on_ready: called once, when every later commit will be returned.
        on_progress: called several times a second with the progress of each table's snapshot.
        on_switched_on: called in another thread with a table whose full row logging was switched on.
        on_row_logging_off: called with tables whose full row logging is off, before it is switched on;
            may refuse.

    Raises:
        InformixCdcError: the capture cannot start or continue.
    """
    source = look_up_tables(options)
    if on_row_logging_off is not None:
        report_row_logging_off(options.connection, source, on_row_logging_off)
    capture = CaptureThread(options, NOT_STARTED, on_switched_on=on_switched_on)
    capture.start()
    try:
        yield from _follow_capture(capture.state, source, on_ready, on_progress)
    finally:
        capture.stop()


def _follow_capture(
    state: CaptureState,
    source: SourceTables,
    on_ready: Callable[[], None],
    on_progress: Callable[[Sequence[TableProgress]], None],
) -> Iterator[list[ChangeRow]]:
    delivery, structs = RowDelivery(source.row_form, source.schema()), structs_of(source.tables)
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
                for batch in delivery.rows(stored_range(wanted)):
                    changes = changes_in(batch, structs)
                    yield [change for change in changes if not _begins_snapshot(change)]
            spool.trim(end.place)
        reached = end
        state.ack(spool.stream, reached)  # the capture waits for a slow reader, as it does for Spark


def _begins_snapshot(change: ChangeRow) -> bool:
    """Return whether a row is the truncate that starts a snapshot in a sink; it is not printed."""
    return change.change_type == "truncate" and bool(change.metadata.get("_snapshot"))


def _next_end(state: CaptureState, reached: Position | None) -> Position | None:
    """Wait briefly for new rows in the spool; return None if there are none.

    Raises:
        InformixCdcError: the capture has failed, and everything before is printed.
    """

    def is_news() -> bool:
        return (spool := state.spool) is not None and _end(spool, reached) is not None

    is_lost = state.outcome.has_come  # read before the spool, which is complete by then
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
