"""A query of Spark with fixed columns ends where a table is altered, and goes on with the new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from connector.commands.commands import run
from harness.capture.copied_tables import LINES, OTHER, filled
from harness.capture.driving import foreign_traffic
from harness.capture.snapshots import serving_tables
from harness.runs.patience import patiently, wait_until
from harness.servers.stores import source_options
from informix_cdc.commands import row_logging

pytestmark = pytest.mark.spark


def test_a_query_ends_with_its_columns_and_goes_on_in_its_checkpoint(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_logging, "PAUSE_SECONDS", 0)
    checkpoint, table = tmp_path / "checkpoint", "informix.lines,informix.other"
    with serving_tables(LINES, OTHER) as (server, listening, writer):
        filled(server, "lines", "other")
        options = source_options(
            listening.port,
            table=table,
            spoolPath=str(checkpoint / "spool"),
            truncate="emit",
            initialSnapshot="all",
        )

        def started() -> Any:
            rows = spark.readStream.format("informix-cdc").options(**options).load()
            files = rows.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
            return files.option("checkpointLocation", str(checkpoint)).start()

        def delivered() -> list[dict[str, Any]]:
            rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "rows")).collect()
            return [row.asDict(recursive=True) for row in rows]

        query = started()
        query.processAllAvailable()
        statement = "ALTER TABLE informix.lines ADD (size INTEGER DEFAULT 7)"
        done = run(listening, "alter", statement, f"--checkpoint={checkpoint}", "--yes")
        assert done.exit_code == 0, done.output
        with pytest.raises(StreamingQueryException, match="IFXCDC-0009: "):
            query.awaitTermination(patiently(60))
        query = started()
        writer.rows("INSERT INTO informix.lines VALUES (77, 'later', 8)")
        try:
            with foreign_traffic(server):  # a quiet server keeps a table that joins waiting
                wait_until(lambda: any((row["lines"] or {}).get("id") == 77 for row in delivered()), 60)
        finally:
            query.stop()
    sizes = [row["lines"].get("size") for row in delivered() if row["lines"]]
    assert sorted(sizes, key=lambda size: size or 0) == [None] * 30 + [7] * 30 + [8]
