"""Leave out rows of a table that had a captured table's partition number before it.

Rule: the log knows tables by partition numbers, and the number of a dropped table is given to a new
one. A session that begins before a table was created hands out the records of its predecessor under the
table's label, and they may even fit its columns. So no row of a table is taken from a transaction that
began at or before the creation of its partition. Seen in production on 14.10 and 15: the tests of
LeoneGarage/lakeflow-community-connectors have such a record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from informix_capture_client.records import OF_A_TABLE
from informix_capture_client.transactions import (
    BlockRecords,
    CommittedTransactions,
    Piece,
    PositionPassed,
    PreviousRows,
    StreamCounters,
)


class Creation(NamedTuple):
    """When a captured table's youngest partition was created, in seconds since 1970."""

    table: str
    time: int


@dataclass(slots=True)
class PreviousTables:
    """Knows when the captured tables were created, in the order of their numbers."""

    tables: Sequence[Creation] = ()
    _noted: set[int] = field(default_factory=set)

    def without_their_rows(
        self, event: CommittedTransactions, counters: StreamCounters
    ) -> Iterator[CommittedTransactions | PositionPassed]:
        """Yield an event without rows of previous tables; a pair alone where nothing else is left.

        The first rows that are left out of each table are noted in `counters`.
        """
        newest = max((created.time for created in self.tables), default=-1)
        if int(event.begin_times.min()) > newest:
            yield event
            return
        for one in event.each():
            yield self._of_one(one, counters)

    def _of_one(
        self, one: CommittedTransactions, counters: StreamCounters
    ) -> CommittedTransactions | PositionPassed:
        begun = int(one.begin_times[0])
        previous = [number for number, created in enumerate(self.tables) if begun <= created.time]
        kept, rows_left = list[Piece](), 0
        for piece in one.rows:
            rows = piece.loaded()  # what is spilled, portion by portion
            is_row = OF_A_TABLE[rows.block.raw.kinds[rows.places]]
            labels = rows.block.table_ids[rows.places]
            is_previous = is_row & np.isin(labels, previous)
            for number in set(np.unique(labels[is_previous]).tolist()) - self._noted:
                self._noted.add(number)
                counters.previous_rows.append(
                    PreviousRows(
                        self.tables[number].table,
                        self.tables[number].time,
                        begun,
                        int(one.commit_sequence_numbers[0]),
                    )
                )
            rows_left += int(np.count_nonzero(is_row & ~is_previous))
            kept.append(
                BlockRecords(rows.block, rows.places[~is_previous]) if is_previous.any() else piece
            )
        if not rows_left:
            return PositionPassed(one.position, is_timeout=False)
        pieces = tuple(rows for rows in kept if len(rows))
        return replace(one, rows=pieces, record_counts=np.array([sum(map(len, pieces))]))
