"""Histories of a server's log, and a naive model of what a capture must make of them.

The model looks back through the whole history for every record. It shares nothing with the assembler
but the names of what both return.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import strategies as st

from harness.capture.streams import (
    ReadRow,
    begin,
    commit,
    discard,
    rollback,
    row,
    rows_of,
    timeout,
    truncate,
)
from informix_capture_client.positions import Position
from informix_capture_client.records.records import RecordKind
from informix_capture_client.transactions.counters import AssemblyCounters
from informix_capture_client.transactions.events import (
    CommittedTransactions,
    PositionPassed,
    StreamEvent,
)

Word = Literal["begin", "row", "truncate", "discard", "commit", "rollback", "timeout"]
ENDS = ("commit", "rollback")
_ROW_KINDS = (RecordKind.INSERT, RecordKind.DELETE, RecordKind.UPDBEF, RecordKind.UPDAFT)


@dataclass(frozen=True)
class Entry:
    """One record: its place in the log, and the sequence number it states (a DISCARD's is older)."""

    word: Word
    place: int
    transaction: int
    sequence: int

    @property
    def time(self) -> int:
        """When it happened: the log is the clock."""
        return self.place

    @property
    def is_row(self) -> bool:
        return self.word in ("row", "truncate")

    def as_row(self) -> ReadRow:
        """The row as a test reads it back."""
        if self.word == "truncate":
            return (RecordKind.TRUNCATE, self.sequence, self.transaction, 0, b"")
        kind = _ROW_KINDS[self.place % 4]
        return (kind, self.sequence, self.transaction, 0, self.place.to_bytes(self.place % 5 + 2))

    def record(self) -> bytes:
        """The bytes the server would send."""
        sequence, transaction = self.sequence, self.transaction
        if self.word == "row":
            kind, _, _, _, payload = self.as_row()
            return row(sequence, transaction, payload, kind)
        return {
            "begin": lambda: begin(sequence, transaction, self.time, transaction + 500),
            "truncate": lambda: truncate(sequence, transaction, 0),
            "discard": lambda: discard(sequence, transaction),
            "commit": lambda: commit(sequence, transaction, self.time),
            "rollback": lambda: rollback(sequence, transaction),
            "timeout": lambda: timeout(sequence),
        }[self.word]()


History = list[Entry]

_WORDS: tuple[Word, ...] = (
    *("begin",) * 3,
    *("row",) * 6,
    *("commit",) * 3,
    "truncate",
    "discard",
    "discard",
    *("rollback",) * 2,
    "timeout",
)
STEPS = st.lists(st.tuples(st.sampled_from(_WORDS), st.integers(1, 4), st.integers(0, 7)), max_size=60)


def history(steps: Sequence[tuple[Word, int, int]]) -> History:
    """Play steps as a server would: what an id cannot do now is left out."""
    entries: History = []
    rows: dict[int, list[int]] = {}  # of open transactions
    place = 1000
    for word, transaction, choice in steps:
        place += 1 + choice % 3
        is_open = transaction in rows
        if word == "timeout":
            entries.append(Entry("timeout", place, 0, entries[-1].place if entries else 0))
        elif word == "begin" and (not is_open or choice == 0):  # 0: the owner vanished
            rows[transaction] = []
            entries.append(Entry("begin", place, transaction, place))
        elif word in ENDS and is_open:
            del rows[transaction]
            entries.append(Entry(word, place, transaction, place))
        elif word == "discard" and is_open and rows[transaction]:
            undone = rows[transaction][-1 - choice % len(rows[transaction])]
            entries.append(Entry("discard", place, transaction, undone - choice % 2))
            rows[transaction] = [number for number in rows[transaction] if number < undone]
        elif word in ("row", "truncate") and is_open:
            for _ in range(1 + choice % 4 if word == "row" else 1):
                rows[transaction].append(place)
                entries.append(Entry(word, place, transaction, place))
                place += 1
    return entries


HISTORIES = STEPS.map(history)


@dataclass
class Model:
    """What a capture of `entries` must observe, if it begins with the first of them."""

    entries: History
    position: Position = field(default_factory=lambda: Position(0, 0))
    is_started: bool = True
    unseen: frozenset[int] = frozenset()
    waits_for_unseen: bool = True
    clock: int = 0
    counters: AssemblyCounters = field(default_factory=AssemblyCounters)

    def observed(self) -> list[object]:
        """Return every event, as `observed_events` shows those of an assembler."""
        events: list[object] = []
        for n, entry in enumerate(self.entries):
            self._count(n, entry)
            if entry.word in (*ENDS, "timeout"):
                events += self._ended(n, entry)
        return events

    def begin_of(self, n: int, transaction: int) -> int | None:
        """Return where the transaction open just before entry `n` began, if one is."""
        for m in reversed(range(n)):
            entry = self.entries[m]
            if entry.transaction == transaction and entry.word in ("begin", *ENDS):
                return m if entry.word == "begin" else None
        return None

    def unseen_at(self, n: int) -> tuple[int, ...]:
        """Return which of the unseen transactions have shown no end before entry `n`."""
        ended = {e.transaction for e in self.entries[:n] if e.word in ("begin", *ENDS)}
        return tuple(sorted(self.unseen - ended))

    def rows(self, first: int, end: int) -> list[Entry]:
        """Return the rows of a transaction that no later DISCARD undoes."""
        mine = self.entries[first].transaction
        inside = [e for e in self.entries[first:end] if e.transaction == mine]
        undoing = [e for e in inside if e.word == "discard"]
        return [
            e
            for e in inside
            if e.is_row and not any(d.place > e.place and e.sequence >= d.sequence for d in undoing)
        ]

    def _ended(self, n: int, entry: Entry) -> list[object]:
        first = self.begin_of(n, entry.transaction)
        was_started, was_delivered = self.is_started, entry.sequence <= self.position.commit
        if not was_started and not self._is_anchor(n, entry):
            return []
        opened = {e.transaction for e in self.entries[: n + 1] if e.word == "begin"}
        begins = [b for key in opened if (b := self.begin_of(n + 1, key)) is not None]
        lowest = min((self.entries[b].sequence for b in begins), default=entry.sequence)
        moves = entry.word == "commit" or not was_started
        self.position = Position(
            max(self.position.commit, entry.sequence if moves else 0),
            max(self.position.restart, lowest),
            self.unseen_at(n + 1),
        )
        if entry.word == "commit" and was_started and first is not None and not was_delivered:
            if rows := self.rows(first, n):
                self.counters.transactions += 1
                begun = self.entries[first]
                shown = [e.as_row() for e in rows]
                return [
                    ("transaction", begun.sequence, begun.time, entry.sequence, shown, self.position)
                ]
            self.counters.empty_transactions += 1
        return [("passed", self.position, entry.word == "timeout" and was_started)]

    def _is_anchor(self, n: int, entry: Entry) -> bool:
        is_late = entry.word == "timeout" or (entry.word == "commit" and entry.time > self.clock)
        self.is_started = is_late and not (self.waits_for_unseen and self.unseen_at(n + 1))
        return self.is_started

    def _count(self, n: int, entry: Entry) -> None:
        first = self.begin_of(n, entry.transaction)
        if entry.word == "begin":
            self.counters.abandoned_transactions += first is not None
        elif entry.word == "rollback":
            self.counters.rolled_back_transactions += first is not None
        elif entry.word == "commit":
            self.counters.unseen_transactions += entry.transaction in self.unseen_at(n)
        if entry.word in ENDS and first is not None:
            mine = [e for e in self.entries[first:n] if e.transaction == entry.transaction and e.is_row]
            self.counters.discarded_rows += len(mine) - len(self.rows(first, n))


def observed_events(events: Sequence[StreamEvent]) -> list[object]:
    """Show everything that can be seen of events."""
    shown: list[object] = []
    for event in events:
        if isinstance(event, CommittedTransactions):
            (transaction_id,) = event.transaction_ids.tolist()
            assert event.user_ids.tolist() == [transaction_id + 500]
            assert event.record_counts.tolist() == [len(rows_of(event))]
            shown.append(
                (
                    "transaction",
                    *event.begin_sequence_numbers.tolist(),
                    *event.begin_times.tolist(),
                    *event.commit_sequence_numbers.tolist(),
                    rows_of(event),
                    event.position,
                )
            )
        else:
            assert isinstance(event, PositionPassed)
            shown.append(("passed", event.position, event.is_timeout))
    return shown
