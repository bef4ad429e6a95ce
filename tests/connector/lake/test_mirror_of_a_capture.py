"""A mirror of a shared capture: the same tables, without a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.capture.driving import failure_of
from harness.capture.shared import capturing
from harness.lake.ledger import Ledger, ledger
from harness.lake.mirroring import MirrorRun, is_caught_up, until
from harness.servers.stores import source_options
from informix_cdc.capture import requests
from informix_cdc.lake.plan import plan_mirror
from informix_cdc.lake.settings import MirrorSettings
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


def test_a_capture_with_other_rows_is_refused(tmp_path: Path) -> None:
    with ledger(13, 2) as (_, listening), capturing(listening.port, tmp_path, table="informix.*"):
        settings = MirrorSettings.of(into=str(tmp_path / "lake"), checkpoint=str(tmp_path / "c"))
        source = {"captureAt": str(tmp_path), "reader": "mirror"}
        refused = failure_of(lambda: plan_mirror(settings, source))
        assert "the capture has shape=rows, but a mirror needs arrow" in str(refused)


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
