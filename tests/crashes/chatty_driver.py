"""A driver that says everything it knows while its processes die: logs, plans, progress, errors, UI.

What to do comes by standard input, not as an argument, since Spark prints those.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from exactly_once_sink import write_batch
from harness.runs.patience import patiently, wait_until
from informix_cdc import ProgressListener

_PAGES = ["StreamingQuery", "SQL", "environment", "jobs", "executors"]
_REST = ["environment", "sql?details=true", "jobs", "stages?details=true"]


def main() -> None:
    plan = json.load(sys.stdin)
    folder = Path(plan["folder"])
    spark = _spark(folder, plan["jar"])
    spark.streams.addListener(ProgressListener())
    for name, stream in plan["streams"].items():
        (folder / name).mkdir()
        spark.conf.set("spark.informix-cdc.readInJvm", str(stream["in_jvm"]).lower())
        frame = spark.readStream.format("informix-cdc").options(**stream["options"]).load()
        (folder / name / "error.txt").write_text(_die(frame, folder / name, stream["failpoint"]))
        query = _start(frame, folder / name)
        wait_until(lambda query=query: any(done["numInputRows"] for done in query.recentProgress))  # type: ignore[misc]
        query.explain(extended=True)
        frame.explain(extended=True)
        (folder / name / "plan.txt").write_text(str(frame._jdf.queryExecution().toString()))
        (folder / name / "progress.json").write_text(json.dumps([p.json for p in query.recentProgress]))
        _save_pages(spark, query, folder / name / "pages")
        _save_metrics(stream["options"]["metricsAddress"], folder / name / "metrics.txt")
        query.stop()
    spark.stop()


def _die(frame: DataFrame, folder: Path, failpoint: str) -> str:
    query, armed = _start(frame, folder), Path(os.environ["INFORMIX_CDC_FAILPOINT"])
    wait_until(lambda: (folder / "checkpoint" / "commits" / "0").exists())
    armed.write_text(failpoint)
    wait_until(lambda: not query.isActive)
    assert not armed.exists(), failpoint
    return str(query.exception())


def _spark(folder: Path, jar: str) -> SparkSession:
    (folder / "events").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.ui.port": "0",
        **({"spark.jars": jar} if jar else {}),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("DEBUG")
    return spark


def _start(frame: DataFrame, folder: Path) -> StreamingQuery:
    def write(sink: Path, batch: DataFrame, number: int) -> None:
        batch.explain(extended=True)
        write_batch(sink, batch, number)

    writer = frame.writeStream.foreachBatch(partial(write, folder / "sink"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _save_pages(spark: SparkSession, query: StreamingQuery, folder: Path) -> None:
    folder.mkdir()
    ui = spark.sparkContext.uiWebUrl
    application = spark.sparkContext.applicationId
    addresses = [f"{ui}/{page}/" for page in _PAGES]
    addresses += [f"{ui}/SQL/execution/?id={number}" for number in range(3)]
    addresses.append(f"{ui}/StreamingQuery/statistics/?id={query.runId}")
    addresses += [f"{ui}/api/v1/applications/{application}/{page}" for page in _REST]
    for number, address in enumerate(addresses):
        with urllib.request.urlopen(address, timeout=patiently(30)) as page:
            (folder / f"{number}.html").write_bytes(page.read())


def _save_metrics(port: str, path: Path) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=patiently(30)) as page:
        path.write_bytes(page.read())


if __name__ == "__main__":
    main()
