"""Find the rows of one table step by step, so that others can write between two steps.

As on a server, a scan is not atomic: rows of a later step are read as they are then, under the
isolation and locks of that time. A scan follows an index or the physical order. Any other order needs a
sort, so all rows are found at once, as a server does before it returns the first row. A position
consists of the order's columns and the row's number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...answers import WireForm
from ...column_types.encoding import EmulatedType
from ...sql_errors import sql_error
from ..held_locks import owners_of
from ..language.values import Stored, loader
from ..reading import SessionView
from ..row_images import Pack, packed_by
from ..sources import TableView, filled_in
from ..storage import RowValues, Storage
from ..work import Blocked, Work
from .from_clause import ScanText

RowBatch = list[RowValues]


@dataclass(slots=True)
class ScannedRows:
    """Rows of a query, in pieces; `answers.FoundRows`."""

    kinds: Sequence[EmulatedType]
    pages: Iterator[RowBatch]

    def __iter__(self) -> Iterator[Sequence[object]]:
        """Return the rows one by one, as values."""
        loaders = [loader(kind) for kind in self.kinds]
        for page in self.pages:
            for row in page:
                yield tuple([load(value) for load, value in zip(loaders, row, strict=False)])

    def pieces(self, form: WireForm) -> Iterator[Sequence[bytes]]:
        """Return some rows after the other, as the wire has them."""
        pack = packed_by(form, self.kinds)
        if isinstance(self.pages, Scan) and self.pages.has_images(form):
            return self.pages.images(pack)
        return map(pack, self.pages)

    def close(self) -> None:
        """Let go what an open cursor holds."""
        close = getattr(self.pages, "close", None)
        if close is not None:
            close()


class Scan:
    """One run of a query of one table."""

    def __init__(
        self, reading: SessionView, text: ScanText, table: Storage, given: Sequence[Stored]
    ) -> None:
        self._reading = reading
        self._text = text
        self._table = table
        self._given = tuple(given)
        self._left = text.rows_wanted
        self._position: RowValues = ()
        self._is_done = self._left == 0
        self._holder: Work | None = None
        self._added: Callable[[RowBatch], RowBatch] = lambda rows: (
            rows
        )  # under the condition of the step
        self._first: RowBatch = []

    def begin(self) -> Scan:
        """Make the first step, which may be Blocked."""
        self._first = [] if self._is_done else self._step()
        return self

    def __iter__(self) -> Iterator[RowBatch]:
        """Return the rows of each step."""
        return self

    def __next__(self) -> RowBatch:
        """Return the rows of the next step."""
        page, self._first = self._first, []
        while not page and not self._is_done:
            if self._reading.server.between_scan_steps is not None:
                self._reading.server.between_scan_steps()
            page = self._reading.waits(self._step)
        if not page:
            self.close()
            raise StopIteration
        return page

    # --- rows as the wire has them --------------------------------------------------------------

    def has_images(self, form: WireForm) -> bool:
        """Whether the query is for whole rows, of a table that has images of these."""
        alias = self._text.rid.partition(".")[0]
        names = (f"{alias}.{name} AS r{n}" for n, name in enumerate(self._table.names))
        return self._table.image_form == form and self._shown == ", ".join(names)

    @property
    def _shown(self) -> str:
        """What is shown; in which order texts sort is of no matter here."""
        return self._text.items.replace(" COLLATE RTRIM", "")

    def images(self, pack: Pack) -> Iterator[list[bytes]]:
        """Return the rows of each step; `pack` makes images of those that have none."""
        if self._first:
            yield pack(self._first)
            self._first = []
        cells, rid = self._text, self._text.rid
        image = f"(SELECT image FROM {self._table.images} AS i WHERE i.rid = {rid}) AS image"
        self._text = replace(cells, items=image)
        self._added = lambda rows: self._with_images(rows, cells, pack)
        for page in self:
            yield [row[0] for row in page]  # type: ignore[misc]

    def _with_images(self, rows: RowBatch, cells: ScanText, pack: Pack) -> RowBatch:
        bare = {int(row[-1] or 0): place for place, row in enumerate(rows) if row[0] is None}
        if not bare:
            return rows
        sql = (
            f"SELECT {cells.items}, {cells.rid} {cells.source}"
            f" WHERE {cells.rid} IN ({', '.join(map(str, bare))})"
        )
        found = self._reading.find(filled_in(sql, [self._reading.view.words(self._table)]), ())
        for row, image in zip(found, pack([row[:-1] for row in found]), strict=True):
            place = bare[int(row[-1] or 0)]
            rows[place] = (image, *rows[place][1:])
        return rows

    def _step(self) -> RowBatch:
        table, view = self._table, self._reading.view
        if self._position and not self._reading.is_there(table):
            raise sql_error(-710, table.table.name.table)
        view.must_see(table, lambda: False)  # the table as a whole
        bound = self._first_locked(view)
        if self._reading.isolation == "repeatable read":
            self._lock_table(view)
        wanted = int(min(self._left, self._reading.server.rows_per_scan_step))
        rows = self._find(view.words(table), bound, wanted)
        if bound and not rows:
            owners = owners_of(self._reading.store, table, {int(bound[-1] or 0)}, view.number)
            raise Blocked(sql_error(-244), owners or view.blocked(table).owners, table)
        self._left -= len(rows)
        self._is_done = self._left == 0 or (not bound and len(rows) < wanted)
        if rows:
            self._position = rows[-1][-len(self._text.order) - 1 :]
        return self._added(rows)

    def _first_locked(self, view: TableView) -> RowValues:
        """Return where the first row lies that is locked and would have to be read; or nothing."""
        table = self._table
        if not view.looks_for_locks(table) or not table.is_locked_by_others(view.number):
            return ()
        found = self._find(view.locked_words(table), (), 1)
        return found[0][-len(self._text.order) - 1 :] if found else ()

    def _find(self, words: str, bound: RowValues, rows: int) -> RowBatch:
        sql, count = self._text.sql(len(self._given), bool(self._position), bool(bound), rows)
        given = (*self._given, *self._position, *bound)[:count]
        return self._reading.find(filled_in(sql, [words]), given)

    # --- what the isolation keeps locked --------------------------------------------------------

    def _lock_table(self, view: TableView) -> None:
        if self._table.is_temporary:
            return
        try:
            self._locker().lock_table(self._table, "shared")
        except Blocked as blocked:
            raise Blocked(sql_error(-244), blocked.owners, self._table) from None

    def _locker(self) -> Work:
        """Return who holds the locks: the transaction, or the cursor where there is none."""
        if self._reading.work is not None:
            return self._reading.work
        if self._holder is not None:
            return self._holder
        assert self._reading.cursor_work is not None
        work = self._reading.cursor_work()
        self._holder = work if self._reading.work is None else None
        return work

    def close(self) -> None:
        """Let go what the cursor holds; there are no more rows."""
        self._is_done = True
        with self._reading.server.log.changed:
            if self._holder is not None:
                self._holder.release()
                self._reading.forget_cursor(self._holder)
                self._holder = None
