"""What BLOB and CLOB columns hold is in the target, of rows that were there and of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_contents import Files, content, row, serving
from harness.lake.mirroring import MirrorRun, until
from harness.runs.tiers import rest_in_all

PICTURE, PAGE = bytes(range(256)) * 300, "Größe " * 20


@pytest.mark.slow
@pytest.mark.parametrize("keep", rest_in_all(["current", "history", "changes"]))
@pytest.mark.only_in_all
def test_contents_of_large_objects_are_in_the_target(keep: str, tmp_path: Path) -> None:
    with serving() as files:
        first, second = files.object(PICTURE), files.object(b"second")
        page = files.object(PAGE.encode())
        files.insert((1, first, page), (2, None, None))
        run = MirrorRun(tmp_path, files.port, {"keep": keep}, table="informix.files")
        with run.running() as step:
            until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
            assert contents(run, keep) == {1: (content(PICTURE), content(PAGE)), 2: (None, None)}
            upto = changed(files, first, second, page)
            until(step, lambda: run.batches[-1].commit >= upto)
        assert contents(run, keep) == {1: (content(b"second"), None), 3: (content(b"second"), None)}


def changed(files: Files, first: bytes, second: bytes, page: bytes) -> int:
    files.update(row(1, first, page), row(1, second, None))
    files.insert((3, second, None))
    return files.delete(row(2))


def contents(run: MirrorRun, keep: str) -> dict[int, tuple[Any, Any]]:
    """Return what the rows hold that are there now."""
    rows = run.rows("files")
    if keep == "changes":
        rows.sort(key=lambda each: (each["_commit_version"], each["_change_ordinal"]))
        there: dict[int, tuple[Any, Any]] = {}
        for each in rows:
            if each["_change_type"] in ("delete", "update_preimage"):
                there.pop(each["id"])
            elif each["_change_type"] != "truncate":
                there[each["id"]] = (each["picture"], each["page"])
        return there
    return {
        each["id"]: (each["picture"], each["page"])
        for each in rows
        if keep == "current" or each["_valid_to"] is None
    }
