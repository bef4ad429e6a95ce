"""Stream changes from Db2 Q Replication files: `python examples/db2_q_messages.py`. Needs Java 17.

A folder receives files of delimited messages, as asnmsg2file writes them. Each run reads the new files,
appends their rows to a Parquet table, and ends. For your own messages, change the folder, the tables
and the delimiters of the queue map (docs/db2.md). From Kafka, use `readStream.format("kafka")` and
column `value`.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from informix_cdc import db2

TABLES = {"TEST.STAFF": "name VARCHAR(20), pay DECIMAL(9,2)"}
HEAD = '10,"IBM","2026030","18231800000{0}","TEST","STAFF","{1}","0000:0000:0388:000{0}:0000",'
POINT = '"0000:0000:0000:0271:000{0}:0000:0000:0000","2026-01-30-18.00.0{0}",,0000,'


def message(number: int, operation: str, data: str) -> str:
    """Return a message with one record, as Q Capture publishes it."""
    return HEAD.format(number, operation) + POINT.format(number) + data + "\n"


def start(spark: SparkSession, folder: Path, files_at_once: int = 1000) -> StreamingQuery:
    """Start a run over the new files in the folder; the checkpoint holds its position."""
    reader = spark.readStream.format("binaryFile").schema(db2.FILES)
    files = reader.option("maxFilesPerTrigger", files_at_once).load(f"{folder}/in")
    rows = db2.q_messages(files, "content", tables=TABLES).drop("_header")
    sink = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    return sink.trigger(availableNow=True).start(f"{folder}/staff_changes", format="parquet")


def main() -> None:
    """Process two files, then a third one: the table has the changes of each once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need this environment's packages
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "in" / "1").write_text(message(1, "ISRT", ',,"Doe",1200.50'))
        (folder / "in" / "2").write_text(message(2, "REPL", '"Doe",1200.50,"Doe",1300'))
        start(spark, folder).awaitTermination()
        (folder / "in" / "3").write_text(message(3, "DLET", '"Doe",1300,,'))
        start(spark, folder).awaitTermination()
        changes = spark.read.parquet(f"{folder}/staff_changes").orderBy(
            "_commit_lsn", "_change_ordinal"
        )
        changes.select("name", "pay", "_change_type", "_commit_timestamp").show()


if __name__ == "__main__":
    main()
