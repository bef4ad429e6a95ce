"""Turn committed transactions, and rows that a snapshot has read, into batches of the delivered shape.

Rule: whatever is judged at commit is judged here, on what DISCARD left: the pairing of update images
and the policy for TRUNCATE. How a row looks is the shape's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa

from informix_capture_client.catalog import Table
from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.errors import NEW_STREAM, BadOption, DataLoss, InformixCdcError
from informix_capture_client.object_readers import Contents, Reselecting
from informix_capture_client.positions import show
from informix_capture_client.records import BOUNDS, RecordKind, TableSchema
from informix_capture_client.shapes.arrow_shape import ArrowShape
from informix_capture_client.shapes.captured_tables import CapturedTables
from informix_capture_client.shapes.change_columns import (
    Changes,
    ChunkRows,
    KeyObserver,
    lined_up,
    rows_of_chunk,
    tables_in,
)
from informix_capture_client.shapes.envelope_shape import EnvelopeShape
from informix_capture_client.shapes.grouped_form import group_limits
from informix_capture_client.shapes.json_shape import JsonShape
from informix_capture_client.shapes.numbering import Numbering
from informix_capture_client.shapes.raw_shape import RawShape
from informix_capture_client.shapes.row_shape import RowShape
from informix_capture_client.transactions import CommittedTransactions


class ChangeShape(Protocol):
    """How changes become rows; `stored_schema` is `schema` and what the spool needs beside it.

    Attributes:
        is_grouped: whether rows are stored in groups; then `stored_schema` is known from `begin` on.
    """

    schema: pa.Schema
    with_bounds: bool
    is_grouped: bool

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of what `encode` returns."""

    def begin(self, present: Sequence[int]) -> None:
        """Begin with the records of another sequence of transactions, all of these tables."""

    def encode(self, changes: Changes) -> pa.RecordBatch:
        """Return changes as rows of `stored_schema`."""


def _shape(tables: CapturedTables, row_form: RowForm) -> ChangeShape:
    return _SHAPES[row_form.shape](tables, row_form)


_SHAPES: dict[str, Callable[[CapturedTables, RowForm], ChangeShape]] = {
    "rows": lambda tables, form: RowShape(tables, form.metadata),
    "envelope": lambda tables, form: EnvelopeShape(tables, form.server, form.before_image),
    "raw": lambda tables, _: RawShape(tables),
    "arrow": lambda tables, form: ArrowShape(tables, form.metadata),
    "json": lambda tables, form: JsonShape(tables, form.before_image, form.metadata),
}


def row_schema(
    tables: Sequence[Table],
    rules: DecodeRules,
    row_form: RowForm = RowForm(),  # noqa: B008 - frozen
) -> pa.Schema:
    """Return the schema of delivered rows; it depends on options and catalog only.

    Raises:
        BadOption: a column has the name of a metadata column.
        UnsupportedColumn: a column's type cannot be carried.
    """
    return _shape(CapturedTables(tables, rules), row_form).schema


_MOST_ORDINALS = 1 << 31
_OF_CHANGES = ("envelope", "json")  # shapes in which an update is one row
_OF_IMAGES = ("rows", "arrow")  # shapes in which it is two


