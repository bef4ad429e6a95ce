"""What is known of a mirror's tables, whether it runs or not."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from harness.lake.batches_by_hand import COLUMNS, ORDERS, Mirrored
from harness.lake.rows_of_batches import batch_row
from harness.spark.checkpoints import commit
from informix_cdc.commands.cli import main
from informix_cdc.lake import MirrorSettings, TableInMirror, state_of_mirror
from informix_cdc.options import PASSWORD_VARIABLE

ITEMS = "informix.items"


def orders_of(made: Mirrored) -> TableInMirror:
    (found,) = (each for each in state_of_mirror(made.settings).tables if each.table == ORDERS)
    return found


@pytest.mark.parametrize("merge", ["on-write", "on-read"])
def test_a_table_has_its_rows_and_the_time_of_its_last_change(tmp_path: Path, merge: str) -> None:
    made = Mirrored(tmp_path, merge=merge)
    made.orders(*(("insert", 10 + each, {"id": each, "note": "a"}) for each in range(5)))
    made.orders(("delete", 210, {"id": 3, "note": "a"}), ("insert", 220, {"id": 9, "note": "b"}))
    made.orders(("delete", 310, {"id": 2, "note": "a"}))
    found = orders_of(made)
    assert (found.state, found.rows, found.differences, found.verified_at) == ("mirrored", 4, 0, None)
    assert found.changed_at is not None
    assert abs(datetime.now(UTC) - found.changed_at) < timedelta(minutes=1)
    DeltaTable(f"{made.settings.into}/orders").optimize.compact()
    DeltaTable(f"{made.settings.into}/orders").create_checkpoint()
    assert orders_of(made) == found  # no change of its rows
    made.mirror.close()


def test_stopped_tables_come_first_and_are_an_exit_code(tmp_path: Path) -> None:
    made = Mirrored(tmp_path)
    made.batch(
        batch_row(ORDERS, COLUMNS, [("insert", 10, {"id": 1, "note": "a"})]),
        batch_row(ITEMS, COLUMNS, [("insert", 10, {"id": 1, "note": "a"})]),
        tables=(ORDERS, ITEMS),
    )
    file = tmp_path / "m.toml"
    file.write_text(
        f'into = "{made.settings.into}"\ncheckpoint = "{made.settings.checkpoint}"\n[source]\n'
        'host = "127.0.0.1"\nport = 1\nserver = "s"\ndatabase = "stores"\ntable = "informix.*"\n'
    )
    result = status(file)
    assert result.exit_code == 1  # no server answers, and the tables are shown all the same
    assert "2 tables: 2 mirrored" in result.output
    assert "Mirror: not running" in result.output
    assert "IFXCDC-0002" in result.output
    commit(tmp_path / "checkpoint", 1)
    others = batch_row(ORDERS, {"id": pa.bool_()}, [("insert", 210, {"id": True})])
    made.batch(others, tables=(ORDERS, ITEMS))
    result = status(file)
    assert result.exit_code == 3, result.output
    lines = [line.split()[:3] for line in result.output.splitlines()]
    names = ["informix.orders", "informix.items"]
    assert [line for line in lines if line and line[0] in names] == [
        ["informix.orders", "stopped", "1"],
        ["informix.items", "mirrored", "1"],
    ]
    shown = json.loads(status(file, "--json").output)["mirror"]
    assert [each["state"] for each in shown["tables"]] == ["mirrored", "stopped"]
    assert "changed" in shown["tables"][1]["reason"]
    made.mirror.close()


def status(file: Path, *flags: str) -> Result:
    environment = {PASSWORD_VARIABLE: "x", "COLUMNS": "200"}
    return CliRunner().invoke(main, ["status", str(file), *flags], env=environment)


def test_a_mirror_that_has_not_begun_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not the checkpoint of a mirror that has begun"):
        state_of_mirror(MirrorSettings(into=str(tmp_path / "l"), checkpoint=str(tmp_path / "c")))


def test_a_mirror_that_reads_a_capture_asks_no_server(tmp_path: Path) -> None:
    made = Mirrored(tmp_path)
    made.orders(("insert", 10, {"id": 1, "note": "a"}))
    made.mirror.close()
    file = tmp_path / "m.toml"
    file.write_text(
        f'into = "{made.settings.into}"\ncheckpoint = "{made.settings.checkpoint}"\n[source]\n'
        f'captureat = "{tmp_path}/capture"\nreader = "lake"\n'
    )
    result = status(file)
    assert result.exit_code == 0, result.output
    assert "1 table: 1 mirrored" in result.output
    assert "It reads a capture" in result.output
