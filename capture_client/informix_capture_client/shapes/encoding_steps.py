"""The steps from committed transactions to rows: changes in, changes out.

Rule: decisions at commit time are made here, after DISCARDs were applied: which tables were in the
stream, the pairing of update images, and the policy for TRUNCATE. No step decodes rows, except the
observed keys, or creates rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import NEW_STREAM, DataLoss
from informix_capture_client.positions import show
from informix_capture_client.records import BOUNDS, RecordKind
from informix_capture_client.shapes.announced_tables import AnnouncedTables
from informix_capture_client.shapes.change_columns import Changes, KeyObserver
from informix_capture_client.shapes.numbering import Numbering

_OF_CHANGES = ("envelope", "json")  # shapes in which an update is one row
_OF_IMAGES = ("rows", "arrow")  # shapes in which it is two


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
        is_bound = BOUNDS[changes.kinds]  # of a transaction, and of no table; with shape=raw alone
        since = np.array([*self._since, 0])[np.where(is_bound, len(self._since), changes.table_ids)]
        is_early = changes.commits <= since
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


@dataclass(slots=True)
class LeftOut:
    """The number of changes that a policy has removed so far."""

    truncates: int = 0


class TruncatePolicy:
    """Applies option truncate: `emit`, `ignore` or `fail`."""

    def __init__(self, tables: AnnouncedTables, policy: str, left_out: LeftOut) -> None:
        self._tables = tables
        self._policy = policy
        self._left_out = left_out

    def applied(self, changes: Changes) -> Changes:
        """Return the changes without ignored TRUNCATEs, and count these.

        Raises:
            DataLoss: a table was truncated, and the policy is `fail`.
        """
        truncates = changes.kinds == RecordKind.TRUNCATE
        if self._policy == "emit" or not truncates.any():
            return changes
        if self._policy == "ignore":
            self._left_out.truncates += int(np.count_nonzero(truncates))
            return changes.only(~truncates)
        row = int(np.flatnonzero(truncates)[0])
        raise DataLoss(
            f"table {self._tables.tables[int(changes.table_ids[row])].name} was truncated by the"
            f" transaction that committed at {show(int(changes.commits[row]))}.",
            "Set option truncate to emit (a row on which the sink empties the table's copy, as"
            " examples/upsert.py does) or to ignore, and start again.",
            sequence_number=int(changes.sequence_numbers[row]),
        )


class UpdateImages:
    """Pairs the images of updates, and numbers the delivered changes.

    It keeps state across batches: create one per sequence of transactions.
    """

    def __init__(self, row_form: RowForm) -> None:
        self._numbering = Numbering()
        self._drops_before_images = row_form.shape in _OF_IMAGES and not row_form.before_image
        self._one_row_per_update = self._drops_before_images or row_form.shape in _OF_CHANGES
        # Else each record is a row, and has its place in the transaction already.
        self._renumbers = self._one_row_per_update or row_form.truncate == "ignore"

    def paired(self, changes: Changes) -> Changes:
        """Return the delivered changes, at least one, with their ordinals.

        Raises:
            DataLoss: half an update is missing.
        """
        _require_pairs(changes)
        is_before = changes.kinds == RecordKind.UPDBEF
        if self._renumbers:
            counted = ~is_before if self._one_row_per_update else np.ones(len(changes), bool)
            changes = replace(changes, ordinals=self._numbering.number(changes, counted))
        return changes.only(~is_before) if self._drops_before_images else changes


def _require_pairs(changes: Changes) -> None:
    """Reject an update with only one image (servers emit such updates: APAR IT07378)."""
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
