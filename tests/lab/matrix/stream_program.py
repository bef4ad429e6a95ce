"""One stream on whatever Spark runs this: a failing batch, restarts, limits, AvailableNow.

It needs the installed product and PySpark, no test tools; the account of the workload is the oracle.
The last line it prints is JSON: which versions ran, and how AvailableNow went.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from harness.runs.patience import patiently
from harness.servers.stores import Workload, listening_stores, source_options
from harness.spark.starting import is_late_worker
from informix_cdc.host import jar_path

MOST_CHANGES, MOST_SECONDS, MOST_LATE_STARTS = 200, patiently(45), 5
COLUMNS = ("order_num", "customer_num", "note", "amount")


class Sink:
    """Keeps each batch by its number; one of them fails once it has been written."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[object, ...]]] = {}
        self.fails_in: int | None = None

    def take(self, batch: DataFrame, number: int) -> None:
        rows = batch.select("_commit_version", "_change_ordinal", "_change_type", *COLUMNS).collect()
        content = sorted(tuple(row) for row in rows)
        if number in self.batches:
            assert content == self.batches[number], f"batch {number} changed when it ran again"
        self.batches[number] = content
        if number == self.fails_in:
            self.fails_in = None
            raise RuntimeError("the sink fails, as told")

    @property
    def changes(self) -> list[tuple[object, ...]]:
        """What arrived, in the order of batches and of the log, without the keys."""
        return [row[2:] for number in sorted(self.batches) for row in self.batches[number]]

    def largest(self) -> int:
        """Return the most changes of any batch with several transactions."""
        several = [rows for rows in self.batches.values() if len({row[0] for row in rows}) > 1]
        return max(map(len, several))


def changes_of(work: Workload) -> list[tuple[object, ...]]:
    """Return what a stream must deliver, from the workload's own account."""
    return [(kind, *order) for done in work.committed for kind, order in done.changes]


class Stream:
    """A query over one checkpoint, run again and again."""

    def __init__(self, spark: SparkSession, port: int, folder: Path) -> None:
        self.sink = Sink()
        self._spark = spark
        self._port = port
        self._checkpoint = str(folder / "checkpoint")

    def start(self, *, available_now: bool = False, **limits: str) -> StreamingQuery:
        limits = limits or {"maxRowsPerTrigger": str(MOST_CHANGES)}
        source = self._spark.readStream.format("informix-cdc")
        rows = source.options(**source_options(self._port, **limits)).load()
        assert [name for name in rows.columns if name in COLUMNS] == list(COLUMNS)
        writer = rows.writeStream.option("checkpointLocation", self._checkpoint)
        writer = writer.foreachBatch(self.sink.take)
        when = {"availableNow": True} if available_now else {"processingTime": "100 milliseconds"}
        return writer.trigger(**when).start()

    def until_all_is_there(self, work: Workload) -> None:
        """Run in ticks until everything that was committed has arrived."""
        query, ends_at = self.start(), time.monotonic() + MOST_SECONDS
        while len(self.sink.changes) < len(changes_of(work)):
            if not query.isActive:
                assert is_late_worker(query.exception()), query.exception()
                query = self.start()
            assert time.monotonic() < ends_at, "not everything arrived"
            time.sleep(0.1)
        query.stop()

    def now(self, **limits: str) -> int:
        """Run once with Trigger.AvailableNow; return how many batches had rows."""
        before = set(self.sink.batches)
        _, end = run_to_its_end(lambda: self.start(available_now=True, **limits))
        assert not end, end
        return sum(bool(rows) for number, rows in self.sink.batches.items() if number not in before)


def run_to_its_end(start: Callable[[], StreamingQuery]) -> tuple[StreamingQuery, str]:
    """Start a query, again where a busy machine did not let it begin; return it, and how it ended."""
    for _ in range(MOST_LATE_STARTS):
        query = start()
        if not is_late_worker(end := end_of(query)):
            break
    return query, end


def end_of(query: StreamingQuery) -> str:
    """Wait for the end of a query; return why it failed, and nothing if it did not."""
    try:
        has_ended = query.awaitTermination(MOST_SECONDS)
    except StreamingQueryException as failure:
        return str(failure)
    return "" if has_ended else "it still runs"


def is_read_in_columns(query: StreamingQuery) -> bool:
    """Tell whether the rows of a query's last batch came from the reader in the JVM."""
    plan = query._jsq.explainInternal(False)  # type: ignore[attr-defined]
    return "ColumnarToRow" in plan


def fail_in_batch(number: int, stream: Stream) -> StreamingQuery:
    """Run a stream until its sink fails in a batch; return the query, which has ended."""
    stream.sink.fails_in = number
    query, end = run_to_its_end(stream.start)
    assert stream.sink.fails_in is None, f"the batch that was to fail did not run: {end}"
    return query


def main() -> None:
    jar = str(jar_path())
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.jars": jar}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    facts: dict[str, object] = {
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "java": spark._jvm.java.lang.System.getProperty("java.version"),
        "pyarrow": pyarrow.__version__,
    }
    with listening_stores() as (server, listening), tempfile.TemporaryDirectory() as folder:
        work = Workload(server, seed=7)
        stream = Stream(spark, listening.port, Path(folder))
        stream.now()  # notes where the stream begins
        work.run(transactions=150)
        failed = fail_in_batch(2, stream)
        stream.until_all_is_there(work)
        assert stream.sink.largest() <= MOST_CHANGES
        facts["reader"] = "JVM" if is_read_in_columns(failed) else "Python"
        spark.conf.set("spark.informix-cdc.readInJvm", "false")  # on with the same checkpoint
        work.run(transactions=100)
        facts["now_batches"], facts["now_is_complete"] = stream.now(), False
        facts["now_is_complete"] = stream.sink.changes == changes_of(work)
        work.run(transactions=100)
        none = {"maxRowsPerTrigger": "0", "maxBytesPerTrigger": "0"}
        facts["now_batches_without_limits"] = stream.now(**none)
        assert stream.sink.changes == changes_of(work), "rows are lost, repeated or out of order"
        facts["rows"] = len(stream.sink.changes)
    spark.stop()
    sys.stdout.write(f"\n{json.dumps(facts)}\n")


if __name__ == "__main__":
    main()
