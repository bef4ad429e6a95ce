"""The steps from committed transactions to stored changes: changes in, changes out.

Rule: decisions at commit time are made here, after DISCARDs were applied: which tables were in the
stream, and the pairing of update images. No step decodes rows, except the observed keys.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from informix_capture_client.errors import NEW_STREAM, DataLoss
from informix_capture_client.positions import show
from informix_capture_client.records import RecordKind
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import Changes, KeyObserver


class JoinedTables:
    """Removes changes of tables that had not joined the stream when they committed.

    Args:
        count: the number of tables.
        since: by table id, the commit at or below which its changes are not in the stream.
    """

    def __init__(self, count: int, since: Mapping[int, int] | None) -> None:
        self._since = [(since or {}).get(number, 0) for number in range(count)]

    def join(self, number: int, commit: int) -> None:
        """Let changes of a table be of the stream that commit above a place, and no others."""
        self._since[number] = commit

    def of_the_stream(self, changes: Changes) -> Changes:
        """Return the changes that are in the stream."""
        if not any(self._since):
            return changes
        is_early = changes.commits <= np.array(self._since)[changes.table_ids]
        return changes.only(~is_early) if is_early.any() else changes


class ObservedKeys:
    """Passes the keys of changes, of both images of each, to an observer."""

    def __init__(self, tables: AnnouncedTables, observer: KeyObserver | None) -> None:
        self._tables = tables
        self._observer = observer

    def observed(self, changes: Changes) -> Changes:
        """Return the changes unchanged.

        Raises:
            ProtocolViolation: a key cannot be decoded.
        """
        if self._observer is None:
            return changes
        for number, names in self._observer.key_columns().items():
            if (images := changes.rows_of(number)).any():
                rows = changes.only(images)
                keys = self._tables.captured_columns(number, names, rows)
                self._observer.touch(number, keys, rows.commits)
            truncates = changes.only(
                (changes.table_ids == number) & (changes.kinds == RecordKind.TRUNCATE)
            )
            if len(truncates):
                self._observer.truncate(number, int(truncates.commits.max()))
        return changes


def require_pairs(changes: Changes) -> Changes:
    """Return the changes; reject an update with only one image (servers emit such: APAR IT07378).

    Raises:
        DataLoss: half an update is missing.
    """
    before, after = changes.kinds == RecordKind.UPDBEF, changes.kinds == RecordKind.UPDAFT
    follows = np.zeros(len(changes), bool)
    follows[1:] = (
        before[:-1]
        & (changes.transactions[1:] == changes.transactions[:-1])
        & (changes.table_ids[1:] == changes.table_ids[:-1])
    )
    is_followed = np.zeros(len(changes), bool)
    is_followed[:-1] = (follows & after)[1:]
    unpaired = (after & ~follows) | (before & ~is_followed)
    if unpaired.any():
        place = int(changes.sequence_numbers[int(np.flatnonzero(unpaired)[0])])
        raise DataLoss(
            f"the update at {show(place)} has only one row image.",
            f"The row's other image is missing: {NEW_STREAM}.",
            sequence_number=place,
        )
    return changes
