"""The product's own decisions about a snapshot, asked with the history of a model.

Rule: each answer is made by the real room `snapshot`, fed with real records through the real assembler
and encoder. Answers are remembered by their question: a search asks the same ones again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from harness.capture.streams import begin, blocks, commit, row, timeout, truncate
from harness.capture.tables import make_table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.incremental_snapshot import (
    Barrier,
    Emitted,
    Proof,
    Reconciliation,
    Slots,
    SnapshotKey,
    TouchedKeys,
    TouchedTables,
)
from informix_capture_client.positions import Position
from informix_capture_client.records import RecordBlock, RecordKind, TableSchema
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.transactions import CommittedTransactions, TransactionAssembler
from simulation.interleavings.server import MARKER, Commit, Operation

TABLE = make_table("t", "id integer")
KEY = SnapshotKey(TABLE.name, TABLE.columns)
_MARKERS_SLOT = 99
_EPOCH = 1_700_000_000
_STEP = 100  # between the numbers of two commits

Shown = tuple[int, Commit]  # with its place in the log
History = tuple[Shown, ...]


def place_of(count: int) -> int:
    """Return the commit place that is reached with so many commits of the log."""
    return count * _STEP


class Waiting(NamedTuple):
    """A chunk that was read: when it began, from which low watermark, and behind what it may go out."""

    low: int
    begun_at: int
    known_from: int
    keys: tuple[int, ...]
    second: int
    log_end: int | None


class News(NamedTuple):
    """The latest records: what they show, what of it is delivered, how much of the log it is."""

    shown: History
    delivered: History
    has_timeout: bool
    reached: int


class Product:
    """Answers by the code of the product, as it is at the first question.

    Args:
        slots: of the transactions.
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self._slots = slots
        self._answers: dict[object, object] = {}
        self._stream = _Stream()

    def settled(
        self,
        shown: History,
        running: frozenset[int],
        open_ids: frozenset[int],
        low: int,
        open_at_start: frozenset[int],
    ) -> int | None:
        """Return the settled low watermark, given what a stream has shown of the log."""
        question = ("settled", _bare(shown), running, open_ids, low, open_at_start)
        if question not in self._answers:
            self._answers[question] = self._settled(*question[1:])  # type: ignore[arg-type]
        return self._answers[question]  # type: ignore[return-value]

    def _settled(
        self,
        shown: History,
        running: frozenset[int],
        open_ids: frozenset[int],
        low: int,
        open_at_start: frozenset[int],
    ) -> int | None:
        slots = Slots(open_at_start)
        last = max((place for place, _ in shown), default=-1) + 1
        records = [self._records(*each) for each in shown]
        records += [begin(place_of(last) + 50, slot, _EPOCH, 501) for slot in running]
        for block in blocks(records):
            slots.add(block)
        return slots.settled(low, open_ids)

    def emitted(self, waiting: Waiting, shown: History, news: News) -> list[int] | None:
        """Return the keys of a chunk that go out with the latest records; None while it has to wait.

        Args:
            waiting: the chunk.
            shown: what the stream has delivered before these, since touched keys are known.
            news: what has come.
        """
        question = ("passed", _bare(news.shown), news.has_timeout, waiting.second, waiting.log_end)
        if question not in self._answers:
            proof = Proof.of(self._block(news))
            self._answers[question] = proof.passes(_barrier(waiting))
        if not self._answers[question]:
            return None
        known = news._replace(shown=_bare(news.shown), delivered=_bare(news.delivered))
        question = ("emitted", waiting, _bare(shown), known)
        if question not in self._answers:
            self._answers[question] = self._emitted(waiting, shown, news)
        return self._answers[question]  # type: ignore[return-value]

    def _emitted(self, waiting: Waiting, shown: History, news: News) -> list[int]:
        touched = TouchedKeys(KEY, place_of(waiting.known_from))
        stream = self._stream
        stream.begin(touched)
        chunks = Reconciliation(touched, most_rows=9)
        for block in self._blocks([each for each in shown if each[0] < waiting.begun_at]):
            stream.take(block)
        chunk = chunks.begin(waiting.low)
        assert chunk is not None
        for block in self._blocks([each for each in shown if each[0] >= waiting.begun_at]):
            stream.take(block)
        rows = pa.table({"id": pa.array(waiting.keys, pa.int32())})
        chunks.offer(chunk, rows, ("9",), is_last=True, barrier=_barrier(waiting))
        assert chunks.on_proof(Proof.of(self._block(news)))
        for block in self._blocks(news.delivered):
            stream.take(block)
        (emitted,) = chunks.emit(place_of(news.reached))
        assert isinstance(emitted, Emitted)
        return emitted.rows["id"].to_pylist()

    def begins(self, low: int, known_from: int) -> bool:
        """Tell whether a chunk can begin at a low watermark."""
        touched = TouchedKeys(KEY, place_of(known_from))
        return Reconciliation(touched, most_rows=9).begin(low) is not None

    def _blocks(self, shown: Sequence[Shown]) -> Iterator[RecordBlock]:
        return blocks([self._records(*each) for each in shown])

    def _block(self, news: News) -> RecordBlock:
        records = [self._records(*each) for each in news.shown]
        (block,) = blocks([b"".join([*records, *[timeout(1)] * news.has_timeout])])
        return block

    def _records(self, place: int, made: Commit) -> bytes:
        number = place_of(place + 1)
        slot = _MARKERS_SLOT if made.transaction == MARKER else self._slots[made.transaction]
        first = number - 50
        images = b"".join(
            _records_of(image, first + n + 1, slot) for n, image in enumerate(made.images)
        )
        second = _EPOCH + made.second
        return begin(first, slot, second, 501) + images + commit(number, slot, second)


class _Stream:
    """What a stream shows, down to the keys that are collected; one encoder is enough for all."""

    def __init__(self) -> None:
        self._tables = TouchedTables()
        self._encoder = ChangeEncoder([TABLE], DecodeRules(), observer=self._tables)
        self._encoder.announce(TableSchema(0, 4, 1, 0, "id integer"))

    def begin(self, touched: TouchedKeys) -> None:
        """Begin a stream that collects keys anew."""
        self._tables.watch(0, touched)
        self._assembler = TransactionAssembler(Position(0, 0))

    def take(self, block: RecordBlock) -> None:
        found = [
            event for event in self._assembler.feed(block) if isinstance(event, CommittedTransactions)
        ]
        for _ in self._encoder.encode(found):
            pass


def _barrier(waiting: Waiting) -> Barrier:
    return Barrier(_EPOCH + waiting.second, waiting.log_end)


def _bare(shown: History) -> History:
    """Return a history without what no record says."""
    return tuple((place, made._replace(effects=())) for place, made in shown)


def _records_of(image: Operation, number: int, slot: int) -> bytes:
    name, *keys = image
    if name == "truncate":
        return truncate(number, slot, 0)
    kinds = {
        "insert": (RecordKind.INSERT,),
        "delete": (RecordKind.DELETE,),
        "update": (RecordKind.UPDBEF, RecordKind.UPDAFT),
    }[name]
    pairs = zip(kinds, keys, strict=True)
    return b"".join(row(number, slot, key.to_bytes(4), kind) for kind, key in pairs)
