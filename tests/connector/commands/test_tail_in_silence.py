"""`informix-cdc tail` when its connection is lost, or silent."""

from __future__ import annotations

import json
import os
import signal

import pytest

from connector.commands.conftest import connection_arguments, start
from harness.runs.patience import patiently
from harness.servers.fault_proxy import Fault, FaultProxy
from harness.servers.stores import ORDERS, PASSWORD, listening_stores
from informix_cdc.options import PASSWORD_VARIABLE

pytestmark = pytest.mark.slow


def test_a_lost_connection_is_reported_and_opened_again() -> None:
    """Only --max-reconnect-seconds bounds it."""
    with listening_stores() as (server, listening), FaultProxy(listening.port) as proxy:
        server.set_full_row_logging(ORDERS, on=True)
        process = start(
            "tail",
            *connection_arguments(proxy),  # type: ignore[arg-type]
            *("--table=informix.orders", "--limit=1", "--format=json"),
            environment={PASSWORD_VARIABLE: PASSWORD},
        )
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Following")
            proxy.disturb(Fault(cut_after=0))
            assert "connection_lost" in process.stderr.readline()
            with server.transaction() as transaction:
                transaction.insert(ORDERS, {"order_num": 7})
            output, errors = process.communicate(timeout=patiently(20))
        finally:
            process.kill()
    assert json.loads(output)["row"]["order_num"] == 7
    assert errors.splitlines()[-1].startswith("1 row of 1 transaction")


@pytest.mark.only_in_all
def test_ctrl_c_ends_it_while_a_read_does_not_return() -> None:
    with listening_stores() as (server, listening), FaultProxy(listening.port) as proxy:
        server.set_full_row_logging(ORDERS, on=True)
        process = start(
            "tail",
            *connection_arguments(proxy),
            "--table=informix.orders",
            environment={PASSWORD_VARIABLE: PASSWORD},
        )  # type: ignore[arg-type]
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Following")
            proxy.disturb(Fault(freeze_after=0))
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=patiently(20))
        finally:
            process.kill()
    assert process.returncode == 0
    assert errors.splitlines()[-1].startswith("0 rows of 0 transactions")
