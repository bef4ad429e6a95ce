"""Transactions of Q Replication that consist of several messages.

Rule: no rows are dropped: each row states whether its transaction is whole, and the reader decides.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from informix_capture_client.errors import BadOption

_NEEDED = ("_transaction_id", "_commit_lsn", "_segment")


def whole_transactions(rows: DataFrame) -> DataFrame:
    """Add `_is_whole`: whether all messages of a row's transaction are among these rows.

    Messages are numbered 1, 2, ..., and the last one 0. A transaction with a message of skipped tables
    is not whole; neither is one of more than 10,000 messages, whose numbering is not documented.

    Args:
        rows: the result of `q_messages`, with all its columns; a batch.

    Raises:
        BadOption: a column is missing, or the rows are a stream.
    """
    if missing := [name for name in _NEEDED if name not in rows.columns]:
        raise BadOption(f"the rows have no column {missing[0]}.", "Pass the result of q_messages.")
    if rows.isStreaming:
        raise BadOption("whole_transactions requires a batch.", "Call it inside foreachBatch.")
    of_transaction = Window.partitionBy("_transaction_id", "_commit_lsn")
    segments = sf.collect_set("_segment").over(of_transaction)
    is_whole = sf.array_contains(segments, 0) & (sf.size(segments) == sf.array_max(segments) + 1)
    return rows.withColumn("_is_whole", sf.when(sf.col("_segment").isNotNull(), is_whole))
