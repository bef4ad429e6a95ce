"""What of contents is in memory while a stream reads others, and once it is idle."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from connector.object_contents.test_contents import LOBS, TABLE, Files, files, row
from harness.capture.driving import anchor_of, drained, reader
from informix_capture_client.object_readers import Content
from informix_capture_client.object_readers.sqli_objects import SqliObjects

__all__ = ["files"]
SIZE, COUNT = 64 << 10, 40
PIECE = 8 * SIZE


def buffered_bytes() -> int:
    """Return how many bytes contents have that anything in this process refers to."""
    gc.collect()
    contents = [each for each in gc.get_objects() if type(each) is Content and each.data]
    return sum({id(each.data): len(each.data or b"") for each in contents}.values())


def test_only_two_parts_of_a_batch_are_in_memory_and_none_once_it_is_done(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part before stayed for as long as the next one was read, and after the last one for good."""
    monkeypatch.setattr("informix_cdc.object_contents.pool._PIECE_BYTES", PIECE)
    read, held, before = SqliObjects.read, list[int](), buffered_bytes()

    def looking(reader: SqliObjects, descriptor: int, most_bytes: int) -> memoryview:
        held.append(buffered_bytes() - before)
        return read(reader, descriptor, most_bytes)

    monkeypatch.setattr(SqliObjects, "read", looking)
    handles = [files.object(b"%06d" % n * (SIZE // 6)) for n in range(COUNT)]
    options = {**LOBS, "spoolPath": str(tmp_path), "objects__connections": 1}
    with reader(files.port, **options) as made:
        start = anchor_of(made)
        tx = files.server.begin()
        for number, handle in enumerate(handles):
            tx.insert(TABLE, row(number, handle))
        for number, handle in enumerate(handles):
            tx.update(TABLE, row(number, handle), {**row(number, handle), "name": "x"})
        rows, _ = drained(made, start, tx.commit())
        assert {each["picture"]["status"] for each in rows} == {"read", "not_read"}
        del rows
        assert buffered_bytes() - before == 0
    assert max(held) > PIECE
    assert max(held) <= 2 * PIECE + 2 * SIZE
