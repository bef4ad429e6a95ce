"""Read a session as far as a test wants, with our own cutter, parser and decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import unpack_from
from typing import NamedTuple, TypeVar

from harness.servers import sql_text
from harness.servers.sql_text import ContractTable
from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import (
    Commit,
    Control,
    RecordBlock,
    RecordKind,
    Rollback,
    TableSchema,
    Timeout,
    parse_block,
)
from informix_capture_client.session.session import CaptureSession
from informix_capture_client.stream.event_stream import in_our_numbers
from informix_capture_client.values.table_decoder import decode_payloads

# An open client saw the newest changes come tens of seconds late on Informix 15; a timeout is a second.
PATIENCE_TIMEOUTS = 60
_ROW_HEADER_BYTES = 36  # CDC guide, tables 3-3 to 3-11: the sizes of variable columns follow

SomeControl = TypeVar("SomeControl", bound=Control)


class RowRecord(NamedTuple):
    """INSERT, DELETE, UPDBEF, UPDAFT or TRUNCATE."""

    kind: RecordKind
    sequence_number: int
    transaction_id: int
    table_id: int
    sizes: tuple[int, ...]
    payload: bytes


Item = Control | RowRecord
IsEnough = Callable[[Sequence[Item]], bool]


class Missing(AssertionError):
    """The server sent nothing more, and what a test waits for was not among it."""


@dataclass
class Reader:
    """What a session has returned so far, record by record."""

    session: CaptureSession
    codec: str = "utf-8"

    def __post_init__(self) -> None:
        self.items: list[Item] = []
        self.raw: list[bytes] = []
        self._cutter = RecordCutter()

    def until(self, is_enough: IsEnough, timeouts: int = PATIENCE_TIMEOUTS) -> list[Item]:
        """Read until enough has come; `Missing` after so many TIMEOUT records in a row."""
        quiet = 0
        while not is_enough(self.items):
            new = self.read()
            quiet = quiet + len(new) if all(isinstance(item, Timeout) for item in new) else 0
            if quiet > timeouts:
                raise Missing(f"after {timeouts} TIMEOUTs there is only {self.items[-12:]}")
        return self.items

    def until_quiet(self, timeouts: int = 2) -> list[Item]:
        """Read until the server has had nothing so many times."""
        seen = len(self.of(Timeout)) + timeouts
        return self.until(lambda _: len(self.of(Timeout)) >= seen)

    def until_ended(self, transactions: int = 1) -> list[Item]:
        """Read until so many transactions with rows have ended, by COMMTX or RBTX."""
        return self.until(lambda _: self.ended >= transactions)

    @property
    def ended(self) -> int:
        """How many transactions with rows have ended."""
        return len(_ended(self.items))

    def read(self) -> list[Item]:
        """Read once."""
        records = self._cutter.feed(bytes(self.session.read()))
        if records is None:
            return []
        block = parse_block(in_our_numbers(records, self.session.record_kinds))
        new = [_item(block, place) for place in range(len(block))]
        self.items += new
        self.raw += [_bytes(block, place) for place in range(len(block))]
        return new

    def of(self, kind: type[SomeControl]) -> list[SomeControl]:
        """Return the control records of a kind."""
        return [item for item in self.items if isinstance(item, kind)]

    @property
    def rows(self) -> list[RowRecord]:
        """The rows and TRUNCATEs."""
        return [item for item in self.items if isinstance(item, RowRecord)]

    @property
    def kinds(self) -> list[RecordKind]:
        """The kinds of the rows and TRUNCATEs."""
        return [row.kind for row in self.rows]

    def decoded(self, table: ContractTable, table_id: int = 0) -> list[tuple[object, ...]]:
        """Return the rows of a table as our decoder reads them, comparable with `printed`."""
        return [row for _, row in self.decoded_records(table, table_id)]

    def decoded_records(
        self, table: ContractTable, table_id: int = 0
    ) -> list[tuple[RowRecord, tuple[object, ...]]]:
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
    with_rows = {item.transaction_id for item in items if isinstance(item, RowRecord)}
    ends = [item for item in items if isinstance(item, Commit | Rollback)]
    return {end.sequence_number for end in ends if end.transaction_id in with_rows}


def _item(block: RecordBlock, place: int) -> Item:
    if not block.is_row[place]:
        return block.control(place)
    raw = block.raw
    start, header = int(raw.starts[place]), int(raw.header_sizes[place])
    end = start + header + int(raw.payload_sizes[place])
    is_truncate = raw.kinds[place] == RecordKind.TRUNCATE
    count = 0 if is_truncate else (header - _ROW_HEADER_BYTES) // 4
    return RowRecord(
        RecordKind(raw.kinds[place]),
        int(block.sequence_numbers[place]),
        int(block.transaction_ids[place]),
        int(block.table_ids[place]),
        unpack_from(f">{count}I", raw.data, start + _ROW_HEADER_BYTES) if count else (),
        raw.data[start + header : end],
    )


def _bytes(block: RecordBlock, place: int) -> bytes:
    raw = block.raw
    start = int(raw.starts[place])
    return raw.data[start : start + int(raw.header_sizes[place] + raw.payload_sizes[place])]
