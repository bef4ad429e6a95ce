"""Follow committed changes of a server without Spark: for a first look.

Rule: `follow` has the session, assembler and decoder of the Spark source, but stores nothing: no spool,
no checkpoint, no second try when the connection breaks. It ends with a sentence when reads bring
nothing. `follow_with_rows` is the capture of the Spark source itself, with a spool that is gone
afterwards: a snapshot needs it, and contents of large objects. There a lost connection is tried again.
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
    changes_in,
    make_encoder,
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
from informix_cdc.options import SourceOptions
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
from informix_checkpoints.spool import Spool, delivered, in_row_form, stored_range

# Called with the tables, and with whether the server is the emulator.
OnRowLoggingOff = Callable[[Sequence[Table], bool], None]

_EMULATOR = " emulator Version "  # in what it gives for its version, whatever it poses as
_POLL_SECONDS = 0.1
_STOP_MARGIN_SECONDS = 2.0


@dataclass(slots=True)
class TailFigures:
    """What was shown; rows of a transaction that was read with them, and not shown, do not count.

    `existing_rows` are those of a snapshot, which are of no transaction.
    """

    transactions: int = 0
    rows: int = 0
    existing_rows: int = 0
    latest_commit: int = -1
    begun_at: float = field(default_factory=time.monotonic)

    def count(self, commit: int, *, is_existing: bool = False) -> None:
        """Count a row that was shown; those of one commit come one after another."""
        if is_existing:
            self.existing_rows += 1
            return
        self.rows += 1
        self.transactions += commit != self.latest_commit
        self.latest_commit = commit

    @property
    def seconds(self) -> float:
        """How long it took."""
        return time.monotonic() - self.begun_at


def follow(
    options: SourceOptions,
    figures: TailFigures,
    on_ready: Callable[[], None],
    on_switched_on: Callable[[Table], None] = lambda _table: None,
    on_row_logging_off: OnRowLoggingOff | None = None,
) -> Generator[list[ChangeRow], None, None]:
    """Yield what commits from option startingPosition on, whole transactions at a time.

    Args:
        options: where to connect and what to capture.
        figures: when it began; the caller counts what it shows.
        on_ready: called once, when every later commit will be seen.
        on_switched_on: called, in another thread, with a table whose full row logging was off before.
        on_row_logging_off: called before tables are captured whose full row logging is off; may refuse.

    Raises:
        InformixCdcError: the capture cannot start or go on.
    """
    source = look_up_tables(options)
    if on_row_logging_off is not None:
        report_row_logging_off(options, source, on_row_logging_off)
    start = CaptureStart(options, source, None, on_switched_on=on_switched_on)
    stream = ChangeStream(start.begin, start.close)
    contact = _Contact(2 * silent_seconds(options))  # the transport gives up first, if it can
    try:
        yield from _follow(stream, source, figures, on_ready, contact)
    except ConnectionLost as reason:
        if not reason.is_silence:
            raise
        raise ConnectionLost(
            f"A read does not return: {reason.message}",
            "If it stays so, run informix-cdc record and send us the file.",
            is_silence=True,
        ) from None
    finally:
        stream.stop(options.read_timeout_seconds + _STOP_MARGIN_SECONDS)


def report_row_logging_off(
    options: SourceOptions, source: SourceTables, on_off: OnRowLoggingOff
) -> None:
    """Call `on_off` if a capture would have to switch full row logging of a table on.

    Raises:
        InformixCdcError: the server cannot be asked, or `on_off` refuses.
    """
    with open_catalog(options) as catalog:
        off = catalog.without_row_logging(source.tables)
        is_emulator = bool(off) and is_of_emulator(server_version_text(catalog))
    if off:
        on_off(off, is_emulator)


def is_of_emulator(version: str) -> bool:
    """Tell whether a server's version is that of the emulator, which has nobody's tables.

    >>> is_of_emulator("IBM Informix Dynamic Server Version 14.10.FC10")
    False
    """
    return _EMULATOR in version


class _Contact:
    """Holds a stream to sending something; see `Liveness`."""

    def __init__(self, silent_seconds: float) -> None:
        self._liveness = Liveness(silent_seconds, stalled_seconds=float("inf"))
        self._liveness.connect(time.monotonic())  # a session may be open before the first answer

    def require(self, answer: Answer) -> None:
        """Refuse a server that has said nothing for too long.

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
    # A TRUNCATE ends a Spark query unless its user says otherwise; who only looks wants to see it.
    encoder = make_encoder(source.tables, source.rules, RowForm(truncate="emit"))
    structs = structs_of(source.tables)
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
        if figures.seconds > UNSEEN_WAIT_SECONDS:  # no waiting for ever for what was open before
            stream.stop_waiting_for_unseen()
        if committed := _committed(events, encoder):
            batches = encoder.encode(committed)
            changes = [
                change
                for batch in batches
                for change in changes_in(in_row_form(batch, encoder.schema), structs)
            ]
            yield changes


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
        report_row_logging_off(options, source, on_row_logging_off)
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
