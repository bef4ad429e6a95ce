"""Reads a table with Spark's own JDBC reader, and prints what it got, a JSON object a line.

spark_program.py JARS URL USER PASSWORD TABLE KEY LOWER UPPER
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

DRIVER = "com.informix.jdbc.IfxDriver"


def main(jars: str, url: str, user: str, password: str, table: str, *partitioning: str) -> None:
    """Print the schema, all rows in two partitions, and what a filter finds."""
    builder = SparkSession.builder.master("local[1]").config("spark.driver.extraClassPath", jars)
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    reader = spark.read.format("jdbc").option("driver", DRIVER).option("url", url)
    reader = reader.option("user", user).option("password", password).option("dbtable", table)
    key, lower, upper = partitioning
    reader = (
        reader.option("partitionColumn", key).option("lowerBound", lower).option("upperBound", upper)
    )
    try:
        frame = reader.option("numPartitions", 2).load()
        rows = [row.asDict() for row in frame.orderBy(key).collect()]
        above = frame.where(f"{key} > {lower}").select(key).orderBy(key)
        facts = {
            "schema": {field.name: field.dataType.simpleString() for field in frame.schema.fields},
            "rows": [{name: None if v is None else str(v) for name, v in row.items()} for row in rows],
            "above": [row[0] for row in above.collect()],
            "count": frame.count(),
        }
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is what is asked for
        facts = {"error": str(error)[:2000]}
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
