"""Our stream in a Spark of its own: python -m lab.rivals.our_stream '{"options": {...}, "sink": ...}'.

The sink writes one file a batch, named by the batch's number, or counts rows without looking at them;
with `stores` Spark writes Parquet, and no row comes to the driver.
`written` beside the files has a line for each batch: number, rows, when it was written, and how long
ago its rows were committed, in milliseconds. The end of the input is an orderly stop.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lab.rivals.generator import CAPTURED

_SHOWN = ("stamp", "written_at")


def main() -> None:
    plan = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = builder.config(map=plan.get("spark", {})).getOrCreate()
    frame = spark.readStream.format("informix-cdc").options(**plan["options"]).load()
    writer = frame.writeStream.option("checkpointLocation", plan["checkpoint"])
    if "sink" in plan:
        sink = Path(plan["sink"])
        sink.mkdir(exist_ok=True)
        write = _store if plan.get("stores") else _write
        writer = writer.foreachBatch(lambda batch, number: write(sink, batch, number))
    else:
        writer = writer.format("noop")
    query = writer.start()
    _say("STARTED")
    Thread(target=_stop_at_the_end, args=(query,), daemon=True).start()
    if "rows" in plan:
        _count(query, plan["rows"])
    try:
        query.awaitTermination()
    except Exception as reason:  # noqa: BLE001 - whatever ends the query is what is measured
        _say(f"DONE {str(reason).splitlines()[0]}")


def _write(sink: Path, batch: DataFrame, number: int) -> None:
    rows = [_row(row) for row in batch.toArrow().to_pylist()]
    draft = sink / f".{number}"
    draft.write_text(json.dumps(rows))
    draft.rename(sink / f"{number}.json")
    now = int(time.time() * 1000)
    written = [row["written_at"] for row in rows if row["written_at"]]
    with (sink / "written").open("a") as log:
        log.write(f"{number} {len(rows)} {now} {' '.join(str(now - at) for at in written)}\n")


def _store(sink: Path, batch: DataFrame, number: int) -> None:
    folder = sink / f"{number}.parquet"
    batch.write.mode("overwrite").parquet(str(folder))
    rows = sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))
    with (sink / "written").open("a") as log:
        log.write(f"{number} {rows} {int(time.time() * 1000)}\n")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """Return kind, table and the two numbers of one row; each table is a struct of its own."""
    table = next((name for name in CAPTURED if row.get(name)), row["_table"].rpartition(".")[2])
    values = row.get(table) or {}
    return {"kind": row["_change_type"], "table": table, **{name: values.get(name) for name in _SHOWN}}


def _count(query: StreamingQuery, rows: int) -> None:
    """Tell when so many rows have passed, by Spark's own figures."""
    seen: dict[int, int] = {}
    while sum(seen.values()) < rows and query.isActive:
        for progress in query.recentProgress:
            seen[progress.batchId] = progress.numInputRows
        time.sleep(0.05)
    if query.isActive:
        _say("LAST")


def _stop_at_the_end(query: StreamingQuery) -> None:
    sys.stdin.read()
    query.stop()
    os._exit(0)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
