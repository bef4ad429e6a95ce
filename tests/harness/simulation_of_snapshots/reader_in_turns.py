"""What reads a table for its snapshot, one step at a time: between two steps others have their turn.

Rule: it has a thread of its own, since it stands in the middle of a SELECT while the capture goes on;
but only one of the two ever runs, so that a schedule is always the same.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from harness.simulation.capturing import Death
from informix_capture_client.choices import DecodeRules
from informix_capture_client.row_fetch import RowBlocks
from informix_capture_client.transport.base import Argument
from informix_capture_client.values import Column
from informix_cdc.snapshots.reading import TableReader

if TYPE_CHECKING:
    from harness.simulation.wire import InProcessTransport
    from harness.simulation_of_snapshots.world import SnapshotWorld


@dataclass
class TurnedStop:
    """The reader's stop flag: waiting is a step."""

    world: SnapshotWorld
    flag: threading.Event

    def is_set(self) -> bool:
        return self.flag.is_set()

    def wait(self, seconds: float) -> bool:
        self.world.now += seconds
        self.world.pause("waits")
        return self.is_set()


@dataclass
class ReaderInTurns:
    """A reader that stands still unless it is told to go on."""

    world: SnapshotWorld
    reader: TableReader
    fail: Callable[[BaseException], None]
    is_over: bool = False
    at: str = "begins"
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.reader.stop = TurnedStop(self.world, self.reader.stop)  # type: ignore[assignment]
        self.reader.in_background = lambda _: contextlib.nullcontext()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def may_go_on(self) -> bool:
        """Whether it can do a step: the capture, which stands still, may hold what it needs."""
        return not (self.is_over or self.reader.snapshot._lock.locked())

    def advance(self) -> None:
        """Let it go on to its next place; a Death that it met ends the whole process."""
        self._go.release()
        self._back.acquire()
        if self.is_over:
            self._thread.join()

    def pause(self, at: str) -> None:
        """Give the others their turn; called by the reader itself."""
        self.at = at
        self._back.release()
        self._go.acquire()
        self.world.must_live()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self.world.must_live()
            self.reader.run()
        except Death:
            pass
        except BaseException as reason:  # noqa: BLE001 - whoever is told raises it
            self.fail(reason)
        finally:
            self.is_over = True
            self._back.release()


_KINDS = {"integer": pa.int32(), "bigint": pa.int64()}


class InProcessBlocks:
    """A `BlockReader` over the emulator's own answers: two columns of integers."""

    def __init__(self, transport: InProcessTransport, rules: DecodeRules, table: str) -> None:
        self._transport = transport

    def blocks(
        self,
        statement: str,
        arguments: Sequence[Argument],
        columns: Sequence[Column],
        rows_a_block: int,
    ) -> RowBlocks:
        def batches() -> Iterator[tuple[pa.RecordBatch, Callable[[], tuple[str | None, ...]]]]:
            rows = self._transport.rows(statement, *arguments)
            if rows:
                kinds = [_KINDS[column.type_text] for column in columns]
                values = zip(*rows, strict=True)
                pairs = zip(values, kinds, strict=True)
                arrays = [pa.array(map(_number, each), kind) for each, kind in pairs]
                names = [column.name for column in columns]
                yield pa.RecordBatch.from_arrays(arrays, names), lambda: tuple(rows[-1])

        return RowBlocks(batches())  # type: ignore[arg-type]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
