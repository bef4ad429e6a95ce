"""Transactions of Q Replication that come in several messages.

Rule: nothing is left out: a row says whether its transaction is whole, and who reads on decides.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from informix_capture_client.errors import BadOption

_NEEDED = ("_transaction_id", "_commit_lsn", "_segment")


def whole_transactions(rows: DataFrame) -> DataFrame:
    """Add `_is_whole`: whether all messages of a row's transaction are among these rows.

    They are numbered 1, 2, ..., and the last one 0. A transaction with a message of tables that were
    skipped is not whole; nor is one of more than 10,000 messages, whose numbers no page gives.

    Args:
        rows: what `q_messages` returned, with all its columns; a batch.

    Raises:
        BadOption: a column is missing, or the rows are a stream.
    """
    if missing := [name for name in _NEEDED if name not in rows.columns]:
        raise BadOption(f"the rows have no {missing[0]}.", "Give what q_messages returned.")
    if rows.isStreaming:
        raise BadOption("whole_transactions needs a batch.", "Call it inside of foreachBatch.")
    of_transaction = Window.partitionBy("_transaction_id", "_commit_lsn")
    segments = sf.collect_set("_segment").over(of_transaction)
    is_whole = sf.array_contains(segments, 0) & (sf.size(segments) == sf.array_max(segments) + 1)
    return rows.withColumn("_is_whole", sf.when(sf.col("_segment").isNotNull(), is_whole))
