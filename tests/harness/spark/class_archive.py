"""Spark's Java classes as a JVM has them in memory, in a file that every JVM of the tests maps.

    python -m harness.spark.class_archive        makes it, unless it is there; `make test` does so first

Rule: whoever finds no archive, or one of another Java, loads its classes as ever, and says nothing.

Measured: a JVM takes 4.7 s of CPU until Spark is up instead of 7.8, and 7.8 s with a first query in it
instead of 13.6.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

_NAME = "classes.jsa"
_PATIENCE_SECONDS = 180
_ARCHIVING = "INFORMIX_CDC_TEST_CLASS_ARCHIVE"  # names the file, in the process that makes it
_TESTS = Path(__file__).resolve().parents[2]


def jvm_options(home: str) -> str:
    """Return the options that map the archive of a SPARK_HOME, or make it; none without one."""
    if making := os.environ.get(_ARCHIVING):
        return f"-XX:ArchiveClassesAtExit={making} -Xlog:disable"
    archive = Path(home) / _NAME
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:disable" if archive.exists() else ""


def main() -> None:
    """Make the archive of the home that tests have; a second one who makes it does no harm."""
    from harness.spark.starting import settle_environment

    if os.environ.get(_ARCHIVING):
        settle_environment()
        _run_a_stream()
        return
    from harness.spark.home import light_spark_home

    archive = light_spark_home() / _NAME
    if archive.exists() or " " in str(archive):  # which options of a JVM cannot name here
        return
    being_made = archive.with_suffix(f".{os.getpid()}")
    environment = {**os.environ, _ARCHIVING: str(being_made), "PYTHONPATH": str(_TESTS)}
    command = [sys.executable, "-m", __spec__.name]
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            process.communicate(
                timeout=_PATIENCE_SECONDS
            )  # until the JVM is gone: it writes at its end
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return
    with contextlib.suppress(FileNotFoundError):  # tests are slower without it, and no worse
        being_made.replace(archive)


def _run_a_stream() -> None:
    """Let the JVM load what most tests need: a stream of ours into files, and rows to Python."""
    from pyspark.sql import SparkSession

    from informix_cdc.testing import emulated_source

    table = "stores:informix.orders"
    with (
        tempfile.TemporaryDirectory() as folder,
        emulated_source({"informix.orders": "id serial not null, note varchar(20)"}) as (
            server,
            options,
        ),
    ):
        with server.transaction() as transaction:
            transaction.insert(table, {"id": 1, "note": "one"})
        spark = (
            SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        )
        rows = spark.readStream.format("informix-cdc").options(**options).load()
        writer = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        for _ in range(2):
            writer.trigger(availableNow=True).start(
                f"{folder}/rows", format="parquet"
            ).awaitTermination()
            with server.transaction() as transaction:
                transaction.insert(table, {"id": 2, "note": "two"})
        spark.read.parquet(f"{folder}/rows").groupBy("_change_type").count().collect()
        spark.stop()


if __name__ == "__main__":
    main()
