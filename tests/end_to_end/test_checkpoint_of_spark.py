"""A checkpoint that Spark itself has written, read by `informix-cdc status --offsets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.servers.stores import (
    ORDERS,
    listening_stores,
    order_row,
    source_options,
)
from harness.spark.collected import Collected
from informix_capture_client.positions import show
from informix_cdc.commands.cli import main

pytestmark = pytest.mark.spark


def test_status_reads_a_checkpoint_as_spark_writes_it(
    collect: Callable[..., Collected], tmp_path: Path
) -> None:
    with listening_stores() as (server, listening):
        streamed = collect(source_options(listening.port)).start()
        streamed.wait_for_start()
        with server.transaction() as change:
            change.insert(ORDERS, order_row((1, 1, "note", None)))
        streamed.wait_until(lambda: bool(streamed.rows))
        commit = streamed.rows[-1]["_commit_version"]
        streamed.wait_until(lambda: (tmp_path / "checkpoint" / "commits" / "1").exists())
        streamed.stop()
    arguments = ["status", "--offsets", f"--checkpoint={tmp_path / 'checkpoint'}", "--json"]
    result = CliRunner().invoke(main, arguments)
    (source,) = json.loads(result.output)["checkpoints"]
    assert source["offsets"]["committed"]["commit"] == show(commit)
