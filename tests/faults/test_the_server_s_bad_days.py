"""The server on its bad days: it restarts, kills sessions, wraps its log, stalls, or says nothing."""

from __future__ import annotations

import re
import threading
import time

import pytest

from harness.capture.driving import insert
from harness.capture.followed import account, followed, in_background, stores_behind_proxy
from harness.capture.told import told
from harness.servers.fault_proxy import Fault
from harness.servers.stores import (
    CUSTOMERS,
    DATABASE,
    ORDER_COLUMNS,
    ORDERS,
    Workload,
    order_row,
)
from informix_capture_client.errors import DataLoss, Gap, ServerRefused
from informix_emulator import EmulatedServer

TRANSACTIONS = 60


@pytest.mark.slow
@pytest.mark.fault(
    fault="the server restarts: sessions gone, open transactions rolled back, port closed for a while",
    outcome="reconnects; rows as committed, once, in order; what was rolled back never appears",
)
def test_a_server_restart_is_lived_through() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=10)
        workload.run(TRANSACTIONS)
        open_over_it = stores.server.begin()
        open_over_it.insert(ORDERS, order_row((999, 1, "never committed", None)))
        stream.step()
        stores.listening.go_down()
        time.sleep(0.5)
        stores.listening.come_up()
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 1


@pytest.mark.fault(
    fault="the captured database is made anew in another code set while the server is down",
    outcome="the locale is asked anew; IFXCDC-0006, as the positions are of the former database",
)
def test_a_database_made_anew_in_another_code_set_is_another_source() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        insert(stores.server, 1)
        stream.step()
        stores.listening.go_down()
        for table in (ORDERS, CUSTOMERS):
            stores.server.drop_table(table)
        del stores.server.databases[DATABASE]
        stores.server.create_database(DATABASE, locale="en_US.8859-1")
        stores.server.create_table(ORDERS, ORDER_COLUMNS)
        stores.listening.come_up()
        failure = stream.failure()
    assert isinstance(failure, DataLoss)
    assert failure.gap is Gap.OTHER_SOURCE


@pytest.mark.slow
@pytest.mark.fault(
    fault="log switches under load, every few transactions",
    outcome="rows as committed, once, in order; sequence numbers go on in the next log",
)
@pytest.mark.only_in_all
def test_log_switches_under_load_change_nothing() -> None:
    with (
        stores_behind_proxy(log_pages=2, log_count=1000) as stores,
        followed(stores.proxy.port) as stream,
    ):
        workload = Workload(stores.server, seed=11)
        first = stores.server.position() >> 32
        writer = in_background(workload, 300)
        while writer.is_alive():
            stream.step()
        writer.join()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert (stores.server.position() >> 32) - first > 10


