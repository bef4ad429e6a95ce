"""A quiet Spark for the demo: no log lines on the terminal, nothing inherited, nothing left behind.

Rule: Spark's output goes to a file in the demo's folder; its last lines are printed if Spark fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from informix_capture_client.errors import error_in
from informix_cdc.host import QUIET_LOG

# Settings of another Spark installation would make this one fail in unexpected ways.
_FOREIGN = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE")
_LOG_FILE = "spark.log"
_LAST_WORDS = 400
_STARTS = 3
# docs/latency.md recommends these two: 49 ms instead of 150 for a small micro-batch.
LOW_LATENCY = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
}
_SETTINGS = {
    **LOW_LATENCY,
    "spark.app.name": "informix-cdc demo",
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def start_context(folder: Path) -> SparkContext:
    """Start Spark in a separate process that Ctrl-C does not reach.

    Do not call it in the main thread, and let it finish: an interrupted launch leaves its JVM behind,
    and in the main thread Spark would take over SIGINT.
    """
    for name in _FOREIGN:
        os.environ.pop(name, None)
    # Otherwise Spark's workers use the first `python3` on PATH, which does not have this package.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    conf = _configuration(folder)
    with (folder / _LOG_FILE).open("wb") as log:
        # PySpark shields the JVM from Ctrl-C, but not its Python workers; a new session does.
        options = {"stdout": log, "stderr": log, "start_new_session": True}
        gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        return SparkContext(conf=conf, gateway=gateway)


def _configuration(folder: Path) -> SparkConf:
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(_SETTINGS.items()))
    conf.set("spark.local.dir", str(folder))
    conf.set("spark.sql.warehouse.dir", str(folder / "warehouse"))
    conf.set(
        "spark.driver.extraJavaOptions",
        f"{QUIET_LOG} -Djava.io.tmpdir={folder}",
    )
    return conf


def start_query(
    context: SparkContext,
    options: Mapping[str, str],
    take: Callable[[DataFrame, int], None],
    checkpoint: str,
) -> StreamingQuery:
    """Stream the tables of the options into a function of (rows, batch number)."""
    rows = SparkSession(context).readStream.format("informix-cdc").options(**options).load()
    writer = rows.writeStream.foreachBatch(take)
    return writer.option("checkpointLocation", checkpoint).start()


def again_if_late(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query, at most three times if a Python worker did not connect in time.

    Spark waits 10 s for it, which a busy host may exceed; no setting changes that
    (`PythonWorkerFactory`).
    """
    is_late = retry_if_exception(lambda error: "Python worker failed to connect back" in str(error))
    return Retrying(retry=is_late, stop=stop_after_attempt(_STARTS), reraise=True)(start)


def end_offset(query: StreamingQuery) -> dict[str, Any]:
    """Return the end offset of the last finished micro-batch; empty if there is none."""
    import json

    progress = query.lastProgress
    text = progress["sources"][0]["endOffset"] if progress else None
    return dict(json.loads(text)) if isinstance(text, str) else dict(text or {})


def explain(error: BaseException, folder: Path) -> str:
    """Return why Spark failed, as one line: our own message if any, else Spark's first line."""
    text = str(error)
    if (known := error_in(text)) is not None:
        return str(known)
    log = folder / _LOG_FILE
    last_words = log.read_text(errors="replace")[-_LAST_WORDS:] if log.exists() else ""
    return f"Spark failed: {text.partition(chr(10))[0]} Last output: {last_words or 'none'}"
