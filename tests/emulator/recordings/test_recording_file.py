"""Recordings whose digest is right and whose lines are not: hand-made files are refused as well."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from informix_emulator import BadRecording, read_recording

HEADER = {"format": "informix-cdc recording", "version": 1, "server": {"name": "ol"}}
OPEN = {"at": 0, "connection": 1, "what": "open", "database": "Stores"}
ASK: dict[str, Any] = {"connection": 1, "what": "statement", "text": "SELECT  x;", "arguments": ["1"]}
READ: dict[str, Any] = {"connection": 1, "what": "read", "session": 5, "room": 128}


def recording(tmp_path: Path, *events: object, header: object = HEADER) -> Path:
    lines = [json.dumps(value).encode() + b"\n" for value in (header, *events)]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    end = {"what": "end", "events": len(events), "sha256": digest}
    path = tmp_path / "made.jsonl"
    path.write_bytes(b"".join(lines) + json.dumps(end).encode() + b"\n")
    return path


def test_a_whole_recording_is_taken(tmp_path: Path) -> None:
    error = {"sqlstate": "IX000", "native": -1, "message": "no more"}
    reads = [{**READ, "bytes": "AP8="}, {**READ, "bytes": ""}, {**READ, "error": error}]
    path = recording(tmp_path, OPEN, {**ASK, "rows": [["a", None]]}, *reads)
    found = read_recording(path)
    assert found.server_name == "ol"
    assert found.databases == {"stores"}
    assert found.answers == {("stores", "SELECT x", ("1",)): [[("a", None)]]}
    assert found.reads["5"][:2] == [b"\0\xff", b""]
    assert "no more" in str(found.reads["5"][2])


@pytest.mark.parametrize(
    "event",
    [
        [],
        7,
        {"what": "open"},
        {**OPEN, "what": "unheard of"},
        {**ASK, "connection": 2, "rows": []},
        {**ASK, "rows": [[1]]},
        {**ASK, "rows": 3},
        {**ASK, "text": None, "rows": []},
        {**ASK, "arguments": [[]], "rows": []},
        {**READ, "bytes": "not base64!"},
        {**READ},
        {**READ, "error": {"sqlstate": "x"}},
        {**READ, "error": {"sqlstate": "x", "native": float("inf"), "message": ""}},
        {**OPEN, "connection": []},
    ],
    ids=str,
)
def test_a_line_that_is_no_event_is_refused_with_its_number(tmp_path: Path, event: object) -> None:
    path = recording(tmp_path, OPEN, event)
    with pytest.raises(BadRecording, match="line 3"):
        read_recording(path)


@pytest.mark.parametrize(
    "header",
    [
        {},
        [],
        1,
        {**HEADER, "server": None},
        {**HEADER, "server": {}},
        {**HEADER, "format": 1},
        {**HEADER, "options": 3},
    ],
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: object) -> None:
    with pytest.raises(BadRecording, match="is not a recording"):
        read_recording(recording(tmp_path, OPEN, header=header))


def test_a_line_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_bytes(json.dumps(HEADER).encode() + b"\n" + b"[" * 200_000 + b"\n")
    with pytest.raises(BadRecording, match="line 2"):
        read_recording(path)
