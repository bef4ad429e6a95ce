"""Checkpoint folders as Spark writes them: the files of a real one, with offsets of the test's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1795269153285,"conf":{}}'


def offset(
    commit: int, restart: int, *unseen: int, stream: str = "a1b2c3d4e5f60718", source: str = "5a" * 8
) -> dict[str, Any]:
    """An offset of ours, with the keys in their order."""
    return {
        "version": 1,
        "stream": stream,
        "source": source,
        "commit": commit,
        "restart": restart,
        "unseen": list(unseen),
        "tables": {},
        "chunk": 0,
    }


def plan(checkpoint: Path, number: int, *lines: Mapping[str, Any] | str, version: str = "v1") -> None:
    """Write what Spark writes before it runs a batch."""
    shown = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    _write(checkpoint / "offsets", number, "\n".join([version, _METADATA, *shown]))


def commit(checkpoint: Path, number: int) -> None:
    """Write what Spark writes once the sink has a batch."""
    _write(checkpoint / "commits", number, 'v1\n{"nextBatchWatermarkMs":0}')


def planned_ends(checkpoint: Path) -> dict[int, dict[str, Any]]:
    """Return where each planned batch of a query with one source ends."""
    found = (checkpoint / "offsets").glob("[0-9]*")
    return {int(path.name): json.loads(path.read_text().splitlines()[2]) for path in found}


def committed(checkpoint: Path) -> list[int]:
    """Return the numbers of the batches that the sink has."""
    return [int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")]


def run_batches(checkpoint: Path, *offsets: Mapping[str, Any]) -> Path:
    """Plan and commit one batch after the other; return the checkpoint."""
    for number, end in enumerate(offsets):
        plan(checkpoint, number, end)
        commit(checkpoint, number)
    return checkpoint


def _write(folder: Path, number: int, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number}.tmp"  # as Spark does: a reader never sees half a file
    draft.write_text(text)
    draft.replace(folder / str(number))
    (folder / f".{number}.crc").write_bytes(b"crc\0\0\0\2\0\x9b\xa7\x1f\x08")
    (folder / f".{number + 1}.7c3c.tmp").touch()  # what a driver that died has left
