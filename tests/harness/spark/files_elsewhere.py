"""The product's source, with one difference: executors do not find the files of segments.

Rule: registered under the product's own name, in a session of its own, so that the reader in the JVM
gets its partitions; only Flight has the rows then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from informix_cdc.spark.datasource import InformixCdcDataSource
from informix_cdc.spark.partitions import SpoolPartition
from informix_cdc.spark.reader import InformixStreamReader

NOWHERE = Path("/nowhere")


class FilesElsewhere(InformixCdcDataSource):
    """`format("informix-cdc")` on a host that has no spool."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options, _ = self._parsed, super().streamReader(schema)
        return _Reader(options, schema)


class _Reader(InformixStreamReader):
    def partitions(
        self, start: Mapping[str, object], end: Mapping[str, object]
    ) -> list[InputPartition]:
        return [_moved(one) for one in super().partitions(start, end)]


def _moved(one: InputPartition) -> SpoolPartition:
    assert isinstance(one, SpoolPartition)
    ranges = tuple(replace(wanted, path=str(NOWHERE / wanted.file)) for wanted in one.ranges)
    return replace(one, ranges=ranges)
