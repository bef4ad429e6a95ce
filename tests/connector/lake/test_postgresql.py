"""Tables of a real PostgreSQL equal Informix at every moment: a batch is one transaction over all."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from harness.lake.batches_by_hand import COLUMNS, ORDERS, Mirrored
from harness.lake.ledger import Ledger, LedgerTable, ledger, require_account
from harness.lake.mirroring import is_caught_up, until
from harness.lake.postgresql import (
    PostgresRun,
    changes_of,
    new_schema,
    postgres,
    require_state,
    session,
)
from harness.lake.put_back import dying
from harness.lake.rows_of_batches import Change, batch_row
from harness.runs.tiers import rest_in_all
from informix_capture_client import failpoints
from informix_capture_client.errors import BadOption, DataLoss, TargetUnavailable
from informix_cdc.lake import definitions, state_of_mirror, target_tables
from informix_cdc.lake.plan import plan_mirror, stream_options
from informix_cdc.lake.settings import MirrorSettings
from informix_cdc.options import SourceOptions
from informix_cdc.postgresql import Place
from informix_cdc.postgresql.local_server import LocalServer
from informix_cdc.server import describe_tables, open_catalog
from informix_checkpoints.requests import REPAIR, RESYNC, VERIFY, Request, RequestFolder

pytestmark = pytest.mark.slow
QUICKLY = {"snapshotParallelism": "8"}
OTHER = "informix.other"


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    with postgres() as made:
        yield made


@pytest.fixture
def by_hand(server: LocalServer, tmp_path: Path) -> Iterator[Mirrored]:
    made = Mirrored(tmp_path, **into(server, new_schema(server)))
    yield made
    made.mirror.close()


def into(server: LocalServer, schema: str) -> dict[str, Any]:
    return {
        "into": f"postgresql:///postgres/{schema}",
        "format": "postgresql",
        "storage_options": server.parameters,
    }


def schema_of(made: Mirrored) -> str:
    return made.settings.into.rpartition("/")[2]


def selected(server: LocalServer, made: Mirrored, table: str = "orders") -> list[tuple[Any, ...]]:
    with session(server) as reader:
        rows = reader.execute(f"SELECT * FROM {schema_of(made)}.{table} ORDER BY 1").fetchall()
    return [tuple(row.values()) for row in rows]


def ran(server: LocalServer, made: Mirrored, statement: str) -> None:
    with session(server) as other:
        other.execute(f"SET search_path TO {schema_of(made)}")
        other.execute(statement)


def updated(commit: int, old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    return [("update_preimage", commit, old), ("update_postimage", commit, new)]


def check_each_batch(run: PostgresRun, made: Ledger) -> None:
    """Let each batch compare what another session sees with the account at its end."""

    def check(_: object) -> None:
        with session(run.server) as reader:
            seen = run.seen(reader, made.tables)
        assert seen.commit == run.batches[-1].commit
        if not run.batches[-1].loading:
            require_state(seen, made)

    run.on_batch = check


# equal at every moment


@pytest.mark.parametrize(("seed", "tables"), rest_in_all([(1, 6), (2, 30), (3, 12)]))
def test_every_batch_is_a_state_of_informix(
    seed: int, tables: int, server: LocalServer, tmp_path: Path
) -> None:
    with ledger(seed, tables) as (made, listening):
        made.change(2 * tables)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        check_each_batch(run, made)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            for _ in range(4):
                made.change(25)
                if made.random.random() < 0.4:
                    made.truncate(made.random.choice(made.tables))
                made.change(3)
                until(step, is_caught_up(run, made))
        assert not run.stopped


def test_readers_at_random_moments_see_states_of_informix(server: LocalServer, tmp_path: Path) -> None:
    with ledger(4, 10) as (made, listening):
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            is_over, seen = threading.Event(), []

            def look() -> None:
                with session(server) as reader:
                    while not is_over.is_set():
                        seen.append(run.seen(reader, made.tables))

            looking = threading.Thread(target=look)
            looking.start()
            try:
                for _ in range(6):
                    made.change(15)
                    until(step, is_caught_up(run, made))
            finally:
                is_over.set()
                looking.join()
        assert len({each.commit for each in seen}) > 3
        for each in seen:
            require_state(each, made)


def test_all_changes_can_be_kept(server: LocalServer, tmp_path: Path) -> None:
    with ledger(7, 5) as (made, listening):
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, {"keep": "changes"}, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            begun = run.batches[-1].commit
            made.change(40)
            until(step, is_caught_up(run, made))
        for change in made.changes:
            table = next(each for each in made.tables if each.name == change.table)
            with session(server) as reader:
                rows = changes_of(reader, run.schema, table)
            require_account("changes", rows, made, table, begun)


# a batch that dies, and others that write


PLACES = [
    "mirror.before_table",
    "mirror.after_table",
    "mirror.before_control",
    "mirror.after_control",
    "mirror.before_commit",
    "mirror.after_commit",
    "mirror.after_witness",
]


@pytest.mark.parametrize("place", [*PLACES[:2], *rest_in_all(PLACES[4:]), *rest_in_all(PLACES[2:4])])
def test_a_batch_that_died_is_in_all_tables_or_in_none(
    place: str, server: LocalServer, tmp_path: Path
) -> None:
    with ledger(8, 6) as (made, listening):
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
        before = run.batches[-1].commit
        made.change(40)
        with dying(place, threads_too=True), run.running(available_now=True) as step:
            step()
        with session(server) as reader:
            seen = run.seen(reader, made.tables)
        is_there = place in ("mirror.after_commit", "mirror.after_witness")
        assert (seen.commit > before) == is_there
        require_state(seen, made)
        check_each_batch(run, made)
        with run.running() as step:
            until(step, is_caught_up(run, made))


def test_a_server_that_was_killed_has_whole_batches(tmp_path: Path) -> None:
    with postgres() as server, ledger(9, 6) as (made, listening):
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            made.change(20)

            def kill(_: object) -> None:
                server.stop(signal.SIGQUIT)
                server.start()

            run.on_batch = kill
            step()  # the next batch connects again
            check_each_batch(run, made)
            made.change(20)
            until(step, is_caught_up(run, made))


def test_a_connection_that_is_lost_in_a_batch_ends_the_query_and_the_next_start_repeats_it(
    server: LocalServer, by_hand: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    lost = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'informix-cdc'"
    )

    def ended(name: str) -> None:
        if name == "mirror.before_control":
            ran(server, by_hand, lost)

    monkeypatch.setattr(failpoints, "reached", ended)
    change: list[Change] = [("insert", 201, {"id": n, "note": "b"}) for n in range(2, 100)]
    with pytest.raises(TargetUnavailable, match="Nothing is lost"):
        by_hand.orders(*change)
    monkeypatch.setattr(failpoints, "reached", lambda _: None)
    assert selected(server, by_hand) == [(1, "a")]
    by_hand.number -= 1
    by_hand.restart()
    by_hand.orders(*change)
    assert len(selected(server, by_hand)) == 99


@pytest.mark.parametrize("state", ["53100", "53200", "57014", "40P01"])
def test_a_full_disk_and_other_passing_errors_stop_no_table(
    state: str, server: LocalServer, by_hand: Mirrored
) -> None:
    both = (ORDERS, OTHER)
    row = {"id": 1, "note": "a"}
    change: list[Change] = [("insert", 101, row)]
    by_hand.batch(batch_row(ORDERS, COLUMNS, change), batch_row(OTHER, COLUMNS, change), tables=both)
    ran(
        server,
        by_hand,
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$BEGIN RAISE 'no space' USING ERRCODE = '{state}'; END$$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON orders EXECUTE FUNCTION full_disk()",
    )
    rows = [
        batch_row(OTHER, COLUMNS, updated(201, row, {"id": 1, "note": "b"})),
        batch_row(ORDERS, COLUMNS, updated(202, row, {"id": 1, "note": "b"})),
    ]
    with pytest.raises(TargetUnavailable, match=state):
        by_hand.batch(*rows, tables=both)
    assert selected(server, by_hand, "other") == selected(server, by_hand) == [(1, "a")]
    ran(server, by_hand, "DROP TRIGGER full_disk ON orders")
    by_hand.mirror.close()
    by_hand.number -= 1
    by_hand.restart()
    by_hand.batch(*rows, tables=both)
    assert not by_hand.batches[-1].stopped
    assert selected(server, by_hand, "other") == selected(server, by_hand) == [(1, "b")]


def test_of_two_drivers_one_finds_that_the_other_was_first(
    server: LocalServer, by_hand: Mirrored
) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    paused = by_hand.mirror
    by_hand.restart()
    late = by_hand.mirror
    by_hand.mirror = paused
    by_hand.orders(("insert", 201, {"id": 2, "note": "b"}))
    by_hand.orders(("insert", 301, {"id": 2, "note": "c"}))
    by_hand.mirror, by_hand.number = late, 1
    with pytest.raises(DataLoss, match="batch 3 of epoch 1"):
        by_hand.orders(("insert", 201, {"id": 2, "note": "b"}))
    paused.close()
    assert selected(server, by_hand) == [(1, "a"), (2, "c")]


def test_two_drivers_at_the_same_time_cannot_both_commit(
    server: LocalServer, by_hand: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    other = Mirrored.__new__(Mirrored)
    other.__dict__.update(by_hand.__dict__)
    other.restart()
    other.mirror._lock = threading.Lock()  # it is in another process

    def overtaken(name: str) -> None:
        if name == "mirror.before_table":
            monkeypatch.setattr(failpoints, "reached", lambda _: None)
            other.orders(("insert", 202, {"id": 2, "note": "first"}))

    monkeypatch.setattr(failpoints, "reached", overtaken)
    with pytest.raises(DataLoss, match="another driver of this mirror"):
        by_hand.orders(("insert", 201, {"id": 2, "note": "second"}))
    other.mirror.close()
    assert selected(server, by_hand) == [(1, "a"), (2, "first")]


def test_a_mirror_behind_its_checkpoint_is_in_doubt(server: LocalServer, by_hand: Mirrored) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    by_hand.orders(("insert", 201, {"id": 2, "note": "b"}))
    ran(server, by_hand, "UPDATE _informix_cdc_position SET batch = 1, commit = 100")
    by_hand.mirror.close()
    with pytest.raises(DataLoss, match="older than the checkpoint"):
        by_hand.restart()


def test_other_programs_cannot_write_the_tables(server: LocalServer, by_hand: Mirrored) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    for statement in ("DELETE FROM orders", "UPDATE orders SET note = 'x'", "TRUNCATE orders"):
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="is a mirror of a table"):
            ran(server, by_hand, statement)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DROP TRIGGER _informix_cdc_guard ON orders", "gone or disabled"),
        ("ALTER TABLE orders DISABLE TRIGGER ALL", "gone or disabled"),
        ("ALTER TABLE orders RENAME TO away; CREATE TABLE orders (id int)", "made it anew"),
        ("DROP TABLE orders", "no longer exists"),
        ("ALTER TABLE orders ADD COLUMN place point", "columns of other types: place of type point"),
    ],
)
def test_a_table_that_others_may_have_changed_is_stopped(
    statement: str, why: str, server: LocalServer, by_hand: Mirrored
) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    ran(server, by_hand, statement)
    by_hand.orders(("insert", 201, {"id": 2, "note": "b"}))
    assert why in by_hand.batches[-1].stopped[ORDERS]


# what one table cannot hold stops that table, and the others have the whole batch


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a CHECK constraint": ("ALTER TABLE orders ADD CHECK (note <> 'bad')", {"id": 2, "note": "bad"}),
    "NUL": ("SELECT 1", {"id": 2, "note": "a\0b"}),
    "a trigger of the user's": (
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$;"
        "CREATE TRIGGER fails BEFORE INSERT ON orders FOR EACH ROW WHEN (new.note = 'bad')"
        " EXECUTE FUNCTION fails()",
        {"id": 2, "note": "bad"},
    ),
}


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("rows", [1, 200], ids=["by statements", "by COPY"])
def test_a_refused_row_stops_its_table_and_undoes_nothing_of_others(
    rows: int, how: str, server: LocalServer, by_hand: Mirrored
) -> None:
    statement, refused = REFUSED[how]
    both = (ORDERS, OTHER)
    first = {"id": 1, "note": "a"}
    by_hand.batch(
        batch_row(ORDERS, COLUMNS, [("insert", 101, first)]),
        batch_row(OTHER, COLUMNS, [("insert", 102, first)]),
        tables=both,
    )
    ran(server, by_hand, statement)
    more: list[Change] = [("insert", 201, {"id": 10 + n, "note": "ok"}) for n in range(rows - 1)]
    changes = [*updated(201, first, {"id": 1, "note": "c"}), *more]
    by_hand.batch(
        batch_row(OTHER, COLUMNS, changes),
        batch_row(ORDERS, COLUMNS, [*changes, ("insert", 202, refused)]),
        tables=both,
    )
    assert set(by_hand.batches[-1].stopped) == {ORDERS}
    assert str(refused["note"]) not in by_hand.batches[-1].stopped[ORDERS].partition("To read")[0]
    assert selected(server, by_hand) == [(1, "a")]
    assert selected(server, by_hand, "other")[0] == (1, "c")
    assert len(selected(server, by_hand, "other")) == rows
    by_hand.batch(batch_row(OTHER, COLUMNS, [("insert", 301, {"id": 7, "note": "d"})]), tables=both)
    assert (7, "d") in selected(server, by_hand, "other")


@pytest.mark.parametrize("rows", [2, 120], ids=["by statements", "by COPY"])
def test_rows_may_exchange_a_unique_value(rows: int, server: LocalServer, by_hand: Mirrored) -> None:
    by_hand.orders(*[("insert", 101, {"id": n, "note": f"n{n}"}) for n in range(rows)])
    ran(server, by_hand, "CREATE UNIQUE INDEX ON orders (note)")
    by_hand.restart()
    changes = [
        change
        for n in range(rows)
        for change in updated(201, {"id": n, "note": f"n{n}"}, {"id": n, "note": f"n{rows - 1 - n}"})
    ]
    by_hand.orders(*changes)
    assert not by_hand.batches[-1].stopped
    assert selected(server, by_hand) == [(n, f"n{rows - 1 - n}") for n in range(rows)]


def test_foreign_keys_hold_at_the_end_of_each_transaction(
    server: LocalServer, by_hand: Mirrored
) -> None:
    row = {"id": 1, "note": "a"}
    tables = (ORDERS, OTHER)
    by_hand.batch(
        batch_row(OTHER, COLUMNS, [("insert", 101, row)]),
        batch_row(ORDERS, COLUMNS, [("insert", 102, row)]),
        tables=tables,
    )
    ran(
        server,
        by_hand,
        "ALTER TABLE orders ADD FOREIGN KEY (id) REFERENCES other DEFERRABLE INITIALLY IMMEDIATE",
    )
    two = {"id": 2, "note": "b"}
    by_hand.batch(  # the child comes first, and its parent goes first
        batch_row(ORDERS, COLUMNS, [("insert", 201, two), ("delete", 202, row)]),
        batch_row(OTHER, COLUMNS, [("insert", 203, two), ("delete", 204, row)]),
        tables=tables,
    )
    assert selected(server, by_hand) == selected(server, by_hand, "other") == [(2, "b")]


# columns


def test_columns_are_added_and_widened(server: LocalServer, by_hand: Mirrored) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    more = {"id": pa.int64(), "note": pa.string(), "price": pa.decimal128(10, 2)}
    by_hand.orders(("insert", 201, {"id": 2**40, "note": "b", "price": 5}), columns=more)
    assert not by_hand.batches[-1].stopped
    assert selected(server, by_hand) == [(1, "a", None), (2**40, "b", 5)]


def test_a_table_that_is_read_from_its_first_row_may_have_other_columns(
    server: LocalServer, by_hand: Mirrored
) -> None:
    by_hand.orders(("insert", 101, {"id": 1, "note": "a"}))
    other = {"id": pa.int32(), "place": pa.date32()}
    by_hand.orders(("truncate", 201, None), ("insert", 201, {"id": 3}), columns=other, is_snapshot=True)
    by_hand.orders(("insert", 301, {"id": 4}), columns=other)
    assert not by_hand.batches[-1].stopped
    assert [row[0] for row in selected(server, by_hand)] == [3, 4]


def test_tables_that_somebody_has_made_are_taken_if_they_are_empty(
    server: LocalServer, by_hand: Mirrored
) -> None:
    ran(server, by_hand, 'CREATE TABLE orders (id integer NOT NULL, note text COLLATE "C")')
    ran(server, by_hand, "CREATE TABLE other (id integer PRIMARY KEY); INSERT INTO other VALUES (1)")
    row = {"id": 1, "note": "a"}
    by_hand.batch(
        batch_row(ORDERS, COLUMNS, [("insert", 101, row)]),
        batch_row(OTHER, COLUMNS, [("insert", 101, row)]),
        tables=(ORDERS, OTHER),
    )
    by_hand.orders(*updated(201, row, {"id": 1, "note": "b"}))
    assert selected(server, by_hand) == [(1, "b")]
    ran(server, by_hand, "ALTER TABLE orders DISABLE TRIGGER USER")
    by_hand.orders(("truncate", 301, None), is_snapshot=True)  # it is read again
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        ran(server, by_hand, "DELETE FROM orders")
    assert "was not created by a mirror" in by_hand.batches[0].stopped[OTHER]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        ran(server, by_hand, "DELETE FROM orders")


def test_tables_of_the_printed_definition_are_taken(server: LocalServer, tmp_path: Path) -> None:
    with ledger(31, 8) as (made, listening):
        made.change(40)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        options = SourceOptions.parse(stream_options(run.settings, run.source))
        with open_catalog(options.connection) as catalog:
            targets = target_tables(options, describe_tables(options, catalog), catalog)
        with session(server) as other:
            for statement in definitions("postgresql", targets, run.schema):
                other.execute(statement)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            check_each_batch(run, made)
            made.change(30)
            until(step, is_caught_up(run, made))
        assert not run.stopped


def test_a_hashed_column_is_a_text_of_any_length(server: LocalServer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("00" * 32)
    (tmp_path / "key").chmod(0o600)
    with ledger(33, 0) as (made, listening):
        made.add(LedgerTable("people", ("k0",), {"k0": "serial", "c0": "varchar(40,0)"}))
        made.change(20)
        masks = {"mask": "people.c0=hash", "maskKeyFile": str(tmp_path / "key")}
        run = PostgresRun(tmp_path, listening.port, server, **masks)
        with run.running() as step:
            until(step, is_caught_up(run, made))
        assert not run.stopped
    with session(server) as reader:
        found = reader.execute(f"SELECT c0 FROM {run.schema}.people WHERE c0 IS NOT NULL").fetchall()
    assert {len(row["c0"]) for row in found} == {64}


def test_the_state_of_a_mirror_is_read_without_it(server: LocalServer, by_hand: Mirrored) -> None:
    by_hand.orders(*[("insert", 101, {"id": n, "note": "a"}) for n in range(60)])
    ran(server, by_hand, "ANALYZE orders")
    by_hand.orders(*updated(201, {"id": 1, "note": "a"}, {"id": 1, "note": "b"}))
    (table,) = state_of_mirror(by_hand.settings).tables
    assert (table.table, table.state, table.rows) == (ORDERS, "mirrored", 60)
    assert table.changed_at is not None


# compared with Informix


def lose_rows(run: PostgresRun, tables: list[LedgerTable]) -> set[str]:
    """Delete a row of each table without the trigger; return the tables that had one."""
    lost = set()
    with session(run.server) as other:
        other.execute("SET session_replication_role = replica")
        for table in tables:
            place = f"{run.schema}.{table.name}"
            one = f"DELETE FROM {place} WHERE ctid = (SELECT min(ctid) FROM {place})"
            lost |= {f"informix.{table.name}"} if other.execute(one).rowcount else set()
    return lost


@pytest.mark.parametrize("kind", [VERIFY, *rest_in_all([REPAIR, RESYNC])])
def test_rows_that_went_astray_are_found(kind: str, server: LocalServer, tmp_path: Path) -> None:
    with ledger(12, 2) as (made, listening):
        made.add_a_table_for_each_kind_of_key()
        made.change(150)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY, snapshotChunkRows="7")
        names = [f"informix.{table.name}" for table in made.tables]
        with run.running() as step:
            until(step, is_caught_up(run, made))
            lost = lose_rows(run, made.tables[1:])
            assert run.start is not None
            folder = RequestFolder(tmp_path / "checkpoint" / "spool" / run.start["stream"])
            request = Request(kind=kind, tables=tuple(names))
            folder.submit(request)

            def is_answered() -> bool:
                made.change(1, made.tables[:1])
                return folder.answer(request.id) is not None

            until(step, is_answered)
            until(step, is_caught_up(run, made))
            with session(server) as reader:
                seen = run.seen(reader, made.tables)
                missing = set()
                if kind != RESYNC:
                    found = reader.execute(f"SELECT * FROM {run.schema}._informix_cdc_differences")
                    missing = {row["table"] for row in found if row["what"] == "missing"}
        assert missing == (lost if kind != RESYNC else set())
        assert len(lost) > len(names) / 2
        if kind != VERIFY:
            require_state(seen, made)


def test_one_interval_is_read_by_the_index_of_the_key(server: LocalServer, by_hand: Mirrored) -> None:
    columns = {"id": pa.string(), "note": pa.string()}
    rows: list[Change] = [("insert", 101, {"id": f"k{n:06}", "note": "x" * 50}) for n in range(20_000)]
    by_hand.orders(*rows, columns=columns)
    ran(server, by_hand, "ANALYZE orders")
    with session(server) as reader:
        plan = reader.execute(
            f"EXPLAIN SELECT * FROM {schema_of(by_hand)}.orders WHERE id COLLATE \"C\" >= 'k000100'"
            " AND id COLLATE \"C\" < 'k000200!' OR id IS NULL"
        ).fetchall()
    assert "Seq Scan" not in str(plan)


# a standby


@pytest.mark.only_in_all
def test_a_standby_that_lags_shows_an_earlier_state(tmp_path: Path) -> None:
    with postgres() as server, ledger(13, 5) as (made, listening):
        made.change(30)
        run = PostgresRun(tmp_path, listening.port, server, **QUICKLY)
        with run.running() as step:
            until(step, is_caught_up(run, made))
            standby = server.copy(server.folder / "standby")
            standby.start()
            try:
                with session(standby) as reader, session(standby) as control:
                    control.execute("SELECT pg_wal_replay_pause()")
                    before = run.seen(reader, made.tables)
                    made.change(20)
                    until(step, is_caught_up(run, made))
                    require_state(run.seen(reader, made.tables), made)
                    assert run.seen(reader, made.tables).commit == before.commit
                    control.execute("SELECT pg_wal_replay_resume()")
                    end = run.batches[-1].commit
                    until(lambda: True, lambda: run.seen(reader, made.tables).commit == end)
                    require_state(run.seen(reader, made.tables), made)
            finally:
                standby.stop()


# places and settings


def test_a_plan_reports_what_a_schema_lacks(server: LocalServer, tmp_path: Path) -> None:
    with ledger(35, 1) as (made, listening):
        run = PostgresRun(tmp_path, listening.port, server)
        with session(server) as other:
            other.execute(f"CREATE TABLE {run.schema}.a (id int PRIMARY KEY)")
            other.execute(f'CREATE TABLE {run.schema}."B" (id int REFERENCES {run.schema}.a)')
            found = plan_mirror(run.settings, run.source)
            (problem,) = found.problems
            assert "is checked before the end of a transaction" in problem.message
            other.execute(problem.remedy)  # as it is printed
            assert not plan_mirror(run.settings, run.source).problems
            other.execute(f"DROP SCHEMA {run.schema} CASCADE")
            (problem,) = plan_mirror(run.settings, run.source).problems
            assert "has no such schema" in problem.message
            other.execute(problem.remedy)
            assert not plan_mirror(run.settings, run.source).problems
            other.execute("CREATE ROLE limited LOGIN")
            limited = {**run.settings.storage_options, "options": "-c role=limited"}
            other.execute(f"GRANT USAGE ON SCHEMA {run.schema} TO limited")
            settings = replace(run.settings, storage_options=limited)
            (problem,) = plan_mirror(settings, run.source).problems
            assert "limited may not create tables" in problem.message
            other.execute(problem.remedy)
            assert not plan_mirror(settings, run.source).problems
            assert made.tables


@pytest.mark.parametrize(
    ("into", "why"),
    [
        ("postgresql://u:secret@h/d/s", "contains a password"),
        ("postgresql://h/d", "postgresql://user@host:port/database/schema"),
        ("/lake", "postgresql://user@host:port/database/schema"),
        ("postgresql://h:port/d/s", "is not a URL"),
        ("postgresql://h/d/s?sslmode=off", "without a password"),
    ],
)
def test_a_place_that_is_none_is_refused(into: str, why: str) -> None:
    with pytest.raises(BadOption, match=why) as refused:
        MirrorSettings.of(into=into, checkpoint="/c", format="postgresql")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "setting",
    [
        {"keep": "history"},
        {"deletes": "soft"},
        {"merge": "on-read"},
        {"engine": "spark"},
        {"catalog": "c"},
    ],
)
def test_settings_of_other_formats_are_refused(setting: dict[str, str]) -> None:
    with pytest.raises(BadOption, match="which tables of PostgreSQL do not have"):
        MirrorSettings.of(into="postgresql://h/d/s", checkpoint="/c", format="postgresql", **setting)


def test_a_place_is_shown_without_user_and_parameters() -> None:
    place = Place.of("postgresql://etl@db:5433/shop/public", {"password": "secret"})
    assert str(place) == "postgresql://db:5433/shop/public"
    assert "secret" not in repr(place)
    assert place.connection == {
        "host": "db", "port": "5433", "user": "etl", "dbname": "shop", "password": "secret"
    }  # fmt: skip
