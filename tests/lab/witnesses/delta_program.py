"""Runs SQL in Spark with Delta Lake: a statement a line, its rows as a JSON object a line."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"  # as connector/informix_cdc/lake/sessions.py has it
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.jars.packages": PACKAGE,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def main() -> None:
    """Answer statements until the input ends."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for line in sys.stdin:
        try:
            rows = [list(row) for row in spark.sql(line.strip()).collect()]
            answer = {"rows": [[str(value) for value in row] for row in rows]}
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is what is asked for
            answer = {"error": str(error)[:2000]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
