"""The same faults through `OdbcTransport` and a C driver: a driver tells of them in its own words."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from harness.capture.followed import account, followed, stores_behind_proxy
from harness.servers.fault_proxy import Fault
from harness.servers.stores import Workload
from informix_capture_client.errors import ServerRefused
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow  # processes of their own

TRANSACTIONS = 60


@pytest.fixture
def over_odbc() -> Iterator[dict[str, str]]:
    before = os.environ.pop("INFORMIXDIR", None)
    yield {"transport": "odbc", "driver": str(build_drivers().narrow)}
    os.environ.pop("INFORMIXDIR", None)
    if before is not None:
        os.environ["INFORMIXDIR"] = before


@pytest.mark.fault(
    fault="over ODBC: connection reset or closed within an answer",
    outcome="reconnects; rows as committed, once, in order",
)
@pytest.mark.parametrize("fault", [Fault(reset_after=700), Fault(cut_after=701)], ids=["reset", "cut"])
@pytest.mark.only_in_all
def test_a_connection_lost_under_a_driver_is_opened_again(
    over_odbc: dict[str, str], fault: Fault
) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, **over_odbc) as stream:
        workload = Workload(stores.server, seed=40)
        stores.proxy.disturb(fault)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)
        assert stream.figure("reconnects") >= 1


@pytest.mark.fault(
    fault="over ODBC: half-open connection",
    outcome="the driver's receive timeout ends it; reconnects; rows as committed",
)
@pytest.mark.only_in_all
def test_a_half_open_connection_under_a_driver_is_found_out(over_odbc: dict[str, str]) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, **over_odbc) as stream:
        workload = Workload(stores.server, seed=41)
        stores.proxy.disturb(Fault(freeze_after=500))
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


@pytest.mark.fault(
    fault="over ODBC: the server restarts",
    outcome="reconnects; rows as committed, once, in order",
)
@pytest.mark.only_in_all
def test_a_server_restart_under_a_driver_is_lived_through(over_odbc: dict[str, str]) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, **over_odbc) as stream:
        workload = Workload(stores.server, seed=42)
        workload.run(TRANSACTIONS)
        stores.listening.go_down()
        stores.listening.come_up()
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


@pytest.mark.fault(
    fault="over ODBC: reads of no bytes, then an ERROR record",
    outcome="IFXCDC-0005 with the symbolic name, after all rows before it",
)
def test_an_error_record_under_a_driver_comes_after_the_rows(over_odbc: dict[str, str]) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port, **over_odbc) as stream:
        workload = Workload(stores.server, seed=43)
        stores.server.answer_empty(None, 20)
        workload.run(TRANSACTIONS)
        stream.upto(workload.committed[-1].commit)
        stores.server.inject_error_record(None, 1, "CDC_E_INTERNAL")
        error = stream.failure()
        assert stream.delivered == account(workload)
    assert isinstance(error, ServerRefused)
    assert "CDC_E_INTERNAL" in str(error)
