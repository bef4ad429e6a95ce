"""A process dies while an altered table comes back: the next one loses nothing and repeats nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.joining.altering import Shop
from harness.capture.driving import drained
from harness.servers.stores import listening_stores
from informix_capture_client.failpoints import EXIT_CODE, VARIABLE
from informix_cdc.operations import row_logging

PROCESS = """
import json, sys
from pathlib import Path
from connector.joining.altering import Shop
from harness.capture.driving import reader
port, folder, start, options = int(sys.argv[1]), Path(sys.argv[2]), *map(json.loads, sys.argv[3:])
with reader(port, **options) as made:
    Shop((None, None), folder).until_back(made, start)
"""
FAILPOINTS = [
    "returning.before_switch",
    "replace_file.before_rename",
    "replace_file.after_rename",
    "returning.after_switch",
]


@pytest.mark.parametrize("is_kept", [True, False], ids=["spool kept", "spool lost"])
@pytest.mark.parametrize("failpoint", FAILPOINTS)
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
        die(shop, options, failpoint)
        shop.committed(("orders", 4))
        with shop.query(schemaChange=str(shop.receipt), **kept) as made:
            more, end = shop.until_back(made, shop.offsets[-1])
            rest, _ = drained(made, end, shop.committed(("customers", 5)))
        assert shop.delivered(rows + more + rest) == shop.expected


def die(shop: Shop, options: dict[str, str], failpoint: str) -> None:
    words = [str(shop.served[1].port), str(shop.folder), json.dumps(shop.offsets[-1])]
    ended = subprocess.run(
        [sys.executable, "-c", PROCESS, *words, json.dumps(options)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, VARIABLE: failpoint},
        check=False,
    )
    assert ended.returncode == EXIT_CODE
