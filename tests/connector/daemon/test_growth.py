"""Ten times as many stored segments cost at most ten times as much, in steps and in looks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from informix_capture_client.positions import Position
from informix_cdc.daemon import CaptureProcess, CaptureSettings
from informix_cdc.reading import CaptureFolder, Trigger
from informix_cdc.reading.reader import CaptureReader
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.readers import Readers
from informix_checkpoints.shared_captures import FILE_NAME, PublishedCapture
from informix_checkpoints.spool import Manifest, Spool, manifest_files
from informix_checkpoints.spool.segments import Segment
from informix_checkpoints.table_states import TableState

pytestmark = pytest.mark.slow

FEW, MANY = 300, 3000
START = Position(100, 90)


class Stored:
    """A capture with a spool of so many segments, and a reader that has read none."""

    def __init__(self, folder: Path, segments: int) -> None:
        source = {
            "host": "h",
            "server": "s",
            "database": "d",
            "table": "informix.t",
            "password": "p",
            "spoolPath": str(folder),
        }
        self.process = CaptureProcess(CaptureSettings.of({}, source), clock=lambda: 0.0)
        self.process.publication.rows = PublishedCapture(tables=(), options={})
        self.process.publication.written_at = 0.0
        (folder / "s1").mkdir(parents=True)
        self.spool = Spool(folder / "s1", "s1", "d1", START, durable=False)
        fence = self.spool.manifest.fence
        self.spool._manifest = replace(manifest_of(segments), fence=fence)
        self.process.state.spool = self.spool
        state = Readers(folder).register("one", "run")
        Readers(folder).update(replace(state, stream="s1", taken=START, done=START.place))
        self.process.step()
        self.folder = folder
        self.reader = CaptureReader(CaptureFolder(folder, self._clock, self._sleep), "one")
        self.now = 0.0
        self.end = StreamOffset("s1", "d1", self.spool.manifest.high_watermark, tables={})

    def _clock(self) -> float:
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def close(self) -> None:
        self.spool.close()

    def look(self) -> object:
        """Ask as a query that has read everything."""
        return self.reader.next_offset(self.end, BatchLimits(), Trigger.CONTINUOUS)

    def append(self) -> None:
        """Store one more segment."""
        place = self.spool.manifest.high_watermark.commit + 10
        self.spool._add(Segment(f"{place}.arrow", 10, 1000, 1, 1, place, Position(place, place)))
        self.process.step()


def manifest_of(count: int) -> Manifest:
    segments = tuple(
        Segment(f"{n:06}.arrow", 10, 1000, n, 1, 110 + 10 * n, Position(110 + 10 * n, 100))
        for n in range(count)
    )
    return Manifest("s1", "d1", START, segments[-1].position, segments=segments, next_number=count)


def operations_in(call: Callable[[], object]) -> int:
    """Count the operations of Python that a call takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def at_most_linear(cost: Callable[[int], int]) -> None:
    few, many = cost(FEW), cost(MANY)
    assert few
    assert many <= 1.1 * few * MANY / FEW, f"{few} with {FEW} segments, {many} with {MANY}"


def test_a_step_of_the_capture_does_not_depend_on_the_segments(tmp_path: Path) -> None:
    def cost(segments: int) -> int:
        with closing(Stored(tmp_path / str(segments), segments)) as stored:
            stored.append()
            return operations_in(stored.append)

    few, many = cost(FEW), cost(MANY)
    assert many <= 1.2 * few, "but for the search of a place"


def test_a_step_that_removes_rows_grows_with_the_segments(tmp_path: Path) -> None:
    def cost(segments: int) -> int:
        with closing(Stored(tmp_path / str(segments), segments)) as stored:
            state = Readers(stored.folder).register("one", "run")
            half = stored.spool.manifest.segments[segments // 2].position
            Readers(stored.folder).update(replace(state, stream="s1", taken=half, done=half.place))
            operations = operations_in(stored.process.step)
            assert len(stored.spool.manifest.segments) == segments - segments // 2 - 1
            return operations

    at_most_linear(cost)


@pytest.mark.only_in_all
def test_a_quiet_look_of_a_reader_reads_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []
    read_plain = manifest_files.read_plain

    def read(path: Path) -> bytes:
        loaded.append(path)
        return read_plain(path)

    monkeypatch.setattr(manifest_files, "read_plain", read)

    def cost(segments: int) -> int:
        with closing(Stored(tmp_path / str(segments), segments)) as stored:
            stored.append()  # this writer's first one: the list as a whole
            stored.look()
            del loaded[:]
            operations = operations_in(stored.look)
            assert loaded == []
            stored.append()
            stored.look()
            assert loaded == []
            stored.spool.trim(stored.spool.manifest.segments[0].place)
            stored.look()
            assert len(loaded) == 1
            return operations

    few, many = cost(FEW), cost(MANY)
    assert many <= 1.1 * few, "a look at nothing new does not depend on the segments"


def test_what_a_capture_writes_grows_with_the_segments(tmp_path: Path) -> None:
    def bytes_of(segments: int) -> tuple[int, int]:
        with closing(Stored(tmp_path / str(segments), segments)) as stored:
            stored.append()
            manifest = (stored.folder / "s1" / "manifest.json").stat().st_size
            return manifest, (stored.folder / FILE_NAME).stat().st_size

    (few, published), (many, published_many) = bytes_of(FEW), bytes_of(MANY)
    assert many / MANY <= 1.1 * few / FEW
    assert many / MANY < 500  # bytes of the manifest a segment
    assert published_many <= published + 20


@pytest.mark.only_in_all
def test_a_step_grows_with_the_readers(tmp_path: Path) -> None:
    def cost(readers: int) -> int:
        folder = tmp_path / str(readers)
        with closing(Stored(folder, 3)) as stored:
            for number in range(readers):
                state = Readers(folder).register(f"reader{number}", "run")
                Readers(folder).update(replace(state, stream="s1", taken=START, done=START.place))
            operations = operations_in(stored.process.step)
            assert len(stored.process.readers) == readers + 1
            return operations

    assert cost(100) <= 10 * cost(10)


def test_what_a_capture_publishes_grows_with_the_tables(tmp_path: Path) -> None:
    def bytes_of(tables: int) -> int:
        with closing(Stored(tmp_path / str(tables), 3)) as stored:
            states = {f"informix.t{number:04}": TableState("0badf00d") for number in range(tables)}
            stored.spool._manifest = replace(stored.spool.manifest, tables=states)
            stored.process.step()
            return (stored.folder / FILE_NAME).stat().st_size

    assert bytes_of(2000) <= 10 * bytes_of(200)
