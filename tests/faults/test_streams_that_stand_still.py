"""A stream that stands still or misses changes although every read is answered: the watch finds out."""

from __future__ import annotations

import pytest

from harness.capture.driving import insert
from harness.capture.followed import account, followed, stores_behind_proxy
from harness.servers.stores import ORDERS, Workload
from informix_capture_client.errors import DataLoss, ServerRefused
from informix_cdc.capture import run as capture_run
from informix_cdc.capture.liveness import Liveness

TRANSACTIONS = 60
STALLED_SECONDS = 2.0  # the option's least is 10: nobody has that much time in a test


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(**given: object) -> Liveness:
        return Liveness(**{**given, "stalled_seconds": STALLED_SECONDS})  # type: ignore[arg-type]

    monkeypatch.setattr(capture_run, "Liveness", impatient)
    monkeypatch.setattr("informix_cdc.capture.server_watch.INTERVAL_SECONDS", 0.3)


@pytest.mark.fault(
    fault="a stalled session: TIMEOUT records of one number while the log moves on; a new one reads on",
    outcome="the session is opened once more; rows as committed, once, in order",
)
def test_a_stall_that_a_new_session_cures_loses_nothing() -> None:
    with stores_behind_proxy(log_pages=8) as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=30)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        stores.server.stall_session(None)
        while stream.figure("stalls") == 0:
            workload.run(3)
            stream.look()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") == 1


@pytest.mark.fault(
    fault="a stall that a new session does not cure, option stalled=fail",
    outcome="IFXCDC-0005 with the stream's and the log's position, after the rows before it",
)
def test_a_stall_that_stays_ends_the_query_if_told_so() -> None:
    with (
        stores_behind_proxy(log_pages=8) as stores,
        followed(stores.proxy.port, stalled="fail") as stream,
    ):
        workload = Workload(stores.server, seed=31)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        before = account(workload)
        stores.server.silence(True)
        error = stream.failure(lambda: workload.run(3))
        assert stream.delivered == before
    assert isinstance(error, ServerRefused)
    assert str(error).startswith(f"IFXCDC-0005: only TIMEOUT records came for {STALLED_SECONDS:.0f} s")
    assert "the server's log has moved from" in str(error)


@pytest.mark.fault(
    fault="full row logging switched off by force while the query runs",
    outcome="IFXCDC-0006 at the next look (every 15 s), after the rows that were logged",
)
def test_row_logging_switched_off_in_mid_run_is_data_loss() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=32)
        workload.run(TRANSACTIONS)
        before = account(workload)
        stores.server.set_full_row_logging(ORDERS, False)
        workload.run(TRANSACTIONS)
        error = stream.failure()
        assert stream.delivered == before
    assert isinstance(error, DataLoss)
    assert str(error).startswith(
        "IFXCDC-0006: full row logging of stores:informix.orders was switched off after 1:"
    )
    assert "new checkpoint" in str(error)


@pytest.mark.fault(
    fault="full row logging switched off by force and on again between two looks",
    outcome="NOT SEEN: what changed in between is not in the log, and nothing in the stream says so. A"
    " server refuses this while the table is captured (-19816)",
)
def test_row_logging_off_and_on_between_two_looks_cannot_be_seen() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        with stores.server.log.changed:  # the watch cannot look in between
            stores.server.set_full_row_logging(ORDERS, False)
            insert(stores.server, 1)
            stores.server.set_full_row_logging(ORDERS, True)
        stream.upto(insert(stores.server, 2))
        assert [[order[0] for _, order in changes] for _, changes in stream.delivered] == [[2]]
