"""A process dies while a table joins: the next one loses nothing and repeats nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.capture.test_joining import LATE, THREE, begun, committed, of, until_joined
from harness.capture.driving import Offset, drained, reader
from harness.runs.deaths import die_at
from harness.runs.tiers import rest_in_all
from harness.servers.stores import CUSTOMERS, ORDERS, listening_stores

pytestmark = pytest.mark.slow  # processes of their own
FAILPOINTS = [
    "joining.before_switch",
    "replace_file.before_rename",
    "replace_file.after_rename",
    "joining.after_switch",
]


@pytest.mark.parametrize("is_kept", rest_in_all([True, False]), ids=["spool kept", "spool lost"])
@pytest.mark.parametrize("failpoint", rest_in_all(FAILPOINTS))
@pytest.mark.fault(
    fault="the process dies while a table joins a stream, before and after the switch",
    outcome="the next one goes on: no row is lost, and none comes twice",
)
def test_a_death_while_a_table_joins_loses_and_repeats_nothing(
    failpoint: str, is_kept: bool, tmp_path: Path
) -> None:
    with listening_stores() as served:
        server, listening = served
        server.create_table(LATE, "id integer")
        kept = {"spoolPath": str(tmp_path)} if is_kept else {}
        start = begun(served, **kept)
        die_at(failpoint, join, listening.port, start, kept)
        committed(server, 2, ORDERS, CUSTOMERS)
        with reader(listening.port, table=THREE, **kept) as made:
            rows, end = until_joined(made, start)
            last = committed(server, 3, ORDERS, CUSTOMERS, LATE)
            more, end = drained(made, end, last)
        rows += more
        assert of(rows, "orders", "customers") == [
            *[("orders", 2), ("customers", 2)],
            *[("orders", 3), ("customers", 3)],
        ]
        assert of(rows, "late") == [("late", 3)]
        assert list(end["tables"]) == sorted(end["tables"])


def join(port: int, start: Offset, kept: dict[str, str]) -> None:
    """Take batches until the table has joined."""
    with reader(port, table=THREE, **kept) as made:
        until_joined(made, start)