@pytest.mark.slow
@pytest.mark.fault(
    fault="the log wraps while nothing captured changes, with and without foreign transactions shown",
    outcome="the restart position moves on; a restart of the query then loses nothing",
)
@pytest.mark.parametrize("shown", [True, False], ids=["shown", "hidden"])
@pytest.mark.only_in_all
def test_a_log_wrap_behind_a_quiet_table_loses_nothing(
    shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.reading.next_offset.RESTART_PUBLICATION_SECONDS", 0.0)
    with stores_behind_proxy(log_pages=16, log_count=4, foreign_transactions=shown) as stores:
        with followed(stores.proxy.port) as stream:
            for _ in range(6):
                fill_a_log_with_foreign_changes(stores.server)
                stream.step()
            anchor_log = stores.server.oldest_log()
        assert stream.offset["restart"] >> 32 >= anchor_log > 1
        with followed(stores.proxy.port, stream) as again:
            again.upto(insert(stores.server, 1))
            assert [change[1][0] for _, changes in again.delivered for change in changes] == [1]


@pytest.mark.slow
@pytest.mark.fault(
    fault="the log is overwritten while the connection is lost",
    outcome="IFXCDC-0006 CDC_E_LSN, with the position and what to do; nothing is skipped",
)
def test_a_log_that_wraps_behind_a_lost_connection_is_data_loss() -> None:
    with (
        stores_behind_proxy(log_pages=2, log_count=3) as stores,
        followed(stores.proxy.port) as stream,
    ):
        stream.upto(insert(stores.server, 1))
        stores.proxy.refuse()
        stores.proxy.disturb(Fault(reset_after=0))
        insert(stores.server, 2)
        for _ in range(6):
            fill_a_log_with_foreign_changes(stores.server)
        stores.proxy.accept_again()
        error = stream.failure()
        assert len(stream.delivered) == 1
    assert isinstance(error, DataLoss)
    assert str(error).startswith("IFXCDC-0006: cdc_activatesess at 1:")
    assert "CDC_E_LSN" in str(error)
    assert "empty the sink's copies" in str(error)


ENDED_SESSIONS = ["CDC_E_INTERRUPT", "CDC_E_MUSTCLOSE"]


@pytest.mark.slow
@pytest.mark.fault(
    fault="an ERROR record: the session was ended on the server (CDC_E_INTERRUPT, CDC_E_MUSTCLOSE)",
    outcome="the session is opened once more, told and counted; rows as committed, once, in order",
)
@pytest.mark.parametrize("name", ENDED_SESSIONS)
def test_a_session_that_was_ended_is_opened_once_more_and_nothing_is_lost(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=14)
        for outages in (1, 2):  # what came in between makes the second one another first one
            workload.run(TRANSACTIONS)
            stores.server.inject_error_record(None, 1, name)
            workload.run(5)
            stream.upto(workload.committed[-1].commit)
            assert stream.delivered == account(workload)
            assert stream.figure("reconnects") == outages
    assert all(name in line["reason"] for line in told(caplog, "connection_lost"))


@pytest.mark.slow
@pytest.mark.fault(
    fault="the session is ended on the server again before the stream has moved on",
    outcome="IFXCDC-0005 with the symbolic name, after all rows before it; a new query goes on",
)
@pytest.mark.parametrize("name", ENDED_SESSIONS)
@pytest.mark.only_in_all
def test_a_session_that_is_ended_again_and_again_ends_the_query(name: str) -> None:
    with stores_behind_proxy() as stores:
        workload = Workload(stores.server, seed=14)
        with followed(stores.proxy.port) as stream:
            workload.run(TRANSACTIONS)
            stream.upto(workload.committed[-1].commit)
            before = account(workload)
            error = stream.failure(lambda: stores.server.inject_error_record(None, 1, name))
            assert stream.delivered == before
            assert stream.figure("reconnects") == 1
        assert isinstance(error, ServerRefused)
        # A session that is ended while it is set up says so in its next call, whichever that is.
        either = rf"IFXCDC-0005: (capture failed: {name}|cdc_\w+ .*failed: CDC_E_MUSTCLOSE) \("
        assert re.match(either, str(error))
        workload.run(5)
        with followed(stores.proxy.port, stream) as again:
            again.upto(workload.committed[-1].commit)
            assert again.delivered == account(workload)


@pytest.mark.slow
@pytest.mark.fault(
    fault="an ERROR record of a session that stays valid, flag 0",
    outcome="IFXCDC-0005 with the symbolic name, after all rows before it; a new query goes on",
)
@pytest.mark.only_in_all
def test_an_error_record_of_a_living_session_ends_the_query_too() -> None:
    ends_with_error_record(flags=0, name="CDC_E_NOMEM")


@pytest.mark.fault(
    fault="an ERROR record with CDC_E_LSN: the log of a slow session is overwritten",
    outcome="IFXCDC-0006: a human decides",
)
def test_an_error_record_that_means_loss_is_loss() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        stores.server.inject_error_record(None, 1, "CDC_E_LSN")
        error = stream.failure()
    assert isinstance(error, DataLoss)
    assert "CDC_E_LSN" in str(error)


@pytest.mark.slow
@pytest.mark.fault(
    fault="TIMEOUT records only, for a while, although rows have been committed",
    outcome="no reconnect, no error; the rows come when the server sends them",
)
@pytest.mark.only_in_all
def test_a_silence_that_ends_is_waited_out() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=12)
        stores.server.silence(True)
        workload.run(TRANSACTIONS)
        threading.Timer(2.5, stores.server.silence, [False]).start()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") == 0


@pytest.mark.slow
@pytest.mark.fault(
    fault="reads that return no bytes",
    outcome="rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_reads_of_no_bytes_are_no_end() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=13)
        stores.server.answer_empty(None, 500)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


def ends_with_error_record(flags: int, name: str) -> None:
    """Let a stream with rows under way meet an ERROR record, then go on with a new query."""
    with stores_behind_proxy() as stores:
        workload = Workload(stores.server, seed=14)
        with followed(stores.proxy.port) as stream:
            workload.run(TRANSACTIONS)
            stream.upto(workload.committed[-1].commit)
            before = account(workload)
            stores.server.inject_error_record(None, flags, name)
            error = stream.failure()
            assert stream.delivered == before
        assert isinstance(error, ServerRefused)
        assert str(error).startswith(f"IFXCDC-0005: capture failed: {name} (")
        workload.run(5)
        with followed(stores.proxy.port, stream) as again:
            again.upto(workload.committed[-1].commit)
            assert again.delivered == account(workload)


def fill_a_log_with_foreign_changes(server: EmulatedServer) -> None:
    """Change a table that nobody captures until the next log has begun and holds something.

    At the very beginning of a log a stream that is shown nothing stands at the end of the one before.
    """
    before = server.position()
    while server.position() >> 32 == before >> 32 or server.position() & 0xFFFFFFFF < 0x100:
        with server.transaction() as transaction:
            transaction.insert(CUSTOMERS, {"customer_num": 1, "name": "foreign", "city": "x"})
