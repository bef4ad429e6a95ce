"""One process that captures a long stream into a spool, trimmed as Spark would: how large is it?

    python -m lab.benchmarks.endless_stream 10000000 1000000 5000000 10000000

Prints one line of JSON after each of the numbers of rows that are named behind the total.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.records import RecordKind
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool.spool import Spool
from lab.benchmarks.pipeline import START, open_spool
from lab.benchmarks.workload import captured, catalog_table

PREPARED_ROWS = 100_000
ROWS_PER_TRANSACTION = 10
_TRIM_SECONDS = 0.1
_SEQUENCE_AT = 16  # behind the four words that all records have in common


def read_on_and_on() -> Iterator[bytes]:
    """Yield prepared reads again and again, each time with sequence numbers that go on."""
    first, *others = captured(PREPARED_ROWS, ROWS_PER_TRANSACTION).reads
    schema_bytes = sum(int.from_bytes(first[at : at + 4]) for at in (0, 4))
    announced, reads = first[:schema_bytes], [first[schema_bytes:], *others]
    places = [_places(read) for read in reads]
    step = _last(reads, places) - _first(reads, places) + (1 << 12)
    yield announced
    for turn in count():
        for read, at in zip(reads, places, strict=True):
            yield _raised(read, at, turn * step)


def _places(read: bytes) -> NDArray[np.int64]:
    """Return where the eight bytes of each record's sequence number lie, a row for each."""
    starts, at = [], 0
    while at < len(read):
        starts.append(at + _SEQUENCE_AT)
        at += int.from_bytes(read[at : at + 4]) + int.from_bytes(read[at + 4 : at + 8])
    return np.array(starts, np.int64)[:, None] + np.arange(8)


def _first(reads: Sequence[bytes], places: Sequence[NDArray[np.int64]]) -> int:
    return min(int(_numbers(*both).min()) for both in zip(reads, places, strict=True))


def _last(reads: Sequence[bytes], places: Sequence[NDArray[np.int64]]) -> int:
    return max(int(_numbers(*both).max()) for both in zip(reads, places, strict=True))


def _numbers(read: bytes, places: NDArray[np.int64]) -> NDArray[Any]:
    return np.frombuffer(read, np.uint8)[places].view(">u8")[:, 0]


def _raised(read: bytes, places: NDArray[np.int64], step: int) -> bytes:
    data = np.frombuffer(read, np.uint8).copy()
    data[places] = (_numbers(read, places) + np.uint64(step)).astype(">u8")[:, None].view(np.uint8)
    return data.tobytes()


class _EndlessSession:
    """Stands in for a capture session that has always more to read."""

    record_kinds = {int(kind): kind for kind in RecordKind}  # noqa: RUF012 - never changed
    codes = SimpleNamespace()

    def __init__(self) -> None:
        reads = read_on_and_on()
        self._reads = chain([next(reads)], reads)  # all is prepared before any clock starts

    def read(self) -> memoryview:
        return memoryview(next(self._reads))

    def close(self) -> None:
        return None


class Reader(threading.Thread):
    """Takes what is in the spool and lets go of it, as Spark does with its micro-batches."""

    def __init__(self, spool: Spool, total: int, milestones: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._spool = spool
        self._total = total
        self._milestones = list(milestones)
        self._rows = 0
        self._begun_at = time.monotonic()
        self.is_done = threading.Event()

    def run(self) -> None:
        after = START.place
        while self._rows < self._total:
            time.sleep(_TRIM_SECONDS)
            upto = self._spool.manifest.end.place
            self._rows += sum(wanted.end - wanted.first for wanted in self._spool.between(after, upto))
            self._spool.trim(upto)
            after = upto
            self._tell()
        self.is_done.set()

    def _tell(self) -> None:
        while self._milestones and self._rows >= self._milestones[0]:
            seconds = time.monotonic() - self._begun_at
            told = {"rows": self._milestones.pop(0), "seconds": seconds, **memory()}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def memory() -> dict[str, float]:
    """Return how many MiB this process holds now, and held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Vm")}
    return {"rss": sizes["VmRSS:"], "peak": sizes["VmHWM:"]}


def main() -> None:
    total, *milestones = map(int, sys.argv[1:])
    session: Any = _EndlessSession()
    gc.freeze()  # as the product does in the process that holds the capture
    with tempfile.TemporaryDirectory() as folder:
        spool = open_spool(Path(folder) / "spool")
        stream = ChangeStream(lambda: Begun(session, TransactionAssembler(START)), lambda: None)
        reader = Reader(spool, total, milestones)
        reader.start()
        encoder = ChangeEncoder([catalog_table()], DecodeRules())
        state = CaptureState(spool=spool)
        capture(stream, encoder, Pending(spool, lambda _: spool), state, reader.is_done)
        stream.stop(5)
        spool.close()


if __name__ == "__main__":
    main()
