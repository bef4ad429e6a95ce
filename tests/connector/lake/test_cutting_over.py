"""A cut-over proves that tables equal Informix, and opens them in one transaction; it can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

import psycopg
import pytest

from harness.lake.ledger import Ledger, LedgerTable, ledger
from harness.lake.mirroring import is_caught_up, until
from harness.lake.postgresql import PostgresRun, postgres, require_state, session
from harness.runs.background import meanwhile
from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.lake import CutOver, MirrorSettings, NotCutOver, verifying
from informix_cdc.lake.plan import stream_options
from informix_cdc.options import SourceOptions
from informix_cdc.postgresql.local_server import LocalServer

pytestmark = pytest.mark.slow
ORDERS = LedgerTable("orders", ("k0",), {"k0": "serial", "c0": "varchar(40,0)"})


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with postgres() as made:
        yield made


class Shop:
    """A ledger and its mirror, which runs in the background."""

    def __init__(self, made: Ledger, run: PostgresRun) -> None:
        self.made, self.run = made, run

    @cached_property
    def steps(self) -> CutOver:
        options = SourceOptions.parse(stream_options(self.run.settings, self.run.source))
        return CutOver(self.run.settings, options)

    @contextmanager
    def mirrored(self) -> Iterator[None]:
        with self.run.running() as step:
            until(step, is_caught_up(self.run, self.made))
            with meanwhile(step):
                yield

    def wait(self) -> None:
        until(lambda: True, is_caught_up(self.run, self.made))

    def insert(self) -> int:
        """Insert a row as an application does, without a number, and return the number that it got."""
        with session(self.run.server) as other:
            row = other.execute(
                f"INSERT INTO {self.run.schema}.orders (c0) VALUES ('new') RETURNING k0"
            ).fetchone()
        assert row is not None
        return int(row["k0"])


@pytest.fixture
def shop(server: LocalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(verifying, "_POLL_SECONDS", 0.05)
    with ledger(21, 2) as (made, listening):
        made.add(ORDERS)
        made.change(60)
        made.change(20, [ORDERS])
        found = Shop(made, PostgresRun(tmp_path, listening.port, server, snapshotParallelism="8"))
        with found.run.running() as step:
            until(step, is_caught_up(found.run, made))
        with closing(found.steps):
            yield found


def test_the_tables_are_opened_with_the_numbers_of_informix(shop: Shop, server: LocalServer) -> None:
    gone = {"k0": 5000, "c0": "the counter of SERIAL stays"}
    with shop.made.server.transaction() as transaction:
        transaction.insert(ORDERS.full_name, gone)
    transaction = shop.made.server.begin()
    transaction.delete(ORDERS.full_name, gone)
    last = int(transaction.commit())
    with shop.mirrored():
        until(lambda: True, lambda: shop.run.batches[-1].commit >= last)
        shop.steps.require_ready()
        shop.steps.require_closed()
        assert shop.steps.verify_all().is_equal
        rehearsed = shop.steps.receipt()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            shop.insert()
        receipt = shop.steps.open_tables(rehearsed)
        with pytest.raises(BadOption, match="was cut over at"):
            shop.steps.require_ready()
    assert receipt.tables == rehearsed.tables
    assert {each.target: each.rows for each in receipt.tables} == {
        table.name: len(shop.made.state_at(receipt.commit)[table.name]) for table in shop.made.tables
    }
    assert shop.insert() == 5001
    with session(server) as reader:
        (row,) = reader.execute(f"SELECT * FROM {shop.run.schema}._informix_cdc_cutovers").fetchall()
    assert row["commit"] == receipt.commit
    assert row["receipt"]["tables"] == [
        {"table": e.table, "target": e.target, "rows": e.rows, "digest": str(e.digest)}
        for e in receipt.tables
    ]


def test_a_digest_is_that_of_the_rows_in_any_order(shop: Shop, server: LocalServer) -> None:
    with shop.mirrored():
        shop.steps.verify_all()
        before = shop.steps.receipt()
    with session(server) as other:
        other.execute("SET session_replication_role = replica")
        place = f"{shop.run.schema}.orders"
        other.execute(f"CREATE TABLE {place}_2 AS TABLE {place}; DELETE FROM {place}")
        other.execute(f"INSERT INTO {place} SELECT * FROM {place}_2 ORDER BY k0 DESC")
        assert shop.steps.receipt().tables == before.tables
        other.execute(f"UPDATE {place} SET c0 = c0 || 'x' WHERE k0 = (SELECT min(k0) FROM {place})")
    assert shop.steps.receipt().tables != before.tables


def test_a_table_that_is_written_meanwhile_prevents_it(shop: Shop) -> None:
    with shop.mirrored():
        shop.steps.verify_all()
        receipt = shop.steps.receipt()
        shop.made.change(3, [ORDERS])
        shop.wait()
        with pytest.raises(NotCutOver, match="orders changed while the tables were compared"):
            shop.steps.open_tables(receipt)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        shop.insert()


def test_an_open_transaction_prevents_it(shop: Shop) -> None:
    transaction = shop.made.server.begin()
    transaction.insert(ORDERS.full_name, {"k0": 10_000, "c0": "open"})
    with shop.mirrored(), pytest.raises(NotCutOver, match="whose transaction is open"):
        shop.steps.require_closed()
    transaction.rollback()


def test_a_row_that_differs_prevents_it(shop: Shop, server: LocalServer) -> None:
    with shop.mirrored():
        with session(server) as other:
            other.execute("SET session_replication_role = replica")
            other.execute(f"UPDATE {shop.run.schema}.orders SET c0 = 'astray'")
        with pytest.raises(NotCutOver, match=r"informix\.orders differs from Informix"):
            shop.steps.verify_all()


def test_a_stopped_table_prevents_it(shop: Shop, server: LocalServer) -> None:
    with session(server) as other:
        other.execute(f"ALTER TABLE {shop.run.schema}.orders ADD CHECK (k0 < 0) NOT VALID")
    with shop.mirrored():
        shop.made.change(5, [ORDERS])
        shop.wait()
        with pytest.raises(NotCutOver, match=r"informix\.orders is stopped: PostgreSQL refuses it"):
            shop.steps.require_ready()


def test_a_mirror_that_was_cut_over_does_not_write_and_goes_on_after_the_way_back(
    shop: Shop, server: LocalServer
) -> None:
    with shop.run.running() as step:
        until(step, is_caught_up(shop.run, shop.made))
        with meanwhile(step):
            shop.steps.verify_all()
            receipt = shop.steps.receipt()
        shop.steps.open_tables(receipt)
        shop.made.change(3)
        with pytest.raises(BadOption, match="was cut over at"):
            until(step, lambda: False)
    written = shop.insert()
    with pytest.raises(BadOption, match="--undo"), shop.run.running():
        pass
    shop.made.change(5)
    shop.steps.undo()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        shop.insert()
    with shop.run.running() as step:
        until(step, is_caught_up(shop.run, shop.made))
        assert shop.run.mirror is not None
        until(step, lambda: not shop.run.mirror.loading)  # type: ignore[union-attr]
        until(step, is_caught_up(shop.run, shop.made))
    with session(server) as reader:
        seen = shop.run.seen(reader, shop.made.tables)
    require_state(seen, shop.made)
    assert (written,) not in seen.tables["orders"]
    with pytest.raises(BadOption, match="is not cut over"):
        shop.steps.undo()


def test_only_tables_of_postgresql_are_cut_over(tmp_path: Path) -> None:
    settings = MirrorSettings.of(into=str(tmp_path / "lake"), checkpoint=str(tmp_path / "c"))
    options = SourceOptions.parse(source_options(1))
    with pytest.raises(BadOption, match="format is delta"):
        CutOver(settings, options)
