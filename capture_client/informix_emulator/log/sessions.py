"""A capture session: its tables, its position, and the bytes that a read returns.

The session has a position in the log, not a copy of it. A read returns, in this order, the rest of a
record that was cut, records of the session itself (TABSCHEMA, ERROR), and records of the log.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import cast

from ..tables.tables import Capture, EmulatedTable, make_table
from . import codes, records
from .logical_log import EmulatedLogFile, LogicalLog, LogRecord, UnreadableEnd

_CHECK_SECONDS = 0.1  # how often a waiting read looks for a cancel or a lost connection


@dataclass(frozen=True, slots=True)
class ReadingManner:
    """How all sessions of a server read."""

    wait_to_fill: bool
    foreign_transactions: bool
    late_begin: bool
    hides_headless: bool
    is_silent: Callable[[], bool]
    timeout_seconds: float

    @property
    def shows_all(self) -> bool:
        """Whether each record of the log is shown by itself, independent of earlier ones."""
        return self.foreign_transactions and not self.late_begin and not self.hides_headless


@dataclass(slots=True)
class _Answer:
    """What one read has gathered."""

    room: int
    records: int
    data: list[bytes] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return self.room <= 0 or self.records <= 0


class EmulatedSession:
    """An open session. Its methods that touch the log lock it."""

    def __init__(
        self, session_id: int, log: LogicalLog, manner: ReadingManner, timeout: int, max_recs: int
    ) -> None:
        self.id = session_id
        self.timeout = timeout
        self.max_recs = max_recs
        self.created = 0
        self.error = 0
        self.captures: dict[int, Capture] = {}
        self.is_active = False
        self.is_dead = False
        self.is_stalled = False
        self.empty_reads = 0
        self._log = log
        self._manner = manner
        self._own_records: deque[bytes] = deque()
        self._cut_record = b""
        self._cut_at = 0
        self._file: EmulatedLogFile | None = None
        self._index = 0
        self._last_sequence = log.end()
        self._what = _what(self.captures)
        self._withheld: dict[int, bytes] = {}  # BEGINTX of transactions without captured rows yet
        self._shown: set[int] = set()
        self._begun: set[int] = set()  # transactions whose BEGINTX this session has met

    @property
    def is_over(self) -> bool:
        """Whether the session is dead and its ERROR record was read."""
        return self.is_dead and not self._own_records and not self._cut_record

    def capture(self, capture: Capture) -> None:
        """Add a table; an active session announces it at once."""
        with self._log.changed:
            self.captures[capture.table.partnum] = capture
            self._what = _what(self.captures)
            if self.is_active:
                self._announce(capture)

    def end_capture(self, partnum: int) -> None:
        """Take a table away."""
        with self._log.changed:
            del self.captures[partnum]
            self._what = _what(self.captures)

    def activate(self, position: int) -> None:
        """Start at a position, 0 for the end of the log.

        A position beyond the end is taken and never met: seen on real servers as reads that only
        time out, also when the log has come to that position later.
        """
        with self._log.changed:
            position = position or self._log.flushed_end()
            is_met = position <= self._log.end()
            self._file, self._index = self._log.find(position) if is_met else (None, 0)
            self._last_sequence = position
            self.is_active = True
            for capture in self.captures.values():
                self._announce(capture)

    def deactivate(self) -> None:
        """Stop; what was not read is dropped."""
        with self._log.changed:
            self.is_active = False
            self._file = None
            self._cut_record, self._cut_at = b"", 0
            self._own_records.clear()
            self._withheld.clear()
            self._shown.clear()
            self._begun.clear()

    def fail(self, flags: int, code: int) -> None:
        """Let the next read return an ERROR record."""
        with self._log.changed:
            self.error = code
            self._own_records.append(records.error(flags, code))
            self.is_dead = self.is_dead or bool(flags & codes.SESSION_IS_DEAD)
            self._log.changed.notify_all()

    def announce_as(self, table: EmulatedTable, columns: str, locale: str) -> None:
        """Let the next read return a TABSCHEMA of a captured table with other columns."""
        with self._log.changed:
            known = self.captures[table.partnum]
            altered = make_table(str(table.name), columns, locale, table.tabid, table.kind)
            names = [column.name for column in altered.columns]
            self._announce(Capture(altered, names, known.user_data))
            self._log.changed.notify_all()

    def restart_record(self) -> int:
        """Let the next read begin with the first byte of a record that was cut.

        The guide: capture restarts from the beginning of the record being returned, and the
        records skipped, complete or partial, are counted. Our reading: what is skipped is the
        partial record that a read has returned, so the count is 1, or 0 if none was cut.
        """
        with self._log.changed:
            skipped = 1 if self._cut_at else 0
            self._cut_at = 0
            return skipped

    def read(self, room: int, check: Callable[[], None]) -> bytes:
        """Return the next bytes: at most `room`, of at most `max_recs` records.

        Args:
            room: the bytes that the caller has room for.
            check: called while waiting; raises to give up.
        """
        if self.empty_reads:
            self.empty_reads -= 1
            return b""
        patience = self.timeout * self._manner.timeout_seconds if self.timeout >= 0 else float("inf")
        deadline = time.monotonic() + patience
        answer = _Answer(room, self.max_recs)
        while not self._gather_or_wait(answer, deadline):
            try:
                check()
            except BaseException:
                self._give_back(answer)
                raise
        return b"".join(answer.data) or records.timeout(self._last_sequence)

    def _gather_or_wait(self, answer: _Answer, deadline: float) -> bool:
        """Return whether the answer can go, else wait a little for more."""
        with self._log.changed:
            left = deadline - time.monotonic()
            if self._is_enough(answer) or (left <= 0 and not self._hangs(answer)):
                return True
            self._log.changed.wait(min(max(left, 0), _CHECK_SECONDS) or _CHECK_SECONDS)
            return False

    def _hangs(self, answer: _Answer) -> bool:
        """Whether a read that has gathered nothing does not even time out: it stands before a wall."""
        file = self._file
        if answer.data or file is None or self._index < self._readable(file):
            return False
        return (unreadable := self._unreadable_end(file)) is not None and not unreadable.reads_return

    def _is_enough(self, answer: _Answer) -> bool:
        self._log.flush_if_due()
        self._gather(answer)
        fills = self._manner.wait_to_fill and not self.is_dead
        return bool(answer.data) and (answer.is_full or not fills)

    @property
    def _is_quiet(self) -> bool:
        """Whether there is nothing but TIMEOUT records, though never in the middle of a record."""
        return self.is_stalled or self._manner.is_silent()

    def _give_back(self, answer: _Answer) -> None:
        """Let the next read return what a read that is given up had gathered."""
        with self._log.changed:
            self._cut_record = b"".join(answer.data) + self._cut_record[self._cut_at :]
            self._cut_at = 0

    def _gather(self, answer: _Answer) -> None:
        while not answer.is_full and (self._cut_record or not self._is_quiet):
            if self._gather_block(answer):
                continue
            record = self._cut_record or self._next_record()
            if record is None:
                return
            piece = record[self._cut_at : self._cut_at + answer.room]
            answer.data.append(piece)
            answer.room -= len(piece)
            answer.records -= 1
            self._cut_at += len(piece)
            is_whole = self._cut_at == len(record)
            self._cut_record, self._cut_at = (b"", 0) if is_whole else (record, self._cut_at)

    def _gather_block(self, answer: _Answer) -> bool:
        """Take records of the log all at once; False where they must be looked at one by one.

        With 1 ms between request and answer, an answer of 256 records must cost far less than that.
        """
        file = self._file
        if file is None or file.is_gone or not self._reads_only_the_log():
            return False
        up_to = min(self._index + answer.records, self._readable(file))
        block = self._encoded(file, up_to)
        size = sum(map(len, block))
        if not block or size > answer.room:
            return False
        if size:
            answer.data.append(b"".join(block))
        answer.room -= size
        answer.records -= len(block) - block.count(b"")
        self._index, self._last_sequence = up_to, file.records[up_to - 1].place
        return True

    def _reads_only_the_log(self) -> bool:
        is_plain = self._manner.shows_all and not self.is_dead
        return is_plain and not self._own_records and not self._cut_record

    def _encoded(self, file: EmulatedLogFile, up_to: int) -> list[bytes]:
        """Return the next records up to an index as they are sent; b"" stands for one that is not."""
        known = file.encoded.setdefault(self._what, [])
        known += [None] * (up_to - len(known))
        block = known[self._index : up_to]
        if None not in block:
            return cast("list[bytes]", block)
        records_here = file.records[self._index : up_to]
        made = [_SHOW[record.kind](self, record) or b"" for record in records_here]
        known[self._index : up_to] = made
        return made

    def _next_record(self) -> bytes | None:
        if self._own_records:
            return self._own_records.popleft()
        if self.is_dead:
            return None
        while (record := self._next_of_log()) is not None:
            self._last_sequence = record.place
            if shown := _SHOW[record.kind](self, record):
                return shown
        return self._own_records.popleft() if self._own_records else None

    def _next_of_log(self) -> LogRecord | None:
        while (file := self._file) is not None:
            if self._index < self._readable(file):
                return self._take(file)
            if file.next is None or self._unreadable_end(file) is not None:
                return None
            self._file, self._index = file.next, 0
        return None

    def _unreadable_end(self, file: EmulatedLogFile) -> UnreadableEnd | None:
        """Return the wall in a log file that this session cannot pass, if there is one."""
        is_free = file.unreadable is None or self.id in file.unreadable.spared
        return None if is_free else file.unreadable

    def _readable(self, file: EmulatedLogFile) -> int:
        """Return how many records of a log file the session may have."""
        unreadable = self._unreadable_end(file)
        return file.flushed if unreadable is None else min(file.flushed, unreadable.index)

    def _take(self, file: EmulatedLogFile) -> LogRecord | None:
        if file.is_gone:
            # no source says what a session gets when its log is overwritten: the code is our choice
            self._own_records.append(
                records.error(codes.SESSION_IS_DEAD, codes.error_code("CDC_E_LSN"))
            )
            self.is_dead, self._file = True, None
            return None
        self._index += 1
        return file.records[self._index - 1]

    def _announce(self, capture: Capture) -> None:
        self._own_records.append(
            records.table_schema(capture.user_data, capture.counts, capture.schema_text)
        )

    def _show_row(self, record: LogRecord) -> bytes | None:
        place, kind, transaction_id, table, sizes, payload = record
        capture = self.captures.get(table)
        if capture is None:
            return None
        if not capture.is_whole:
            sizes, payload = capture.cut(sizes, payload)
        shown = records.row(kind, place, transaction_id, capture.user_data, sizes, payload)
        return self._after_begin(transaction_id, shown)

    def _show_truncate(self, record: LogRecord) -> bytes | None:
        capture = self.captures.get(record.table)
        if capture is None:
            return None
        number = record.transaction_id
        return self._after_begin(number, records.truncate(record.place, number, capture.user_data))

    def _after_begin(self, transaction_id: int, record: bytes) -> bytes | None:
        """Return a record of a captured row, or first the BEGINTX that was withheld."""
        if self._manner.shows_all:
            return record
        if self._manner.hides_headless and transaction_id not in self._begun:
            return None
        self._shown.add(transaction_id)
        begin = self._withheld.pop(transaction_id, None)
        if begin is None:
            return record
        self._own_records.append(record)
        return begin

    def _show_begin(self, record: LogRecord) -> bytes | None:
        if self._manner.shows_all:
            return record.payload
        self._begun.add(record.transaction_id)
        if self._manner.foreign_transactions and not self._manner.late_begin:
            return record.payload
        self._withheld[record.transaction_id] = record.payload
        return None

    def _show_middle(self, record: LogRecord) -> bytes | None:
        number = record.transaction_id
        is_headless = self._manner.hides_headless and number not in self._begun
        is_shown = number in self._shown or (
            self._manner.foreign_transactions and number not in self._withheld
        )
        return record.payload if is_shown and not is_headless else None

    def _show_end(self, record: LogRecord) -> bytes | None:
        """Return the end; a BEGINTX still withheld comes first where foreign ones are shown."""
        shown = self._show_middle(record)
        begin = self._withheld.pop(record.transaction_id, None)
        self._shown.discard(record.transaction_id)
        self._begun.discard(record.transaction_id)
        if begin is not None and self._manner.foreign_transactions:
            self._own_records.append(record.payload)
            return begin
        return shown


def _what(captures: dict[int, Capture]) -> Hashable:
    """Return what decides how records of the log are sent."""
    return tuple((key, c.user_data, c.schema_text) for key, c in sorted(captures.items()))


_SHOW: dict[int, Callable[[EmulatedSession, LogRecord], bytes | None]] = {
    codes.BEGINTX: EmulatedSession._show_begin,
    codes.COMMTX: EmulatedSession._show_end,
    codes.RBTX: EmulatedSession._show_end,
    codes.DISCARD: EmulatedSession._show_middle,
    codes.INSERT: EmulatedSession._show_row,
    codes.DELETE: EmulatedSession._show_row,
    codes.UPDBEF: EmulatedSession._show_row,
    codes.UPDAFT: EmulatedSession._show_row,
    codes.TRUNCATE: EmulatedSession._show_truncate,
    codes.OTHER: EmulatedSession._show_middle,
}
