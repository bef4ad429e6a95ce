"""Start Spark for `informix-cdc mirror`, with the matching packages of the table format."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from informix_capture_client.errors import AccessRefused, BadOption
from informix_cdc.host import QUIET_LOG, JavaUnfit, find_java
from informix_cdc.lake.settings import DELTA, EMBEDDED, ICEBERG, SPARK, MirrorSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK = "org.apache.spark"  # its loggers
RESULT_LIMIT, _USUAL_LIMIT = "spark.driver.maxResultSize", "1g"
# Recommended for short micro-batches: README, Latency.
_SETTINGS = {
    "spark.app.name": "informix-cdc mirror",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    RESULT_LIMIT: "0",
    "spark.driver.extraJavaOptions": QUIET_LOG,
}
# From Maven Central on 2026-11-25: neither has a build for Spark 4.3.
_PACKAGES = {
    (DELTA, "4.0"): "io.delta:delta-spark_2.13:4.0.1",
    (DELTA, "4.1"): "io.delta:delta-spark_4.1_2.13:4.4.0",
    (DELTA, "4.2"): "io.delta:delta-spark_4.2_2.13:4.4.0",
    (ICEBERG, "4.0"): "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
    (ICEBERG, "4.1"): "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
_EXTENSIONS = {
    DELTA: {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    ICEBERG: {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    },
}


def session_settings(
    settings: MirrorSettings, given: Mapping[str, str], version: str = ""
) -> dict[str, str]:
    """Return the settings with which Spark is started.

    Args:
        settings: of the mirror: Iceberg tables, engine spark, and catalog need packages.
        given: the user's settings, which take precedence; if they name jars, no packages are added.
        version: of PySpark; the installed one, unless given.

    Raises:
        BadOption: there is no package for this PySpark.
    """
    needs = settings.format == ICEBERG or settings.engine == SPARK or bool(settings.catalog)
    chosen = dict(_SETTINGS)
    version = version or metadata.version("pyspark")
    if needs and not given.keys() & {"spark.jars", "spark.jars.packages"}:
        short = ".".join(version.split(".")[:2])
        if (package := _PACKAGES.get((settings.format, short))) is None:
            there = [spark for table_format, spark in _PACKAGES if table_format == settings.format]
            other = f", or set engine to {EMBEDDED}" if settings.engine == SPARK else ""
            other = ", or remove catalog" if settings.catalog else other
            raise BadOption(
                f"there is no {settings.format} package for PySpark {version}.",
                f"Install PySpark {there[-1]}{other}; or set spark.jars in [spark].",
            )
        chosen |= {"spark.jars.packages": package, **_EXTENSIONS[settings.format]}
    return chosen | dict(given)


def start_session(settings: MirrorSettings, given: Mapping[str, str]) -> SparkSession:
    """Start Spark for a mirror.

    Raises:
        AccessRefused: there is no Java that Spark can use.
        BadOption: there is no package for this PySpark.
    """
    from pyspark.sql import SparkSession

    try:
        find_java(os.environ)
    except JavaUnfit as reason:
        raise AccessRefused(str(reason)) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in session_settings(settings, given).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def submitted_session(_settings: MirrorSettings, _given: Mapping[str, str]) -> SparkSession:
    """Return the session of spark-submit, with its configuration."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """Let Spark log nothing for the length of a block; nothing is done with Spark Connect."""
    import pyspark

    context = getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)
    if context is None or context._jvm is None:
        yield
        return
    log4j = context._jvm.org.apache.logging.log4j
    current = log4j.LogManager.getContext(False)
    loggers = current.getConfiguration().getLoggers()
    before = loggers.get(_SPARK).getLevel() if loggers.containsKey(_SPARK) else None
    log4j.core.config.Configurator.setLevel(_SPARK, log4j.Level.OFF)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the JVM has ended
            if before is not None:
                log4j.core.config.Configurator.setLevel(_SPARK, before)
            else:  # a level of its own, even the same, would pass the filter of Spark's shell
                current.getConfiguration().removeLogger(_SPARK)
                current.updateLoggers()


def is_available_now_one_batch() -> bool:
    """Return whether a run of AvailableNow is one batch, as in Spark 4.0 and 4.1 (docs/versions.md)."""
    return find_spec("pyspark.sql.streaming.datasource") is None


def lift_result_limit(spark: SparkSession, partition_bytes: int) -> None:
    """Let the driver collect more than `spark.driver.maxResultSize`: a transaction is one micro-batch.

    Spark reads that limit for each job, but executors, which drop larger results of single tasks, only
    when they start.

    Args:
        spark: the session; the limit no longer holds in all of it.
        partition_bytes: approximate maximum number of bytes that a task returns.

    Raises:
        BadOption: the limit of executors is too low for a task.
    """
    assert spark.sparkContext._jsc is not None
    conf = spark.sparkContext._jsc.sc().conf()
    limit = conf.getSizeAsBytes(RESULT_LIMIT, _USUAL_LIMIT)
    if 0 < limit < 2 * partition_bytes:
        raise BadOption(
            f"{RESULT_LIMIT} is {conf.get(RESULT_LIMIT)}, but a task may return {partition_bytes} bytes"
            ".",
            f"Start Spark with {RESULT_LIMIT}=0, or with a limit of at least twice that size.",
        )
    conf.set(RESULT_LIMIT, "0")
