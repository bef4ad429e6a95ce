"""A mirror of a shared capture: the same tables, without a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from connector.lake.test_altered_tables import COLUMNS, ROWS, T, caught_up, insert, only
from harness.capture.driving import failure_of
from harness.capture.shared import capturing
from harness.lake.ledger import Ledger, LedgerTable, ledger
from harness.lake.mirroring import MirrorRun, is_caught_up, until
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import source_options
from informix_cdc.capture import requests
from informix_cdc.lake import MirrorNotRunning, verify
from informix_cdc.lake.plan import plan_mirror
from informix_cdc.lake.settings import MirrorSettings
from informix_checkpoints import running_streams
from informix_checkpoints.requests import ALTER, REPAIR, RESYNC, Request, RequestFolder

pytestmark = pytest.mark.slow


@contextmanager
def mirrored(folder: Path, seed: int) -> Iterator[tuple[Ledger, MirrorRun, RequestFolder]]:
    """Run a capture of a ledger, and give a mirror that reads it."""
    with ledger(seed, 2) as (made, listening):
        made.change(30)
        spool = folder / "capture"
        running = capturing(
            listening.port, spool, {"mirror": True}, table="informix.*", snapshotParallelism="8"
        )
        with running as capture:
            run = MirrorRun(folder, listening.port)
            run.source = {"captureAt": str(spool), "reader": "mirror"}
            stream = capture.process.state.stream
            assert stream is not None
            yield made, run, RequestFolder(spool / stream)


def require_equal(made: Ledger, run: MirrorRun) -> None:
    for table in made.tables:
        assert run.keyed(table) == made.state_at(run.batches[-1].commit)[table.name]


def test_a_mirror_of_a_capture_equals_informix(tmp_path: Path) -> None:
    with mirrored(tmp_path, 11) as (made, run, _):
        for _life in range(3):
            with run.running() as step:
                made.change(20)
                until(step, is_caught_up(run, made))
        require_equal(made, run)


@pytest.mark.only_in_all
def test_its_tables_are_read_again_and_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 0.0)
    with mirrored(tmp_path, 12) as (made, run, folder), run.running() as step:
        until(step, is_caught_up(run, made))
        for kind in (RESYNC, REPAIR):
            request = Request(kind=kind, tables=tuple(f"informix.{t.name}" for t in made.tables))
            folder.submit(request)
            until(step, lambda request=request: folder.answer(request.id) is not None)  # type: ignore[misc]
            made.change(5)
            until(step, is_caught_up(run, made))
        require_equal(made, run)
        assert ALTER not in {each.kind for each in folder.pending()}


@pytest.mark.parametrize("others", rest_in_all([1, 0]), ids=["with another table", "the only table"])
@pytest.mark.only_in_all
def test_a_table_that_is_altered_equals_informix(others: int, tmp_path: Path) -> None:
    """Without a restart of capture or mirror; a writer goes on while row logging is off."""
    with ledger(15, 0) as (made, listening):
        made.add(LedgerTable("t", ("id",), COLUMNS))
        for _ in range(others):
            made.add(LedgerTable("other", ("id",), {"id": "integer"}))
        server = made.server
        insert(server, T, *(only(row, COLUMNS) for row in ROWS))
        spool = tmp_path / "capture"
        with capturing(listening.port, spool, {"mirror": True}, table="informix.*"):
            run = MirrorRun(tmp_path, listening.port)
            run.source = {"captureAt": str(spool), "reader": "mirror"}
            with run.running() as step:
                until(step, lambda: bool(run.batches) and not run.batches[-1].loading)
                assert run.start is not None
                folder, request = (
                    RequestFolder(spool / run.start["stream"]),
                    Request(kind=ALTER, tables=("informix.t",)),
                )
                folder.submit(request)
                until(step, lambda: folder.is_ready(request.id))
                server.set_full_row_logging(T, False)
                insert(server, T, {"id": 5, "note": "late", "size": 5})
                statement = "ALTER TABLE informix.t ADD (priority SMALLINT)"
                InProcessConnection(server, LOGIN, "stores").rows(statement)
                server.finish_alter(T)
                folder.mark_altered(request.id)
                until(step, lambda: folder.answer(request.id) is not None)
                new = {"id": 9, "note": "n9", "size": 9, "priority": 7}
                caught_up(run, step, insert(server, T, new))
        late = {"id": 5, "note": "late", "size": 5, "priority": None}
        assert sorted(run.rows("t"), key=lambda row: row["id"]) == [*ROWS, late, new]
        assert [row["status"] for row in run.control("informix.t")][-1] == "mirrored"


def test_a_running_mirror_of_a_capture_is_verified(tmp_path: Path) -> None:
    """The command finds the capture by its folder, which the mirror's file names in captureAt."""
    with mirrored(tmp_path, 16) as (made, run, _):
        spool = Path(run.source["captureAt"])
        with run.running() as step:
            until(step, is_caught_up(run, made))
            with ThreadPoolExecutor(1) as beside:
                found = beside.submit(verify, run.settings, spool_path=str(spool))

                def steps() -> bool:
                    return step()

                until(steps, found.done)
        tables = [f"informix.{table.name}" for table in made.tables]
        assert sorted(each.table for each in found.result().tables) == sorted(tables)
        assert found.result().is_equal


def test_a_verification_names_what_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mirrored(tmp_path, 17) as (made, run, _):
        spool = run.source["captureAt"]
        with run.running() as step:
            until(step, is_caught_up(run, made))
        monkeypatch.setattr(running_streams, "_AWAY_SECONDS", 0.0)
        with pytest.raises(MirrorNotRunning, match=r"no reader of the capture .* was seen lately"):
            verify(run.settings, spool_path=spool)
    with pytest.raises(MirrorNotRunning, match=f"the capture {spool} does not run"):
        verify(run.settings, spool_path=spool)


def test_a_capture_without_events_of_tables_is_refused(tmp_path: Path) -> None:
    with ledger(13, 2) as (_, listening), capturing(listening.port, tmp_path, table="informix.*"):
        settings = MirrorSettings.of(into=str(tmp_path / "lake"), checkpoint=str(tmp_path / "c"))
        source = {"captureAt": str(tmp_path), "reader": "mirror"}
        refused = failure_of(lambda: plan_mirror(settings, source))
        assert "the capture has tableEvents=false, but a mirror needs true" in str(refused)


def test_its_plan_is_that_of_a_mirror_with_its_own_capture(tmp_path: Path) -> None:
    with ledger(14, 2) as (_, listening):
        own = source_options(listening.port, table="informix.*")
        tmp_path / "capture"
        folder = tmp_path / "capture"
        settings = MirrorSettings.of(into=str(tmp_path / "lake"), checkpoint=str(tmp_path / "c"))
        with capturing(listening.port, folder, {"mirror": True}, table="informix.*"):
            shared = plan_mirror(settings, {"captureAt": str(folder), "reader": "mirror"})
        plan = plan_mirror(settings, own)
    assert shared.targets == plan.targets
    assert shared.problems == plan.problems == ()
    assert (shared.server, shared.database) == (plan.server, plan.database)
