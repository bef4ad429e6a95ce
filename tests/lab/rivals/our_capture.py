"""Our capture without Spark, into a durable spool.

    python -m lab.rivals.our_capture '{"options": {...}}'

Prints FIRST and LAST with the CPU time and the clock, when the first and the last of `rows` rows are in
the spool; the end of the input is an orderly stop.
"""

from __future__ import annotations

import json
import os
import sys
import time

from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import StructType

from informix_cdc.options.source import SourceOptions
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark

_ALL = ReadMaxRows((1 << 63) - 1)


def main() -> None:
    plan = json.loads(sys.argv[1])
    options = SourceOptions.parse(plan["options"])
    schema: StructType = to_spark(look_up_tables(options).schema())
    reader = InformixStreamReader(options, schema)
    _say("STARTED")
    _count(reader, plan["rows"])
    sys.stdin.read()
    reader.stop()


def _count(reader: InformixStreamReader, rows: int) -> None:
    """Do what Spark does between batches, and nothing with the rows."""
    seen, start = 0, reader.latestOffset(reader.initialOffset(), _ALL)
    while seen < rows:
        if (end := reader.latestOffset(start, _ALL)) == start:
            time.sleep(0.01)
            continue
        parts = reader.partitions(start, end)
        came = sum(piece.end - piece.first for part in parts for piece in part.ranges)
        if came and not seen:
            _tell("FIRST")
        seen += came
        reader.commit(end)
        start = end
    _tell("LAST")


def _tell(what: str) -> None:
    times = os.times()
    _say(f"{what} {times.user + times.system} {time.monotonic()}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
