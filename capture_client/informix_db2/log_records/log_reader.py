"""Decode values with log records into changes: containers, transactions, rows of declared tables.

Rule: rows are decoded when their transaction ends, many at a time. Transactions that are open at the
end of a value are delivered as `incomplete`, so that nothing is silently missing; consecutive values
are read as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from informix_capture_client.errors import BadOption
from informix_db2.binary_values import Order
from informix_db2.changes import Db2Changes
from informix_db2.code_pages import CodePage, code_page
from informix_db2.declared_tables import DeclaredTable
from informix_db2.decoding import MOST_BYTES
from informix_db2.log_records.containers import (
    MARKS,
    ORDERS,
    PREFIXES,
    CutBytes,
    RecordRun,
    orders_that_fit,
    records_of,
    sqlcodes_of,
)
from informix_db2.log_records.delivered_rows import Readers, decoded, delivered
from informix_db2.log_records.logged_changes import (
    NO_TABLE,
    Ended,
    LoggedChanges,
    merged,
    nothing_of,
    of_transactions,
    table_code,
)
from informix_db2.log_records.table_rows import LoggedRowReader
from informix_db2.log_records.transactions import Assembler, Taken
from informix_db2.log_records.usual_transactions import Places, separate
from informix_db2.refused_bytes import BadDb2Value, ColumnValues, Refusals

TOGETHER_RECORDS = 32_768
TOGETHER_ROWS = 32_768


@dataclass(frozen=True)
class LogSettings:
    """Settings for reading log records.

    Attributes:
        byte_order: the server's, or auto.
        container: the container format of a value: containers.py.
        ids: of each declared table its table space and table, "4.5" (SYSCAT.TABLES).
        encoding: code page of CHAR and VARCHAR.
        graphic_encoding: code page of GRAPHIC and DBCLOB.
        other_tables: whether rows of undeclared tables are errors, or skipped.
        across_values: whether a transaction continues in the next value.
        max_transaction_bytes: the maximum bytes of log records of a transaction.
        max_open_bytes: the maximum total bytes of transactions that are open at the end of a value, or
            are assembled record by record.
        max_value_bytes: the maximum bytes of a value.
    """

    byte_order: Literal["auto", "little", "big"] = "auto"
    container: str = "records"
    ids: Mapping[str, str] | None = None
    encoding: str | int = "utf-8"
    graphic_encoding: str | int = "utf-16-be"
    other_tables: Literal["fail", "skip"] = "fail"
    across_values: bool = False
    max_transaction_bytes: int = MOST_BYTES
    max_open_bytes: int = MOST_BYTES
    max_value_bytes: int = MOST_BYTES

    @property
    def is_one_log(self) -> bool:
        """Whether values are consecutive parts of one log; always true for single-record values."""
        return self.across_values or self.container == "message"

    def __post_init__(self) -> None:
        known = {
            "byte_order": ("auto", *ORDERS),
            "container": tuple(PREFIXES),
            "other_tables": ("fail", "skip"),
        }
        for option, values in known.items():
            if (given := getattr(self, option)) not in values:
                raise BadOption(f"{option}: {given!r} is not one of {', '.join(values)}.")

    @cached_property
    def code_pages(self) -> tuple[CodePage, CodePage]:
        """Of characters, and of graphic strings."""
        return code_page(self.encoding), code_page(self.graphic_encoding)


class LogReader:
    """Decodes log records into changes; use one reader per sequence of values."""

    def __init__(self, settings: LogSettings, tables: tuple[DeclaredTable, ...]) -> None:
        self._settings = settings
        numbers = _numbers(tables, settings.ids or {})
        codes = {number: code for code, number in numbers.items()}
        self._names = {code: tables[number].name for code, number in numbers.items()}
        self._readers: dict[Order, Readers] = {
            order: [
                (codes.get(number), LoggedRowReader(table, order, *settings.code_pages))
                for number, table in enumerate(tables)
            ]
            for order in ORDERS
        }
        self._order: Order | None = None if settings.byte_order == "auto" else settings.byte_order
        self._assembler: Assembler | None = None

    def changes(self, values: ColumnValues, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the changes of values, in commit order within each; None if bytes were only rejected.

        Raises:
            ProtocolViolation: a record is invalid, and invalid ones are not delivered as rows.
            BadOption: a transaction, or all open ones, exceed their limit of bytes.
        """
        waiting = _Waiting()
        for value in range(len(values.names)):
            start, end = values.bounds[value : value + 2].tolist()
            if start == end:
                continue
            if (order := self._order_of(values, start, end)) is None:
                reason = "the byte order of the first bytes is ambiguous, or they are not a log record"
                refusals.refuse(start, end, reason, 0)
                yield None
                continue
            container = self._settings.container
            for found in records_of(values, value, order, container, TOGETHER_RECORDS):
                if waiting.add(found):
                    yield from self._of_records(values, waiting, order, refusals)
            if not self._settings.is_one_log:
                yield from self._of_rest(values, waiting, order, refusals, value)
        if self._settings.is_one_log and self._order is not None:
            yield from self._of_rest(values, waiting, self._order, refusals, None)

    def finish(self, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the transactions open at the end of all values, if these are one log."""
        if self._assembler is not None and self._order is not None:
            ended = [Ended(each, 0, -1) for each in self._assembler.unfinished()]
            yield from self._delivered(of_transactions(ended), self._order, refusals)

    def _order_of(self, values: ColumnValues, start: int, end: int) -> Order | None:
        if self._order is not None:
            return self._order
        found = orders_that_fit(values.data, start, end, self._settings.container)
        order = found[0] if len(found) == 1 else None
        if self._settings.is_one_log:
            self._order = order
        return order

    def _assembler_of(self, order: Order) -> Assembler:
        # Values that end alone leave nothing open, and each may be in its own byte order.
        if self._assembler is None or self._assembler.order != order:
            most = self._settings.max_transaction_bytes, self._settings.max_open_bytes
            self._assembler = Assembler(MARKS[order], *most)
        return self._assembler

    def _of_records(
        self, values: ColumnValues, waiting: _Waiting, order: Order, refusals: Refusals
    ) -> Iterator[Db2Changes | None]:
        """Yield the changes of waiting records; those of open transactions keep waiting."""
        assembler = self._assembler_of(order)
        places = self._not_refused(values, waiting.taken(), order, refusals)
        if not len(places.starts):
            return
        data = np.frombuffer(values.data, np.uint8)
        most = self._settings.max_transaction_bytes
        found = separate(data, places, MARKS[order], assembler.known(), most)
        usual = found.usual
        usual.transactions["value"] = values.which(usual.transactions["order"])
        others = list(_ended(values, places.some(found.others), assembler, refusals))
        waiting.hold(places.some(found.unended))
        yield from self._delivered(merged(usual, of_transactions(others)), order, refusals)

    def _of_rest(
        self,
        values: ColumnValues,
        waiting: _Waiting,
        order: Order,
        refusals: Refusals,
        value: int | None,
    ) -> Iterator[Db2Changes | None]:
        """Yield the remaining changes at the end of values; a separate value leaves nothing open."""
        yield from self._of_records(values, waiting, order, refusals)
        assembler = self._assembler_of(order)
        ended = list(_ended(values, waiting.taken(), assembler, refusals))
        if value is not None:
            ended += [Ended(each, 0, value) for each in assembler.unfinished()]
        yield from self._delivered(merged(nothing_of(), of_transactions(ended)), order, refusals)
        for cut in waiting.cuts:
            refusals.refuse(*cut)
            yield None
        waiting.cuts.clear()

    def _not_refused(
        self, values: ColumnValues, places: Places, order: Order, refusals: Refusals
    ) -> Places:
        if self._settings.container != "filter":
            return places
        codes = sqlcodes_of(values.data, places.starts, order)
        for bad in np.flatnonzero(codes).tolist():
            reason = f"SQLCODE {codes[bad]}: the server could not decompress its row"
            start, number = int(places.starts[bad]), int(places.numbers[bad])
            refusals.refuse(start, _end_of(values, start, order), reason, number)
        return places.some(np.flatnonzero(codes == 0))

    def _delivered(
        self, logged: LoggedChanges, order: Order, refusals: Refusals
    ) -> Iterator[Db2Changes | None]:
        for part in logged.parts(TOGETHER_ROWS):
            yield self._changes(part, order, refusals)

    def _changes(self, logged: LoggedChanges, order: Order, refusals: Refusals) -> Db2Changes | None:
        if self._names:
            logged = self._of_declared(logged, refusals)
        found = decoded(logged, self._readers[order])
        for place, reason in sorted(found.notes.wrong.items()):
            _refuse(logged, place, reason, refusals)
        return delivered(logged, found, self._names)

    def _of_declared(self, logged: LoggedChanges, refusals: Refusals) -> LoggedChanges:
        """Return changes of declared tables; what has no row belongs to none."""
        known = [*self._names, NO_TABLE]
        is_known = np.isin(logged.changes["table"], known)
        if is_known.all():
            return logged
        if self._settings.other_tables == "fail":
            for place in np.flatnonzero(~is_known).tolist():
                code = int(logged.changes["table"][place])
                reason = f"table space {code >> 16}, table {code & 0xFFFF} is not declared"
                _refuse(logged, place, reason, refusals)
        return logged.only(np.flatnonzero(is_known))


class _Waiting:
    """Records that were found but not read yet, and truncated bytes."""

    def __init__(self) -> None:
        self.cuts: list[CutBytes] = []
        self._places: list[Places] = []
        self._count, self._held = 0, 0

    def add(self, found: RecordRun | CutBytes) -> bool:
        """Add records; return whether there are enough to process.

        Records of open transactions are processed again each time, so there must be as many new ones.
        """
        if isinstance(found, CutBytes):
            self.cuts.append(found)
            return False
        starts = np.array(found[0], np.int64)
        self._places.append(Places(starts, found[1] + np.arange(len(starts))))
        self._count += len(starts)
        return self._count >= max(TOGETHER_RECORDS, 2 * self._held)

    def hold(self, places: Places) -> None:
        """Let records wait that belong to open transactions."""
        self._places.append(places)
        self._count = self._held = len(places.starts)

    def taken(self) -> Places:
        """Return and remove all waiting records."""
        starts = [np.empty(0, np.int64), *(places.starts for places in self._places)]
        numbers = [np.empty(0, np.int64), *(places.numbers for places in self._places)]
        self._places, self._count = [], 0
        return Places(np.concatenate(starts), np.concatenate(numbers))


def _end_of(values: ColumnValues, start: int, order: Order) -> int:
    return start + int.from_bytes(values.data[start : start + 4], order)


def _ended(
    values: ColumnValues, places: Places, assembler: Assembler, refusals: Refusals
) -> Iterator[Ended]:
    """Yield ended transactions, processing records one by one."""
    which = values.which(places.starts).tolist()
    places_of = zip(places.starts.tolist(), places.numbers.tolist(), which, strict=True)
    for start, number, value in places_of:
        end = _end_of(values, start, assembler.order)
        try:
            done = assembler.take(Taken(values.data[start:end], values.where(value, start), number))
        except BadDb2Value as bad:
            refusals.refuse(start, end, bad.reason, number)
            continue
        if done is not None:
            yield Ended(done, start, value)


def _refuse(logged: LoggedChanges, place: int, reason: str, refusals: Refusals) -> None:
    change = logged.changes[place]
    start, size, number = change["record"].tolist()
    if size >= 0:
        refusals.refuse(start, start + size, reason, number)
        return
    value = int(logged.transactions["value"][change["transaction"]])
    record = logged.objects[change["object"]].record
    refusals.refuse_record(value, record.data, reason, record.number, record.where)


def _numbers(tables: Sequence[DeclaredTable], ids: Mapping[str, str]) -> dict[int, int]:
    """Return the place of each table by its code."""
    found: dict[int, int] = {}
    for number, table in enumerate(tables):
        other = found.setdefault(_code_of(table, ids), number)
        if other != number:
            raise BadOption(
                f"ids: tables {tables[other].name} and {table.name} have the same numbers.",
                "A number identifies one table: declare each table once.",
            )
    return found


def _code_of(table: DeclaredTable, ids: Mapping[str, str]) -> int:
    given = ids.get(table.name, table.name)
    found = re.fullmatch(r"(\d{1,5})\.(\d{1,5})", given)
    if found is None or max(int(found[1]), int(found[2])) >= 1 << 16:
        raise BadOption(
            f"ids: the table space and table number of table {table.name} are missing.",
            "Set ids={'NAME': '4.5'} with TBSPACEID and TABLEID of SYSCAT.TABLES, up to 65535 each.",
        )
    return table_code(int(found[1]), int(found[2]))