@dataclass(slots=True)
class _LeftOut:
    truncates: int = 0


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows in batches of `schema`, which are made while they are iterated over, once."""

    schema: pa.Schema
    _batches: Iterator[pa.RecordBatch]
    _left_out: _LeftOut

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    @property
    def ignored_truncates(self) -> int:
        """How many TRUNCATEs the policy has left out so far; all of them after the last batch."""
        return self._left_out.truncates


@dataclass(frozen=True, slots=True)
class ObjectContents:
    """How large objects are read.

    Attributes:
        skips_unchanged: whether an update that keeps an object's handle leaves it unread.
        reselecting: by table id, how objects are found by the keys of their rows instead.
    """

    reader: Contents
    skips_unchanged: bool = False
    reselecting: Mapping[int, Reselecting] = field(default_factory=dict)


class ChangeEncoder:
    """Encodes transactions of a fixed list of tables; a table's id is its place in the list.

    Args:
        tables: the tables.
        rules: how values are decoded.
        row_form: how a row looks.
        since: by table id, at or below which commit its changes are not of the stream: it joined there.
        observer: collects the keys of what is encoded; not of the raw shape, which has no images.
        contents: reads large objects, if the rules want their contents.
        definitions: of each table, as text that travels with its rows in shape=arrow.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        rules: DecodeRules,
        row_form: RowForm = RowForm(),  # noqa: B008 - frozen
        since: Mapping[int, int] | None = None,
        *,
        observer: KeyObserver | None = None,
        contents: ObjectContents | None = None,
        definitions: Sequence[str] = (),
    ) -> None:
        self._observer = observer
        self._contents = contents
        self.objects_asked_for = 0  # so far: reading them takes time in which nothing else is done
        self._since = [(since or {}).get(number, 0) for number in range(len(tables))]
        self._tables = CapturedTables(tables, rules)
        self._tables.reselecting = contents.reselecting if contents else {}
        self._tables.definitions = definitions
        self._row_form = row_form
        self._shape = _shape(self._tables, row_form)
        self.schema = self._shape.schema
        self._drops_before_images = row_form.shape in _OF_IMAGES and not row_form.before_image
        self._one_row_per_update = self._drops_before_images or row_form.shape in _OF_CHANGES
        self._renumbers = self._one_row_per_update or row_form.truncate == "ignore"

    def announce(self, announced: TableSchema) -> None:
        """Take a TABSCHEMA record: from here on rows of that table can be decoded.

        Raises:
            ProtocolViolation: the layout is not that of the catalog, or contradicts itself.
        """
        self._tables.announce(announced)

    def encode(self, transactions: Sequence[CommittedTransactions]) -> EncodedRows:
        """Return the rows of whole transactions, in commit order; what was returned before is over.

        Raises, while they are iterated over:
            DataLoss: half an update is missing, or a table was truncated and the policy is `fail`.
            ProtocolViolation: a row cannot be decoded.
        """
        if self._contents is not None:
            ids = [number for each in transactions for number in each.transaction_ids.tolist()]
            self._contents.reader.begin(frozenset(ids))
        left_out, is_grouped = _LeftOut(), self._shape.is_grouped
        present = tables_in(transactions, len(self._tables)) if is_grouped else [0]
        self._shape.begin(present)
        limits = group_limits(len(present)) if is_grouped else None
        batches = self._batches(transactions, left_out, limits)
        return EncodedRows(self._shape.stored_schema, batches, left_out)

    def join(self, number: int, commit: int) -> None:
        """Let changes of a table be of the stream that commit above a place, and no others."""
        self._since[number] = commit

    def encode_chunk(self, chunk: ChunkRows) -> EncodedRows:
        """Return rows that a snapshot has read; what was returned before is over.

        They are stored as changes of that one table are, whether or not the stream has described it.
        They are no changes: no policy is applied, and the observer of keys is shown none.

        Raises:
            BadOption: shape=raw, which has records and no rows; or no more rows can have that version.
            ValueError: the rows have other columns than their table.
        """
        if self._shape.with_bounds:
            raise BadOption(
                "shape=raw has the records of the log, and the rows of initialSnapshot are none.",
                "Set shape to rows, json, arrow or envelope, or initialSnapshot to none.",
            )
        self._tables.require_columns(chunk)
        if chunk.first_ordinal + len(chunk.rows) > _MOST_ORDINALS:
            raise BadOption(
                f"initialSnapshot has read more than {_MOST_ORDINALS} rows while no transaction"
                " committed: they would have no order.",
                "Set heartbeatTable, so that the log moves.",
            )
        self._shape.begin([chunk.number])
        if self._contents is not None:
            self._contents.reader.begin()
        batches = (
            self._shape.encode(part)
            for rows in rows_of_chunk(chunk)
            for part in self._with_contents(rows)
        )
        return EncodedRows(self._shape.stored_schema, batches, _LeftOut())

    def encode_beginning(self, number: int, commit: int, ordinal: int, read_at: int) -> EncodedRows:
        """Return the row of kind truncate that begins a snapshot: rows of before are not to be kept.

        The snapshot shows all rows that are there, and nothing of those that a sink has from before.
        """
        nothing = self._tables.row_of_nulls(number)
        return self.encode_chunk(
            ChunkRows(number, nothing, commit, ordinal, read_at, RecordKind.TRUNCATE)
        )

    def _batches(
        self,
        transactions: Sequence[CommittedTransactions],
        left_out: _LeftOut,
        limits: tuple[int, int] | None,
    ) -> Iterator[pa.RecordBatch]:
        if not transactions:
            return
        numbering = Numbering()
        for changes in lined_up(transactions, limits):
            self._tables.require_known(changes)
            changes = self._of_the_stream(changes)
            if self._shape.with_bounds:
                if len(changes):
                    yield self._shape.encode(changes)
                continue
            if self._observer is not None:
                self._tables.show_keys(changes, self._observer)
            for part in self._with_contents(changes):
                delivered = self._without_truncates(part)
                left_out.truncates += len(part) - len(delivered)
                judged = self._judged(delivered, numbering)
                if len(judged):
                    yield self._shape.encode(judged)

    def _with_contents(self, changes: Changes) -> Iterator[Changes]:
        """Yield changes in parts whose large objects have been read; an update is never in two."""
        if self._contents is None or not len(changes):
            yield changes
            return
        wanted = self._tables.objects(changes, skips_unchanged=self._contents.skips_unchanged)
        begins = np.flatnonzero(changes.kinds != RecordKind.UPDAFT).tolist()
        begins[:1] = [0]  # an update without its first image is refused later
        bounds = [*begins, len(changes)]
        units = [
            [place for each in wanted[first:end] for place in each] for first, end in pairwise(bounds)
        ]
        self.objects_asked_for += sum(map(len, units))
        done = 0
        for count, found in self._contents.reader.pieces(units):
            self._tables.contents.found = found
            del found
            yield changes.only(slice(bounds[done], bounds[count]))
            self._tables.contents.found = {}  # not in memory beside the next ones, nor until they come
            done = count

    def _of_the_stream(self, changes: Changes) -> Changes:
        """Return changes without those of tables that had not joined when they committed."""
        if not any(self._since):
            return changes
        commits = changes.of.commit_sequence_numbers[changes.transactions]
        is_bound = BOUNDS[changes.kinds]  # of a transaction, and of no table
        since = np.array([*self._since, 0])[np.where(is_bound, len(self._since), changes.table_ids)]
        is_early = commits <= since
        return changes.only(~is_early) if is_early.any() else changes

    def sound_part(self, transactions: Sequence[CommittedTransactions]) -> list[CommittedTransactions]:
        """Return the transactions before the first that cannot be encoded."""
        sound: list[CommittedTransactions] = []
        for one in [one for batch in transactions for one in batch.each()]:
            try:
                for _ in self.encode([one]):
                    pass
            except InformixCdcError:
                break
            sound.append(one)
        return sound

    def _judged(self, changes: Changes, numbering: Numbering) -> Changes:
        """Return the changes that are to be delivered, with their places among these."""
        if not len(changes):
            return changes
        _require_pairs(changes)
        is_before = changes.kinds == RecordKind.UPDBEF
        if self._renumbers:
            counted = ~is_before if self._one_row_per_update else np.ones(len(changes), bool)
            changes = replace(changes, ordinals=numbering.number(changes, counted))
        return changes.only(~is_before) if self._drops_before_images else changes

    def _without_truncates(self, changes: Changes) -> Changes:
        """Apply the policy for TRUNCATE."""
        truncates = changes.kinds == RecordKind.TRUNCATE
        if self._row_form.truncate == "emit" or not truncates.any():
            return changes
        if self._row_form.truncate == "ignore":
            return changes.only(~truncates)
        row = int(np.flatnonzero(truncates)[0])
        commit = int(changes.of.commit_sequence_numbers[changes.transactions[row]])
        raise DataLoss(
            f"table {self._tables.tables[int(changes.table_ids[row])].name} was truncated by the"
            f" transaction that committed at {show(commit)}.",
            "Set option truncate to emit, a row on which the sink empties the table's copy as"
            " examples/upsert.py does, or to ignore, and start again.",
            sequence_number=int(changes.sequence_numbers[row]),
        )


def _require_pairs(changes: Changes) -> None:
    """Refuse an update of which one image is missing (servers emit such: APAR IT07378)."""
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
            f"the update at {show(place)} has one image only.",
            f"The row's other image is missing: {NEW_STREAM}.",
            sequence_number=place,
        )
