"""The rows of a stream so far, which a proof awaits."""

from __future__ import annotations

import time
from collections.abc import Callable

from informix_capture_client.shapes import ChangeRow
from informix_cdc.options import SourceOptions
from informix_cdc.proving.outcomes import Deviation
from informix_cdc.reading import FollowedStream
from informix_checkpoints.offsets import StreamOffset


class AwaitedStream(FollowedStream):
    """A stream from an offset on, and the rows that it has delivered.

    Args:
        options: with a private spool.
        offset: where the last run ended; not started: a new stream.
        patience_seconds: how long rows are awaited.
    """

    def __init__(self, options: SourceOptions, offset: StreamOffset, patience_seconds: float) -> None:
        super().__init__(options, offset)
        self._patience_seconds = patience_seconds
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
            for rows in self.next_batch():
                self.rows += rows
