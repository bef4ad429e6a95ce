"""A stream followed without Spark, batch by batch, as `informix-cdc tail` and proofs need it.

Rule: the offsets and rows are those that a query would get; only the sink is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from informix_capture_client.catalog import Table
from informix_capture_client.shapes import ChangeRow, RowDelivery, changes_in, structs_of
from informix_cdc.options import SourceOptions
from informix_cdc.reading.own_capture import OwnCapture, OwnReader
from informix_cdc.reading.trigger import Trigger
from informix_cdc.server import look_up_tables
from informix_cdc.snapshots import TableProgress
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import NOT_STARTED, StreamOffset
from informix_checkpoints.spool import stored_range


class FollowedStream:
    """A stream from an offset on.

    Args:
        options: with a private spool.
        offset: where the last run ended; not started: a new stream.
        on_switched_on: called in another thread with a table whose full row logging was switched on; by
            default it is logged.

    Attributes:
        tables: the captured ones.
        offset: where the stream is. Nothing is captured before the first batch is awaited.

    Raises:
        InformixCdcError: the tables cannot be captured.
    """

    def __init__(
        self,
        options: SourceOptions,
        offset: StreamOffset = NOT_STARTED,
        on_switched_on: Callable[[Table], None] | None = None,
    ) -> None:
        source = look_up_tables(options)
        self.tables = source.tables
        self._delivery = RowDelivery(source.row_form, source.schema())
        self._structs = structs_of(source.tables)
        self._row_form = options.row_form().of_keys
        self._capture = OwnCapture(options, on_switched_on=on_switched_on)
        self._reader = OwnReader(options, self._capture)
        self.offset = offset

    def next_batch(self) -> Iterator[list[ChangeRow]]:
        """Wait briefly for a batch and yield its rows in parts; then its offset is that of the stream.

        Raises:
            InformixCdcError: the stream cannot continue, and no rows are left.
        """
        end = self._reader.next_offset(self.offset, BatchLimits(), Trigger.CONTINUOUS)
        if end is None:
            return
        if end.lost is None:
            end = replace(end, row_form=self._row_form)
        for wanted in self._reader.ranges(self.offset, end):
            for batch in self._delivery.rows(stored_range(wanted)):
                yield [*changes_in(batch, self._structs)]
        self._reader.commit(end)
        self.offset = end

    @property
    def snapshots(self) -> Sequence[TableProgress]:
        """The progress of each table's snapshot."""
        state = self._capture.state
        return [] if state is None else [*state.counters.snapshots.tables.values()]

    def close(self) -> None:
        """Close the capture session and the spool."""
        self._reader.close()
