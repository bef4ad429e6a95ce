"""A process dies while a table joins that it has found itself: the next one matches it at its start."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from connector.table_changes.discovering import discovering, until_commit, until_tables
from connector.table_changes.test_discovery import ALL, BEGUN, LATE, committed
from harness.capture.activations import noted_activations
from harness.capture.driving import Offset, anchor_of
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import ORDERS, listening_stores, quick_clock

pytestmark = pytest.mark.slow  # processes of their own


@pytest.mark.parametrize("is_kept", rest_in_all([True, False]), ids=["spool kept", "spool lost"])
@pytest.mark.parametrize("failpoint", rest_in_all(["joining.before_switch", "joining.after_switch"]))
@pytest.mark.fault(
    fault="the process dies while a table joins that was created while the query ran",
    outcome="the next one goes on: no row is lost, and none comes twice",
)
@pytest.mark.only_in_all
def test_a_death_while_a_table_joins_in_mid_run_loses_and_repeats_nothing(
    failpoint: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"spoolPath": str(tmp_path)} if is_kept else {}
    with listening_stores(clock=quick_clock()) as (server, listening):
        with discovering(listening.port, **kept) as made:
            rows, start = until_commit(made, anchor_of(made), committed(server, 1, ORDERS))
        activations = noted_activations(monkeypatch)

        def create() -> None:
            wait_until(lambda: activations)  # the other process runs its session of orders
            server.create_table(LATE, "id integer")

        creating = threading.Thread(target=create)
        creating.start()
        die_at(failpoint, join, listening.port, start, kept)
        creating.join()
        assert [*start["tables"]] == BEGUN
        committed(server, 2, ORDERS)
        with discovering(listening.port, **kept) as made:
            more, end = until_tables(made, start, *ALL)
            rows += more
            more, end = until_commit(made, end, committed(server, 3, ORDERS, LATE))
            rows += more
    orders = [number for table, number in rows if table == "orders"]
    late = [number for table, number in rows if table == "ord_late"]
    assert (orders, late) == ([1, 2, 3], [3])


def join(port: int, start: Offset, kept: dict[str, str]) -> None:
    """Take batches until the table that is created meanwhile has joined."""
    with discovering(port, **kept) as made:
        until_tables(made, start, *ALL)
