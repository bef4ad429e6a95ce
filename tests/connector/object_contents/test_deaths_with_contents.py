"""A process dies while objects are read: the next one delivers each row once, with whole contents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connector.object_contents.test_contents import TABLE
from connector.object_contents.test_simple_objects import KEY, serving
from harness.capture.batches import Batches, run_batches
from harness.runs.deaths import die_at
from harness.runs.tiers import rest_in_all
from informix_capture_client.failpoints import failpoint
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.slow  # processes of their own

ROWS = 6
SIZE = 20_000  # bytes: what is not read when its length is asked for
FAILPOINTS = [
    "large_objects.before_read",
    "large_objects.before_read@5",
    "spool.before_manifest@2",
    "batch.after_offset",
    "batch.before_commit@2",
]


def run(port: int, folder: Path, options: dict[str, str]) -> None:
    """Run batches in a process of its own."""
    run_batches(port, folder, failpoint, **options)


def row(server: EmulatedServer, key: int, text: str) -> dict[str, object]:
    picture = server.sbspace.create((text * SIZE).encode())
    return {"id": key, "name": text, "picture": picture, "page": text * SIZE}


@pytest.mark.parametrize("name", rest_in_all(FAILPOINTS))
@pytest.mark.fault(
    fault="the process dies before an object or a TEXT is read, before what has them is in the spool,"
    " and with a batch planned; then all of them change",
    outcome="each row comes once, with whole contents; a batch that runs again has equal bytes",
)
@pytest.mark.only_in_all
def test_a_death_while_contents_are_read(name: str, tmp_path: Path) -> None:
    server, owner = serving(
        "informix", "id INTEGER NOT NULL, name VARCHAR(20), picture BLOB, page TEXT" + KEY
    )
    then = [row(server, key, "a") for key in range(ROWS)]
    with server.transaction() as tx:
        for each in then:
            tx.insert(TABLE, each)
    options = {
        "table": "informix.files",
        "lobs": "content",
        "simpleLobs": "reselect",
        "initialSnapshot": "all",
        "snapshotChunkRows": "2",
        "spoolPath": str(tmp_path / "spool"),
        "user": owner,
    }
    with ListeningServer(server) as listening:
        die_at(name, run, listening.port, tmp_path / "spark", options)
        with server.transaction() as tx:
            for key, before in enumerate(then):
                tx.update(TABLE, before, row(server, key, "b"))
        upto = server.position()
        with server.transaction() as tx:
            tx.insert(TABLE, row(server, 99, "c"))
        kept = run_batches(listening.port, tmp_path / "spark", upto=upto, **options)
    assert state_of(kept) == {**dict.fromkeys(range(ROWS), "b"), 99: "c"}
    read = [each["id"] for rows in kept.results for each in rows if each["_snapshot"]]
    assert len(read) == len(set(read))


def state_of(kept: Batches) -> dict[int, str]:
    """Return what a consumer has that upserts what comes; a value must be whole, and its row's own.

    Of a row that was there the object may be gone, and the TEXT be what the row has by now.
    """
    state: dict[int, str] = {}
    for each in (each for rows in kept.results for each in rows):
        if each["_change_type"] in ("delete", "update_preimage"):
            state.pop(each["id"], None)
            continue
        state[each["id"]] = each["name"]
        assert_whole(each["picture"], each["name"], lambda text: str((text * SIZE).encode()))
        assert_whole(each["page"], each["name"], lambda text: text * SIZE)
    return state


def assert_whole(found: dict[str, Any], text: str, written: Any) -> None:
    whole = {written(each): each for each in "abc"}
    if found["status"] == "read":
        assert whole[found["content"]] >= text
        assert found["size"] == SIZE
    else:
        assert (found["status"], text) == ("gone", "a")
