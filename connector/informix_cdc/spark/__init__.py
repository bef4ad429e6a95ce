"""Spark's side of the stream: data source, stream reader, offsets between micro-batches.

Rule: the same offsets always give the same rows. Apart from the demo and the listener, only this room
imports pyspark.
"""

from __future__ import annotations

from informix_cdc.spark.datasource import InformixCdcDataSource

__all__ = ["InformixCdcDataSource"]
