"""What BLOB and CLOB columns hold is in the target, of rows that were there and of changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from connector.lake.test_verified_tables import asked
from connector.object_contents.test_contents import TABLE, Files, content, row, serving
from harness.lake.ledger import LedgerTable
from harness.lake.mirroring import MirrorRun, overwrite, until
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import DATABASE
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.requests import RESYNC, VERIFY

PICTURE, PAGE = bytes(range(256)) * 300, "Größe " * 20


GONE = ("delete", "update_preimage")
FORMS: dict[str, dict[str, Any]] = {
    "current": {},
    "soft": {"deletes": "soft"},
    "history": {"keep": "history"},
    "changes": {"keep": "changes"},
}


@pytest.mark.slow
@pytest.mark.parametrize("form", rest_in_all(FORMS))
def test_rows_that_differ_only_in_an_object_keep_it_and_are_verified_and_resynced(
    form: str, tmp_path: Path
) -> None:
    with serving() as files:
        files.insert((9, files.object(b"object 9"), None))
        run = MirrorRun(tmp_path, files.port, FORMS[form], table="informix.files")
        with run.running() as step:
            until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
            tx = files.server.begin()
            for number in range(3):
                picture = files.object(f"object {number}".encode())
                tx.insert(TABLE, {"id": number, "name": "alike", "picture": picture, "page": None})
            upto = tx.commit()
            until(step, lambda: run.batches[-1].commit >= upto)
            session = InProcessConnection(files.server, LOGIN, DATABASE)
            session.rows("UPDATE informix.files SET id = id + 1 WHERE id < 9")
            upto = files.insert((10, None, None))
            until(step, lambda: run.batches[-1].commit >= upto)
            wanted = {number + 1: content(f"object {number}".encode()) for number in range(3)}
            wanted |= {9: content(b"object 9"), 10: None}
            assert pictures(run, form) == wanted
            assert answered(run, step, VERIFY) == []
            with_another_picture(run, 2)
            assert answered(run, step, VERIFY) == [('{"id": 2}', "different", ["picture"])]
            answered(run, step, RESYNC)
            assert pictures(run, form) == wanted


def answered(run: MirrorRun, step: Callable[[], bool], kind: str) -> list[tuple[str, str, list[str]]]:
    """Let a request be processed, and return the differences that it has found."""
    folder, request = asked(run, kind, LedgerTable("files", ("id",), {}))
    until(step, lambda: folder.answer(request.id) is not None)
    answer = folder.answer(request.id)
    assert answer is not None
    assert answer.problems == {}
    until(step, lambda: StreamOffset.from_json(run.start).position.place >= answer.place)
    if not (run.lake / "_informix_cdc_differences").exists():
        return []
    found = run.rows("_informix_cdc_differences")
    return [
        (each["key"], each["what"], each["columns"]) for each in found if each["request"] == request.id
    ]


def with_another_picture(run: MirrorRun, number: int) -> None:
    """Change the picture of a row behind the mirror's back."""
    rows = run.rows("files")
    for each in rows:
        if each["id"] == number:
            each["picture"] = content(b"something")
    schema = pa.schema(DeltaTable(str(run.lake / "files")).schema().to_arrow())
    overwrite(run.lake / "files", pa.Table.from_pylist(rows, schema))


def pictures(run: MirrorRun, form: str) -> dict[int, Any]:
    return {key: picture for key, (picture, _) in contents(run, form).items()}


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
        # Images before come first: no commit here deletes what it has inserted.
        rows.sort(key=lambda each: (each["_commit_version"], each["_change_type"] not in GONE))
        there: dict[int, tuple[Any, Any]] = {}
        for each in rows:
            if each["_change_type"] in GONE:
                there.pop(each["id"], None)
            elif each["_change_type"] != "truncate":
                there[each["id"]] = (each["picture"], each["page"])
        return there
    return {
        each["id"]: (each["picture"], each["page"])
        for each in rows
        if each.get("_valid_to") is None and each.get("_deleted_at") is None
    }
