"""What goes on beside a capture's session: tables that come in later, snapshots, large objects.

Rule: decided anew for each connection, by what the spool knows; what is on its way is nowhere else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from informix_capture_client.positions import page_after
from informix_capture_client.records import RecordBlock
from informix_capture_client.shapes import ObjectContents
from informix_cdc.capture.state import CaptureState
from informix_cdc.object_contents import ContentPool, most_silent_seconds, reselecting_of
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, open_catalog, open_object_connection
from informix_cdc.snapshots import (
    PlannedTable,
    ServerSays,
    Snapshots,
    not_yet_delivered,
    plan_snapshots,
    states_at_first,
    with_keys,
)
from informix_cdc.table_changes import Absent, Joining, NobodyWrote, Returning, altered_tables
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.receipts import Receipt, load_receipt
from informix_checkpoints.spool import Spool
from informix_checkpoints.table_states import Tables

_Watch = Callable[[RecordBlock], None]


@dataclass(slots=True)
class Beside:
    """Says what goes on beside the next session.

    Args:
        options: with the tables named one by one, once they are known.
        state: of the capture.
        expected: the commit that a replay must pass first; None where there is none.
        clock: seconds from anywhere.

    Attributes:
        left: what was known of tables where a stream was lost.
        held_back: since when tables are in the present session that wait for their only chunk.
        planned: the tables under snapshot, as they were when the present session was planned.
    """

    options: SourceOptions
    state: CaptureState
    expected: Callable[[], int | None]
    clock: Callable[[], float]
    left: Tables = field(default_factory=dict)
    held_back: Mapping[int, int] = field(default_factory=dict)
    planned: Sequence[PlannedTable] = ()

    def plan(self, source: SourceTables, offset: StreamOffset) -> None:
        """Look up what a session over these tables has to read beside it.

        Raises:
            InformixCdcError: a snapshot cannot begin, or not go on.
        """
        spool = self.state.spool
        known = self._as_left(source) if self.left else {}
        if spool is not None:  # altered tables as they will be
            known = {**spool.tables, **self._altered(source, offset, spool)}
        under_way = any(state.snapshot and not state.snapshot.is_done for state in known.values())
        self.planned = ()
        if self.options.initial_snapshot or under_way:
            with open_catalog(self.options) as catalog:
                self.planned = plan_snapshots(self.options, source, catalog, known)

    # tables that come in

    def require_known(self, source: SourceTables, offset: StreamOffset) -> None:
        """Refuse other tables under the names of those that are captured.

        Raises:
            BadOption: a receipt does not fit.
            DataLoss: names what a table was, and what it is.
        """
        if (spool := self.state.spool) is not None:
            self._altered(source, offset, spool)

    def absent(self, source: SourceTables, offset: StreamOffset) -> Absent | None:
        """Return what waits for tables that are in the options, and not in the stream as they are.

        Altered ones come first: until they are back, nothing behind that place is delivered.
        """
        if (spool := self.state.spool) is None:
            return None
        states = with_keys(states_at_first(self.options, source), self.planned)
        late = {name: state for name, state in states.items() if name not in spool.tables}
        back = with_keys(self._altered(source, offset, spool), self.planned)
        if not (late or back):
            return None
        self.state.join(self.clock())
        return (
            self._returning(source, spool, back, late) if back else self._joining(source, spool, late)
        )

    def _altered(self, source: SourceTables, offset: StreamOffset, spool: Spool) -> Tables:
        """Return what has been altered; the spool may be further than the offset of a planned batch."""
        known = replace(offset, position=spool.mark)
        return altered_tables(known, source, spool.tables, self.receipt(), self.options)

    def _joining(self, source: SourceTables, spool: Spool, late: Tables) -> Joining:
        return Joining(
            late, spool, self.ask_server, source.is_buffered, is_free=self._is_free, clock=self.clock
        )

    def _returning(
        self, source: SourceTables, spool: Spool, back: Tables, late: Collection[str]
    ) -> Returning:
        receipt = self.receipt()
        assert receipt is not None  # or nothing was altered that may be
        assert receipt.acquired is not None
        return Returning(
            back,
            {*back, *late},
            receipt.acquired,
            spool,
            self.ask_server,
            source.is_buffered,
            is_free=self._is_free,
            clock=self.clock,
        )

    def may_come_at_once(self, absent: Absent, source: SourceTables) -> bool:
        """Tell whether there are no others that a session would capture meanwhile."""
        is_alone = set(source.names) <= set(absent.absent)
        return isinstance(absent, Returning) and is_alone and self._is_free()

    def receipt(self) -> Receipt | None:
        """Return what option schemaChange names."""
        path = self.options.schema_change
        return load_receipt(Path(path)) if path else None

    def _is_free(self) -> bool:
        return self.expected() is None

    def ask_server(self) -> ServerSays:
        """Ask who is open, and where the log ends, over a connection of its own."""
        with open_catalog(self.options) as catalog:
            still_open = catalog.open_transactions()
            return ServerSays(still_open, catalog.clock(), page_after(catalog.current_position()))

    # snapshots

    def first_states(self, source: SourceTables) -> Tables:
        """Return what a new stream knows of its tables.

        Behind a loss of data it goes on with snapshots as far as they were: what was delivered is not
        read again without being asked for. A table that was made again is another one.
        """
        return with_keys(self._as_left(source), self.planned)

    def _as_left(self, source: SourceTables) -> Tables:
        states = states_at_first(self.options, source)
        return {
            name: replace(state, snapshot=left.snapshot)
            if (left := self.left.get(name)) and left.digest == state.digest
            else state
            for name, state in states.items()
        }

    def snapshots(self, source: SourceTables, absent: Absent | None) -> Snapshots | None:
        """Return what reads tables whose snapshot is not done; those that come in have theirs later.

        None is read while an altered table is on its way back: what is delivered then ends at a place
        of the past, and a SELECT shows what committed behind it.
        """
        late = () if absent is None else absent.absent
        planned = [each for each in self.planned if each.name not in late]
        self.held_back = not_yet_delivered(planned)
        figures = self.state.counters.snapshots
        figures.tables_left = 0
        if not planned or isinstance(absent, Returning):
            return None
        most_ahead = self.options.max_spool_bytes // 2  # changes may take the other half
        return Snapshots(
            self.options,
            source,
            planned,
            figures,
            self.ask_server,
            may_begin=lambda: self.state.gauges.is_at_end and self._is_free(),
            has_room=lambda: self.state.bytes_ahead <= most_ahead,
            note=self.state.counters.appended.note,
            clock=self.clock,
        )

    # large objects

    @contextlib.contextmanager
    def contents(self, source: SourceTables) -> Iterator[ObjectContents | None]:
        """Have what reads large objects, if rows have their contents."""
        if not source.has_contents:
            yield None
            return
        options = self.options
        pool = ContentPool(
            lambda: open_object_connection(options, source.db_locale),
            options.lob_connections,
            options.lob_max_bytes,
            options.lob_read_seconds,
            self.state.counters.contents,
            self.clock,
            lambda: self.state.outcome.is_stopped,
            silent_seconds=most_silent_seconds(options),
        )
        with contextlib.closing(pool):
            skips = options.lob_unchanged == "skip"
            yield ObjectContents(pool, skips, reselecting_of(options, source))

    # what looks at records

    def watching(self, source: SourceTables, snapshots: Snapshots | None) -> _Watch | None:
        """Return what is shown each block of records of the session, if anything is."""
        watches = [] if snapshots is None else [snapshots.watch]
        if (receipt := self.receipt()) is not None and receipt.acquired is not None:
            since = receipt.acquired.since
            known = self.state.spool.tables if self.state.spool else {}
            back = {
                number: name
                for number, name in enumerate(source.names)
                if name in receipt.digests and name in known and known[name].since == since
            }
            if back:
                watches.append(NobodyWrote(back, since).watch)

        def watch(block: RecordBlock) -> None:
            for each in watches:
                each(block)

        return watch if watches else None
