"""A verification is requested from the running mirror, and its result read from the control tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from connector.commands.commands import run_plain
from harness.runs.background import meanwhile
from harness.spark.checkpoints import run_batches
from informix_capture_client.errors import BadOption
from informix_capture_client.positions import Position
from informix_cdc import lake
from informix_cdc.lake import MirrorSettings, verifying
from informix_cdc.lake.control_tables import DIFFERENCES, VERIFIED, ControlTables
from informix_cdc.lake.identity import Identity, MirrorFolder
from informix_cdc.lake.places import Lake
from informix_cdc.lake.verifying import MirrorNotRunning
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.requests import REPAIR, VERIFY, Answer, Request, RequestFolder
from informix_checkpoints.spool import WriterLock
from informix_checkpoints.spool.writer_lock import has_writer
from informix_checkpoints.table_states import TableState

STREAM = "a1b2c3d4e5f60718"
ORDERS, ITEMS = "informix.orders", "informix.items"
AT = datetime(2026, 11, 20, tzinfo=UTC)
_INSTANT = pa.timestamp("us", "UTC")
OF_VERIFIED = pa.schema(
    [("mirror", pa.string()), ("epoch", pa.int64()), ("batch", pa.int64()),
     ("request", pa.string()), ("commit", pa.int64()),
     ("commit_timestamp", _INSTANT), ("table", pa.string()), ("target", pa.string()),
     *((name, pa.int64()) for name in ("rows", "missing", "extra", "different"))]
)  # fmt: skip
OF_DIFFERENCES = pa.schema(
    [("mirror", pa.string()), ("epoch", pa.int64()), ("batch", pa.int64()),
     ("request", pa.string()), ("table", pa.string()),
     ("target", pa.string()), ("commit", pa.int64()), ("what", pa.string()), ("key", pa.string()),
     ("columns", pa.list_(pa.string())), ("repaired", pa.bool_())]
)  # fmt: skip


class Running:
    """A mirror that holds the stream's lock and answers requests as a test says."""

    def __init__(self, folder: Path) -> None:
        tables = {ORDERS: TableState("d1"), ITEMS: TableState("d1")}
        end = StreamOffset(STREAM, "5a" * 8, Position(5, 0), tables=tables)
        self.checkpoint = run_batches(folder / "checkpoint", end.to_json())
        self.settings = MirrorSettings.of(into=f"{folder}/lake", checkpoint=str(self.checkpoint))
        self.mirror = Identity.of(self.settings, "ol_stores", "stores")
        MirrorFolder(str(self.checkpoint)).begin(self.mirror, 1, {})
        self.stream = self.checkpoint / "spool" / STREAM
        self.requests = RequestFolder(self.stream)
        self.answered: set[str] = set()

    def write(self, name: str, schema: pa.Schema, *rows: dict[str, Any]) -> None:
        given = [{"mirror": self.mirror.id, "epoch": 1, "batch": 1, **row} for row in rows]
        table = pa.Table.from_pylist(given, schema)
        write_deltalake(f"{self.settings.into}/{name}", table, mode="append")

    def compared(self, request: str, table: str, rows: int, different: int = 0, **more: Any) -> None:
        counts = {"rows": rows, "missing": 0, "extra": 0, "different": different}
        row = {"request": request, "table": table, "target": table, "commit": 5}
        self.write(VERIFIED, OF_VERIFIED, {**row, "commit_timestamp": AT, **counts, **more})

    def differs(self, request: str, table: str, what: str, key: str, *columns: str) -> None:
        row = {"request": request, "table": table, "target": table, "commit": 5, "what": what}
        row |= {"key": key, "columns": list(columns), "repaired": what == "extra"}
        self.write(DIFFERENCES, OF_DIFFERENCES, row)

    @contextmanager
    def answering(self, answer: Callable[[Request], None]) -> Iterator[None]:
        def serve() -> None:
            for request in self.requests.pending():
                if request.id not in self.answered:
                    self.answered.add(request.id)
                    answer(request)

        lock = WriterLock(self.stream, 0)
        with meanwhile(serve, 0.05):
            yield
        lock.release()


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    monkeypatch.setattr(verifying, "_POLL_SECONDS", 0.05)
    return Running(tmp_path)


def test_the_result_has_the_counts_and_differences_of_this_request_only(running: Running) -> None:
    seen: list[Request] = []
    running.compared("0", ORDERS, 7, different=7)  # of an earlier request
    running.differs("0", ORDERS, "extra", '{"id": 7}')

    def answer(request: Request) -> None:
        seen.append(request)
        running.differs(request.id, ORDERS, "different", '{"id": 2}', "total")
        running.compared(request.id, ITEMS, 3, mirror="another mirror", different=3)
        running.compared(request.id, ORDERS, 10, different=1)
        running.compared(request.id, ITEMS, 3)

    with running.answering(answer):
        found = lake.verify(running.settings, sample=0.5, repair=True)
    assert [(each.kind, each.tables, each.sample) for each in seen] == [(REPAIR, (ITEMS, ORDERS), 0.5)]
    assert [(each.table, each.rows, each.differences) for each in found.tables] == [
        (ITEMS, 3, 0),
        (ORDERS, 10, 1),
    ]
    assert found.differences.to_pylist() == [
        {
            "table": ORDERS,
            "key": '{"id": 2}',
            "what": "different",
            "columns": ["total"],
            "commit": 5,
            "repaired": False,
        },
    ]
    assert (found.unverified, found.is_equal) == ({}, False)


