"""The network between us and the server: cut, reset, frozen, slow, refused."""

from __future__ import annotations

import threading

import pytest

from harness.capture.driving import failure_of, reader
from harness.capture.followed import account, followed, in_background, stores_behind_proxy
from harness.runs.tiers import rest_in_all
from harness.servers.fault_proxy import Fault, on_captures
from harness.servers.stores import Workload
from informix_capture_client.errors import AccessRefused

pytestmark = pytest.mark.slow

TRANSACTIONS = 60
# Bytes down a capture connection: in its introduction, in the answers to its questions, in its reads.
PLACES = (3, 3_100, 6_000)
# Of the answer to a read (97, 0, how many bytes, the first chunk): then the record's own first word.
IN_PAYLOAD_SIZE = 2 + 2 + 4 + 2 + 4 + 1


@pytest.mark.fault(
    fault="connection reset (RST) while connecting, asking or reading",
    outcome="reconnects; rows as committed, once, in order",
)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.only_in_all
def test_a_reset_connection_is_opened_again(place: int) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        stores.proxy.plan = on_captures({2: Fault(reset_after=place)})
        stores.proxy.disturb(Fault(reset_after=0))
        workload = Workload(stores.server, seed=place)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 1


@pytest.mark.fault(
    fault="connection closed after a number of bytes, three times in a row",
    outcome="reconnects; rows as committed, once, in order",
    seeds="4 places",
)
@pytest.mark.parametrize("place", rest_in_all(range(3_300, 6_300, 750)))
def test_a_connection_that_is_cut_is_opened_again(place: int) -> None:
    cuts = on_captures({n: Fault(cut_after=place + 7 * n) for n in (2, 3)})
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        stores.proxy.plan = cuts
        workload = Workload(stores.server, seed=place)
        writer = in_background(workload, TRANSACTIONS)
        stores.proxy.disturb(Fault(cut_after=100))
        writer.join()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


@pytest.mark.fault(
    fault="half-open connection: both sockets open, nothing comes any more",
    outcome="taken for dead after three read timeouts and 5 s; reconnects; rows as committed",
)
@pytest.mark.only_in_all
def test_a_half_open_connection_is_found_out() -> None:
    with (
        stores_behind_proxy() as stores,
        followed(stores.proxy.port, connection__read_timeout_seconds=1) as stream,
    ):
        workload = Workload(stores.server, seed=1)
        stores.proxy.disturb(Fault(freeze_after=500))
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 1


@pytest.mark.fault(
    fault="slow drip: 7 bytes at a time; every piece later than it should be",
    outcome="no reconnect; rows as committed, once, in order",
)
@pytest.mark.parametrize(
    "fault", [Fault(drip=(7, 0.0005)), Fault(delay_seconds=0.03)], ids=["drip", "delay"]
)
@pytest.mark.only_in_all
def test_a_slow_connection_is_not_a_lost_one(fault: Fault) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        stores.proxy.disturb(fault)
        workload = Workload(stores.server, seed=2)
        workload.run(20)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") == 0


@pytest.mark.fault(
    fault="connections refused for a while after one was lost",
    outcome="tries again, with growing pauses; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_server_that_refuses_for_a_while_is_waited_for() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=3)
        stores.proxy.refuse()
        stores.proxy.disturb(Fault(reset_after=0))
        workload.run(TRANSACTIONS)
        threading.Timer(1.0, stores.proxy.accept_again).start()
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnectAttempts") >= 2
        assert stream.figure("reconnects") == 1


@pytest.mark.fault(
    fault="nobody listens when the query starts",
    outcome="IFXCDC-0002 at once, naming address and remedy; no reconnecting",
)
def test_a_first_connection_that_is_refused_is_a_mistake_and_no_fault() -> None:
    with stores_behind_proxy() as stores:
        stores.proxy.refuse()
        with reader(stores.proxy.port) as made:
            error = failure_of(
                lambda: made.latestOffset(made.initialOffset(), made.getDefaultReadLimit())
            )
    assert isinstance(error, AccessRefused)
    assert f"No database server answers at 127.0.0.1:{stores.proxy.port}" in str(error)


@pytest.mark.fault(
    fault="a bit is flipped on its way, in a record's size",
    outcome="IFXCDC-0007 after the rows before it; a new query delivers the rest: the log is sound",
)
@pytest.mark.only_in_all
def test_a_flip_on_the_way_ends_the_query_and_a_new_one_goes_on() -> None:
    with stores_behind_proxy() as stores:
        workload = Workload(stores.server, seed=4)
        with followed(stores.proxy.port) as stream:
            workload.run(5)
            stream.upto(workload.committed[-1].commit)
            before = account(workload)
            stores.proxy.disturb(Fault(flip=(IN_PAYLOAD_SIZE, 0x10)))
            workload.run(5)
            error = stream.failure()
            assert stream.delivered == before
        assert str(error).startswith("IFXCDC-0007: a record at stream byte")
        with followed(stores.proxy.port, stream) as again:
            again.upto(workload.committed[-1].commit)
            assert again.delivered == account(workload)
