"""`informix-cdc release` refuses while a query has changes to deliver."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from connector.commands.commands import refusal, run
from connector.commands.stopped_queries import (
    SOON,
    checkpoint_option,
    is_logged,
    stopped_query,
)
from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    insert,
    next_offset,
    reader,
)
from harness.servers.stores import (
    CUSTOMERS,
    ORDERS,
    listening_stores,
    order_row,
)
from harness.spark.checkpoints import offset, plan, run_batches
from informix_capture_client.positions import log_page, show
from informix_cdc.commands import release as release_command


@pytest.mark.only_in_all
def test_changes_that_a_query_has_delivered_are_no_reason_to_refuse(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1, 2, 3)
    result = run(listening, "release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert result.exit_code == 0, result.output
    assert not is_logged(server)
    assert "are delivered" in result.stderr


@pytest.mark.fault(
    fault="a table is released before a query has delivered all its changes",
    outcome="refused, with the transactions and rows of each table",
)
@pytest.mark.only_in_all
def test_changes_that_were_committed_since_are_counted_and_refused(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    end = stopped_query(served, tmp_path, 1)
    insert(server, 2, 3)
    insert(server, 4)
    line = refusal(run(listening, "release", "informix.orders", checkpoint_option(tmp_path), "--yes"))
    assert f"is at {show(end['commit'])} and has not yet delivered" in line
    assert "2 transactions committed (3 rows of stores:informix.orders)" in line
    assert "Nothing was switched off" in line
    assert is_logged(server)


@pytest.mark.slow
@pytest.mark.fault(
    fault="a table is released while a transaction that changed it is open",
    outcome="refused until that has ended",
)
def test_a_transaction_that_is_still_open_is_refused_until_it_ends(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1)
    open_now = server.begin()
    open_now.insert(ORDERS, order_row((2, 1, "note", None)))
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    line = refusal(run(listening, *arguments))
    assert "1 transaction still open (1 row of stores:informix.orders)" in line
    assert is_logged(server)
    open_now.rollback()
    assert run(listening, *arguments).exit_code == 0


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_transaction_older_than_the_last_delivered_one_is_read_from_its_beginning(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        open_now = server.begin()
        open_now.insert(ORDERS, order_row((2, 1, "note", None)))
        end = drained(made, anchor, insert(server, 1))[1]
    run_batches(tmp_path, anchor, end)
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "1 transaction still open" in refusal(run(listening, *arguments))
    open_now.commit()
    assert "1 transaction committed (1 row of" in refusal(run(listening, *arguments))


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_batch_that_was_planned_and_never_committed_is_not_delivered(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        anchor = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, anchor)
    run_batches(tmp_path, anchor)
    plan(tmp_path, 1, end)
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "1 transaction committed" in refusal(run(listening, *arguments))
    run_batches(tmp_path, anchor, end)
    assert run(listening, *arguments).exit_code == 0


def test_changes_of_other_tables_of_the_stream_count_since_it_ends_for_them_too(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    both = "informix.orders,informix.customers"
    stopped_query(served, tmp_path, table=both)
    with server.transaction() as change:
        change.insert(CUSTOMERS, {"customer_num": 1, "name": "Ann", "city": "Oslo"})
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    line = refusal(run(listening, *arguments))
    assert "1 row of stores:informix.customers" in line
    assert is_logged(server)


def test_the_other_tables_of_a_stream_are_named_before_it_ends_for_them(
    served: Served, tmp_path: Path
) -> None:
    _, listening = served
    both = "informix.orders,informix.customers"
    stopped_query(served, tmp_path, 1, table=both)
    arguments = ("informix.orders", checkpoint_option(tmp_path))
    result = run(listening, "release", *arguments, answer="y\n")
    assert result.exit_code == 0
    assert "end for stores:informix.customers too" in result.stderr


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_release_that_was_half_done_can_be_ended(served: Served, tmp_path: Path) -> None:
    server, listening = served
    both = "informix.orders,informix.customers"
    stopped_query(served, tmp_path, 1, table=both)
    server.refuse_row_logging_off(4)
    arguments = ("release", "informix.customers", "informix.orders", checkpoint_option(tmp_path))
    refusal(run(listening, *arguments, "--yes"))
    server.set_full_row_logging(CUSTOMERS, on=False)
    result = run(listening, *arguments, "--yes")
    assert result.exit_code == 0, result.output
    assert "informix.customers: full row logging is already off" in result.stderr
    assert not is_logged(server)


@pytest.mark.only_in_all
def test_it_is_told_up_to_where_the_log_was_read(served: Served, tmp_path: Path) -> None:
    server, listening = served
    end = stopped_query(served, tmp_path, 1)
    last = server.begin().commit()
    result = run(listening, "release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert end["commit"] < last
    assert f"All changes up to {show(last)} are delivered" in result.stderr


@pytest.mark.only_in_all
def test_a_gbase_server_is_released_and_acquired_as_well(tmp_path: Path) -> None:
    gbase = {"dialect": "gbase8s"}
    with listening_stores(poses_as="gbase8s", **SOON) as (server, listening):
        stopped_query((server, listening), tmp_path, 1, **gbase)
        arguments = ("informix.orders", "--dialect=gbase8s")
        result = run(listening, "release", *arguments, checkpoint_option(tmp_path), "--yes")
        assert result.exit_code == 0, result.output
        assert not is_logged(server)
        assert run(listening, "acquire", *arguments).exit_code == 0
        assert is_logged(server)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_every_checkpoint_is_looked_at(served: Served, tmp_path: Path) -> None:
    server, listening = served
    stopped_query(served, tmp_path / "behind")
    stopped_query(served, tmp_path / "ahead", 1)
    one, two = (checkpoint_option(tmp_path / name) for name in ("ahead", "behind"))
    line = refusal(run(listening, "release", "informix.orders", "--yes", one, two))
    assert f"{tmp_path / 'behind'}, source 0" in line
    assert is_logged(server)


@pytest.mark.slow
def test_two_tables_with_a_stream_each_are_released_together(served: Served, tmp_path: Path) -> None:
    server, listening = served
    stopped_query(served, tmp_path / "orders", 1)
    stopped_query(served, tmp_path / "customers", table="informix.customers")
    options = [checkpoint_option(tmp_path / name) for name in ("orders", "customers")]
    tables = ("informix.orders", "informix.customers")
    assert "informix.customers" in refusal(
        run(listening, "release", *tables, options[0], "--yes"), exit_code=2
    )
    assert run(listening, "release", *tables, *options, "--yes").exit_code == 0
    assert not is_logged(server)
    assert not is_logged(server, CUSTOMERS)


def test_a_stream_of_chosen_columns_is_found_by_them(served: Served, tmp_path: Path) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1, columns="order_num,note")
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "--columns" in refusal(run(listening, *arguments), exit_code=2)
    assert run(listening, *arguments, "--columns=order_num,note").exit_code == 0
    assert not is_logged(server)


def test_a_checkpoint_of_another_source_is_refused(served: Served, tmp_path: Path) -> None:
    server, listening = served
    server.set_full_row_logging(ORDERS, on=True)
    run_batches(tmp_path, offset(1, 1))
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "is not for database stores on this server" in refusal(
        run(listening, *arguments), exit_code=2
    )
    assert is_logged(server)


@pytest.mark.only_in_all
def test_a_checkpoint_whose_log_is_gone_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with listening_stores(log_pages=4, log_count=3, **SOON) as (server, listening):
        stopped_query((server, listening), tmp_path)
        for _ in range(4):
            server.switch_log()
        arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
        line = refusal(run(listening, *arguments))
        assert "cannot be determined" in line
        assert "CDC_E_LSN" in line
        assert is_logged(server)


def test_a_checkpoint_beyond_the_end_of_the_log_cannot_be_checked(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    end = stopped_query(served, tmp_path, 1)
    beyond = log_page(7, 0)
    run_batches(tmp_path, end, {**end, "commit": beyond, "restart": beyond})
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "would resume at 7:0x0, but the server's log ends at" in refusal(run(listening, *arguments))
    assert is_logged(server)


@pytest.mark.fault(
    fault="the session that looks for undelivered changes stands still before the end of the log",
    outcome="refused: silence proves nothing",
)
def test_a_session_that_stands_still_before_the_end_of_the_log_proves_nothing(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1)
    for order in range(2, 200):
        insert(server, order)
    server.silence(True)
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    assert "Commit a transaction" in refusal(run(listening, *arguments))
    assert is_logged(server)


@pytest.mark.slow
@pytest.mark.fault(
    fault="newest changes show late, within the last pages of the log, while a table is released",
    outcome="waited for, 60 s by default: they are counted and the release is refused",
)
@pytest.mark.only_in_all
def test_changes_that_show_late_are_waited_for(served: Served, tmp_path: Path) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1)
    for order in range(2, 12):
        insert(server, order)
    server.silence(True)
    speaks = threading.Timer(1.0, server.silence, [False])
    speaks.start()
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    line = refusal(run(listening, *arguments, "--quiet-seconds=5"))
    speaks.join()
    assert "10 transactions committed" in line
    assert is_logged(server)


@pytest.mark.only_in_all
def test_what_commits_while_the_question_is_open_is_seen(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1)
    monkeypatch.setattr(release_command, "require_yes", lambda _: insert(server, 2))
    line = refusal(run(listening, "release", "informix.orders", checkpoint_option(tmp_path)))
    assert "1 transaction committed" in line
    assert is_logged(server)


@pytest.mark.slow
def test_buffered_logging_is_warned_of_with_the_command_that_writes_the_buffer(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    stopped_query(served, tmp_path, 1)
    arguments = ("release", "informix.orders", checkpoint_option(tmp_path), "--yes")
    server.databases["stores"].is_buffered = True
    assert "onmode -c" in run(listening, *arguments).stderr
    server.databases["stores"].is_buffered = False
    server.set_full_row_logging(ORDERS, on=True)
    assert "onmode -c" not in run(listening, *arguments).stderr


@pytest.mark.only_in_all
def test_a_query_of_a_table_with_columns_behind_a_collection_is_waited_for(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    tagged = "stores:informix.tagged"
    server.create_table(tagged, "id integer, tags set(integer not null), last varchar(9,0)")
    of_tagged = {"table": "informix.tagged", "unsupportedColumns": "omit-following"}
    stopped_query(served, tmp_path, **of_tagged)
    with server.transaction() as transaction:
        transaction.insert(tagged, {"id": 1})
    arguments = ("release", "informix.tagged", checkpoint_option(tmp_path), "--yes")
    line = refusal(run(listening, *arguments))
    assert "1 transaction committed (1 row of stores:informix.tagged)" in line
