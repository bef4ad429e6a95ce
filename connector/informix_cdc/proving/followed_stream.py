"""Follow the stream of a query without Spark, offset by offset, as a restart needs it.

Rule: the offsets and rows are those that Spark would get; only the sink is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from informix_capture_client.shapes import ChangeRow, RowDelivery, changes_in, structs_of
from informix_cdc.options import SourceOptions
from informix_cdc.proving.outcomes import Deviation
from informix_cdc.reading import CapturedStream, Trigger
from informix_cdc.server import look_up_tables
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import stored_range


class FollowedStream:
    """A stream from an offset on, and the rows that it has delivered.

    Args:
        options: with a private spool.
        offset: where the last run ended; not started: a new stream.
        patience_seconds: how long rows are awaited.
    """

    def __init__(self, options: SourceOptions, offset: StreamOffset, patience_seconds: float) -> None:
        source = look_up_tables(options)
        self._delivery = RowDelivery(source.row_form, source.schema())
        self._structs = structs_of(source.tables)
        self._stream = CapturedStream(options)
        self._patience_seconds = patience_seconds
        self.offset = offset
        self.rows: list[ChangeRow] = []

    @property
    def snapshots_are_done(self) -> bool:
        """Whether the existing rows of all tables were delivered."""
        states = self.offset.tables.values()
        return all(state.snapshot is None or state.snapshot.is_done for state in states)

    def begin(self) -> None:
        """Wait until every later commit will be delivered."""
        self._until(lambda: self.offset.is_started)

    def until(self, is_enough: Callable[[list[ChangeRow]], bool]) -> list[ChangeRow]:
        """Take batches until enough rows were delivered; return all of them.

        Raises:
            Deviation: they did not arrive in time.
        """
        self._until(lambda: is_enough(self.rows))
        return self.rows

    def _until(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._patience_seconds
        while not is_done():
            if time.monotonic() > deadline:
                raise Deviation(
                    "the stream delivers what was committed",
                    f"{len(self.rows)} rows after {self._patience_seconds:g} s",
                )
            self._take_batch()

    def _take_batch(self) -> None:
        end = self._stream.next_offset(self.offset, BatchLimits(), Trigger.CONTINUOUS)
        if end is None:
            return
        end = replace(end, row_form=self._stream.form.of_keys) if end.lost is None else end
        for wanted in self._stream.ranges(self.offset, end):
            for batch in self._delivery.rows(stored_range(wanted)):
                self.rows += changes_in(batch, self._structs)
        self._stream.commit(end)
        self.offset = end

    def close(self) -> None:
        """Close the capture session and the spool."""
        self._stream.close()