def test_a_table_that_the_capture_cannot_read_is_not_verified(running: Running) -> None:
    def answer(request: Request) -> None:
        assert (request.kind, request.tables) == (VERIFY, (ITEMS, ORDERS))
        running.requests.finish(request.id, Answer(problems={ITEMS: "it has no key."}))
        running.compared(request.id, ORDERS, 10)

    with running.answering(answer):
        found = lake.verify(running.settings)
    assert [each.table for each in found.tables] == [ORDERS]
    assert found.unverified == {ITEMS: "it has no key."}
    assert not found.is_equal


def test_a_request_that_takes_too_long_is_cancelled(running: Running) -> None:
    taken: list[str] = []
    with running.answering(lambda request: taken.append(request.id)):
        found = lake.verify(running.settings, tables=["informix.ord*"], timeout=0.5)
    assert [running.requests.is_cancelled(request) for request in taken] == [True]
    assert list(found.unverified) == [ORDERS]
    assert "within 0.5 s" in found.unverified[ORDERS]


def test_nothing_is_requested_without_a_mirror_and_of_unknown_tables(running: Running) -> None:
    with pytest.raises(MirrorNotRunning, match="no mirror is running"):
        lake.verify(running.settings)
    assert not running.stream.exists()
    with (
        running.answering(lambda _: None),
        pytest.raises(BadOption, match=r"no table of the stream matches 'joe\.\*'"),
    ):
        lake.verify(running.settings, tables=["joe.*"])
    assert running.requests.pending() == []


def test_a_mirror_that_ends_is_not_waited_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "_MOST_SECONDS_WITHOUT_MIRROR", 0.2)
    lock = WriterLock(running.stream, 0)
    assert has_writer(running.stream)
    threading.Timer(0.3, lock.release).start()
    found = lake.verify(running.settings)
    assert set(found.unverified) == {ITEMS, ORDERS}
    assert all("the mirror has stopped" in why for why in found.unverified.values())
    (request,) = running.requests.pending()
    assert running.requests.is_cancelled(request.id)


def test_the_last_verification_of_each_table_is_known_to_the_next_run(running: Running) -> None:
    running.compared("1", ORDERS, 7, different=7)
    running.compared("2", ORDERS, 7, batch=2, missing=1, extra=1)
    target = Lake(running.settings, running.mirror.application).target
    assert list(ControlTables(running.mirror.id, target).last_verified()) == [(ORDERS, AT, 2)]
    assert list(ControlTables("another", target).last_verified()) == []


def file_of(running: Running, folder: Path) -> str:
    path = folder / "shop.toml"
    settings = running.settings
    source = {"host": "db1", "server": "s", "database": "stores", "table": "informix.*"}
    options = "\n".join(f'{name} = "{value}"' for name, value in source.items())
    head = f'into = "{settings.into}"\ncheckpoint = "{settings.checkpoint}"\n'
    path.write_text(f"{head}[source]\n{options}\n")
    return str(path)


@pytest.mark.only_in_all
def test_the_command_prints_differences_and_ends_with_a_code(running: Running, tmp_path: Path) -> None:
    path = file_of(running, tmp_path)
    stopped = run_plain("verify", path)
    assert (stopped.exit_code, stopped.stdout) == (2, "")
    assert f"Run: informix-cdc mirror {path}" in stopped.stderr

    def differing(request: Request) -> None:
        running.differs(request.id, ORDERS, "different", '{"id": 2}', "total")
        running.differs(request.id, ORDERS, "extra", '{"id": 3}')
        running.compared(request.id, ORDERS, 10, different=1)

    with running.answering(differing):
        found = run_plain("verify", path, "--tables", ORDERS)
    assert (found.exit_code, found.stdout) == (
        1,
        'informix.orders {"id": 2}: different in total, at 0:0x5\n'
        'informix.orders {"id": 3}: extra, at 0:0x5; repaired\n',
    )
    assert "informix.orders: 10 rows compared at 0:0x5: 0 missing, 0 extra, 1 different" in found.stderr
    with running.answering(lambda request: running.compared(request.id, ORDERS, 10)):
        assert run_plain("verify", path, "--tables", ORDERS).exit_code == 0
    with running.answering(
        lambda request: running.requests.finish(request.id, Answer(problems={"": "it is late."}))
    ):
        late = run_plain("verify", path)
    assert late.exit_code == 2
    assert "informix.items: not verified: it is late." in late.stderr
