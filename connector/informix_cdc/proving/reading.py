"""Read a capture session record by record, with the product's cutter, parser and decoder.

Rule: a reader stops by what has arrived, or after a number of TIMEOUT records; never by a clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import unpack_from
from typing import NamedTuple, TypeVar

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records import (
    ROW_HEADER_BYTES,
    Commit,
    Control,
    RecordBlock,
    RecordCutter,
    RecordKind,
    Rollback,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_capture_client.session import CaptureSession
from informix_capture_client.stream import in_our_numbers
from informix_capture_client.values import decode_payloads
from informix_cdc.proving import sql_text
from informix_cdc.proving.sql_text import ContractTable

# An open client saw the newest changes come tens of seconds late on Informix 15; a timeout is a second.
PATIENCE_TIMEOUTS = 60

SomeControl = TypeVar("SomeControl", bound=Control)


class SessionRow(NamedTuple):
    """INSERT, DELETE, UPDBEF, UPDAFT or TRUNCATE."""

    kind: RecordKind
    sequence_number: int
    transaction_id: int
    table_id: int
    sizes: tuple[int, ...]
    payload: bytes


Item = Control | SessionRow
IsEnough = Callable[[Sequence[Item]], bool]


class Missing(AssertionError):
    """The awaited records did not arrive; the message counts those that did, without their values."""


@dataclass
class Reader:
    """What a session has returned so far, record by record."""

    session: CaptureSession
    codec: str = "utf-8"
    patience_timeouts: int = PATIENCE_TIMEOUTS

    def __post_init__(self) -> None:
        self.items: list[Item] = []
        self.raw: list[bytes] = []
        self._cutter = RecordCutter()

    def until(self, is_enough: IsEnough, timeouts: int = 0) -> list[Item]:
        """Read until enough has arrived; raise `Missing` after this many TIMEOUT records in a row."""
        quiet, timeouts = 0, timeouts or self.patience_timeouts
        while not is_enough(self.items):
            new = self.read()
            quiet = quiet + len(new) if all(isinstance(item, Timeout) for item in new) else 0
            if quiet > timeouts:
                raise Missing(f"{timeouts} TIMEOUT records in a row, after {self._counts()}")
        return self.items

    def until_quiet(self, timeouts: int = 2) -> list[Item]:
        """Read until this many TIMEOUT records have arrived."""
        seen = len(self.of(Timeout)) + timeouts
        return self.until(lambda _: len(self.of(Timeout)) >= seen)

    def until_ended(self, transactions: int = 1) -> list[Item]:
        """Read until this many transactions with rows have ended, by COMMTX or RBTX."""
        return self.until(lambda _: self.ended >= transactions)

    @property
    def ended(self) -> int:
        """How many transactions with rows have ended."""
        return len(_ended(self.items))

    def _counts(self) -> str:
        names = Counter(
            item.kind.name if isinstance(item, SessionRow) else type(item).__name__
            for item in self.items
            if not isinstance(item, Timeout)
        )
        return ", ".join(f"{count} {name}" for name, count in names.items()) or "no other record"

    def read(self) -> list[Item]:
        """Read once."""
        records = self._cutter.feed(self.receive())
        if records is None:
            return []
        block = parse_block(in_our_numbers(records, self.session.record_kinds))
        new = [_item(block, place) for place in range(len(block))]
        self.items += new
        self.raw += [_bytes(block, place) for place in range(len(block))]
        return new

    def receive(self) -> bytes:
        """Return the bytes of one read."""
        return bytes(self.session.read())

    def of(self, kind: type[SomeControl]) -> list[SomeControl]:
        """Return the control records of a kind."""
        return [item for item in self.items if isinstance(item, kind)]

    @property
    def rows(self) -> list[SessionRow]:
        """The rows and TRUNCATEs."""
        return [item for item in self.items if isinstance(item, SessionRow)]

    @property
    def kinds(self) -> list[RecordKind]:
        """The kinds of the rows and TRUNCATEs."""
        return [row.kind for row in self.rows]

    def decoded(self, table: ContractTable, table_id: int = 0) -> list[tuple[object, ...]]:
        """Return the rows of a table as our decoder reads them, comparable with `printed`."""
        return [row for _, row in self.decoded_records(table, table_id)]

    def decoded_records(
        self, table: ContractTable, table_id: int = 0
    ) -> list[tuple[SessionRow, tuple[object, ...]]]:
        """Return each row of a table with what our decoder makes of it."""
        schema = next(s for s in self.of(TableSchema) if s.table_id == table_id)
        records = [r for r in self.rows if r.table_id == table_id and r.kind != RecordKind.TRUNCATE]
        rules = DecodeRules(intervals="string", codec=self.codec)
        batch = decode_payloads(schema.columns, [(r.sizes, r.payload) for r in records], rules)
        rows = [_comparable(table, row) for row in batch.to_pylist()]
        return list(zip(records, rows, strict=True))


def _comparable(table: ContractTable, row: Mapping[str, object]) -> tuple[object, ...]:
    return tuple(
        sql_text.comparable(kind, sql_text.rendered(kind, row[name])) for name, kind in table.columns
    )


def _ended(items: Sequence[Item]) -> set[int]:
    """Return the numbers of the ends of transactions with rows; later ones use the same ids again."""
    with_rows, ended = set[int](), set[int]()
    for item in items:
        if isinstance(item, SessionRow):
            with_rows.add(item.transaction_id)
        elif isinstance(item, Commit | Rollback) and item.transaction_id in with_rows:
            with_rows.discard(item.transaction_id)
            ended.add(item.sequence_number)
    return ended


def _item(block: RecordBlock, place: int) -> Item:
    if not block.is_row[place]:
        return block.control(place)
    raw = block.raw
    start, header = int(raw.starts[place]), int(raw.header_sizes[place])
    end = start + header + int(raw.payload_sizes[place])
    is_truncate = raw.kinds[place] == RecordKind.TRUNCATE
    count = 0 if is_truncate else (header - ROW_HEADER_BYTES) // 4
    return SessionRow(
        RecordKind(raw.kinds[place]),
        int(block.sequence_numbers[place]),
        int(block.transaction_ids[place]),
        int(block.table_ids[place]),
        unpack_from(f">{count}I", raw.data, start + ROW_HEADER_BYTES) if count else (),
        raw.data[start + header : end],
    )


def _bytes(block: RecordBlock, place: int) -> bytes:
    raw = block.raw
    start = int(raw.starts[place])
    return raw.data[start : start + int(raw.header_sizes[place] + raw.payload_sizes[place])]
