"""Reads a table by `spark.read.jdbc`, a whole one in one partition, and says how long that took.

    python -m lab.benchmarks.jdbc_rows JARS URL USER PASSWORD TABLE REPEATS

Prints a line of JSON: the rows, and of each time the seconds and those of CPU in the JVM.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from lab.benchmarks.emulated_source import say
from lab.benchmarks.measuring import timed
from lab.benchmarks.whole_snapshot import cpu_seconds

_DRIVER = "com.informix.jdbc.IfxDriver"


def main(jars: str, url: str, user: str, password: str, table: str, repeats: str) -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.driver.extraClassPath", jars)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    reader = spark.read.format("jdbc").option("driver", _DRIVER).option("url", url)
    reader = reader.option("user", user).option("password", password).option("dbtable", table)
    frame = reader.option("fetchsize", 10_000).load()
    rows = frame.count()
    jvm = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    seconds, cpu = list[float](), list[float]()
    for _ in range(int(repeats) + 1):  # the first of them warms up
        cpu.append(-cpu_seconds(jvm))
        seconds.append(timed(lambda: frame.write.format("noop").mode("overwrite").save()))
        cpu[-1] += cpu_seconds(jvm)
    spark.stop()
    say(json.dumps({"rows": rows, "seconds": seconds[1:], "cpu": cpu[1:]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
