"""A process dies while an altered table comes back: the next one loses nothing and repeats nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.table_changes.altering import Shop
from harness.capture.driving import Offset, drained, reader
from harness.runs.deaths import die_at
from harness.runs.tiers import rest_in_all
from harness.servers.stores import listening_stores
from informix_cdc.commands import row_logging

pytestmark = pytest.mark.slow  # processes of their own
FAILPOINTS = [
    "returning.before_switch",
    "replace_file.before_rename",
    "replace_file.after_rename",
    "returning.after_switch",
]


@pytest.mark.parametrize("is_kept", rest_in_all([True, False]), ids=["spool kept", "spool lost"])
@pytest.mark.parametrize("failpoint", rest_in_all(FAILPOINTS))
@pytest.mark.fault(
    fault="the process dies while an altered table comes back into its stream",
    outcome="the next one goes on: no row is lost, and none comes twice",
)
def test_a_death_while_a_table_comes_back_loses_and_repeats_nothing(
    failpoint: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    with listening_stores() as served:
        shop = Shop(served, tmp_path)
        kept = {"spoolPath": str(tmp_path / "spool")} if is_kept else {}
        rows = shop.begin(**kept)
        shop.committed(("customers", 2))
        shop.procedure()
        shop.committed(("orders", 3), ("customers", 3))
        options = {"table": shop.table, "schemaChange": str(shop.receipt), **kept}
        die_at(failpoint, come_back, served[1].port, shop.offsets[-1], options)
        shop.committed(("orders", 4))
        with shop.query(schemaChange=str(shop.receipt), **kept) as made:
            more, end = shop.until_back(made, shop.offsets[-1])
            rest, _ = drained(made, end, shop.committed(("customers", 5)))
        assert shop.delivered(rows + more + rest) == shop.expected


def come_back(port: int, start: Offset, options: dict[str, str]) -> None:
    """Take batches until the table is back."""
    with reader(port, **options) as made:
        Shop.until_back(made, start)
