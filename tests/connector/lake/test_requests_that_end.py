"""Requests whose end is not the usual one: cancelled, voided by a TRUNCATE, or beyond repair."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.lake.ledger import Ledger, ledger
from harness.lake.mirroring import MirrorRun, is_caught_up, until
from informix_cdc.capture import requests
from informix_checkpoints.requests import REPAIR, RESYNC, VERIFY, Request, RequestFolder

pytestmark = pytest.mark.slow


def submitted(run: MirrorRun, kind: str, table: str) -> tuple[RequestFolder, Request]:
    assert run.start is not None
    folder = RequestFolder(Path(run.settings.checkpoint) / "spool" / run.start["stream"])
    request = Request(kind=kind, tables=(table,))
    folder.submit(request)
    return folder, request


def test_a_stopped_table_whose_resync_is_cancelled_is_stopped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 0.0)
    with ledger(5, 1) as (made, listening):
        made.change(400)
        name = f"informix.{made.tables[0].name}"
        run = MirrorRun(tmp_path, listening.port, snapshotParallelism="8")
        with run.running() as step:
            until(step, is_caught_up(run, made))
        shutil.rmtree(run.lake / made.tables[0].name)
        run.source["snapshotChunkRows"] = "1"  # so that it is cancelled long before its end
        with run.running() as step:
            made.change(3)
            until(step, lambda: name in run.batches[-1].stopped)
            folder, request = submitted(run, RESYNC, name)
            until(step, lambda: name not in run.batches[-1].stopped)
            folder.cancel(request.id)
            assert "lacks rows" in run.control(name)[-1]["reason"]
            assert run.batches[-1].loading == (name,)
            until(step, lambda: folder.answer(request.id) is not None)
            made.change(3)
            until(step, is_caught_up(run, made))
            assert "was cancelled" in run.batches[-1].stopped[name]
        del run.source["snapshotChunkRows"]
        _resynced(run, made, name)


def _resynced(run: MirrorRun, made: Ledger, name: str) -> None:
    """Check that a resync makes a stopped table whole."""
    with run.running() as step:
        folder, request = submitted(run, RESYNC, name)
        until(step, lambda: folder.answer(request.id) is not None)
        made.change(3)
        until(step, is_caught_up(run, made))
    assert run.batches[-1].stopped == {}
    last = run.control(name)[-1]
    assert (last["status"], last["reason"]) == ("mirrored", "")
    assert run.keyed(made.tables[0]) == made.state_at(run.batches[-1].commit)[made.tables[0].name]


def test_a_verification_whose_rows_a_truncate_voids_has_a_result(tmp_path: Path) -> None:
    with ledger(6, 1) as (made, listening):
        made.change(20)
        name = f"informix.{made.tables[0].name}"
        run = MirrorRun(tmp_path, listening.port, snapshotParallelism="8")
        with run.running() as step:
            until(step, is_caught_up(run, made))
            server, passed = made.server, list[int]()

            def once() -> None:
                if not passed:
                    passed.append(1)
                    made.truncate(made.tables[0])

            server.rows_per_scan_step, server.between_scan_steps = 1, once
            folder, request = submitted(run, VERIFY, name)
            until(step, lambda: folder.answer(request.id) is not None)
            made.change(3)
            until(step, is_caught_up(run, made))
        assert passed
        (row,) = [row for row in run.rows("_informix_cdc_verified") if row["request"] == request.id]
        assert (row["missing"], row["extra"], row["different"]) == (0, 0, 0)


def test_a_key_that_a_target_has_twice_is_extra_and_repaired(tmp_path: Path) -> None:
    with ledger(7, 1) as (made, listening):
        made.change(20)
        table = made.tables[0]
        run = MirrorRun(tmp_path, listening.port, snapshotParallelism="8")
        with run.running() as step:
            until(step, is_caught_up(run, made))
            place = str(run.lake / table.name)
            first = pa.table(DeltaTable(place).scan().read_all()).slice(0, 1)
            write_deltalake(place, first, mode="append")
            folder, request = submitted(run, REPAIR, f"informix.{table.name}")
            until(step, lambda: folder.answer(request.id) is not None)
            made.change(3)
            until(step, is_caught_up(run, made))
        (row,) = run.rows("_informix_cdc_differences")
        key = [str(first.column(name)[0].as_py()) for name in table.key]
        assert [str(value) for value in json.loads(row["key"]).values()] == key
        assert (row["what"], row["repaired"]) == ("extra", True)
        assert run.keyed(table) == made.state_at(run.batches[-1].commit)[table.name]
