"""A data source over a spool that is already full: all of the product's reader but the capture."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from informix_capture_client.choices import DecodeRules, RowForm
from informix_capture_client.positions import Position
from informix_capture_client.shapes.row_forms import row_schema
from informix_cdc.capture import Gauges
from informix_cdc.capture.state import CaptureState
from informix_cdc.options.source import SourceOptions
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from informix_checkpoints.offsets.offsets import StreamOffset
from lab.benchmarks.pipeline import open_spool
from lab.benchmarks.workload import catalog_table, catalog_tables

_OPTIONS = {
    "host": "nowhere",
    "server": "none",
    "database": "bench",
    "table": "informix.lines",
    "password": "never used",
}


class PreparedSpool(DataSource):
    """`format("prepared-spool")`, options `path`, `delivery`, `metadata` and `tables`, how many."""

    @classmethod
    def name(cls) -> str:
        return "prepared-spool"

    def schema(self) -> StructType:
        count = int(self.options.get("tables", "1"))
        tables = catalog_tables(count) if count > 1 else [catalog_table()]
        form = RowForm(metadata=cast("Any", self.options.get("metadata", "full")))
        return to_spark(row_schema(tables, DecodeRules(), form))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        delivery = self.options.get("delivery", "auto")
        return _PreparedReader(Path(self.options["path"]), delivery, schema)


class _PreparedReader(InformixStreamReader):
    def __init__(self, folder: Path, delivery: str, schema: StructType) -> None:
        super().__init__(SourceOptions.parse({**_OPTIONS, "delivery": delivery}), schema)
        self._folder = folder
        self._finished: Any = None

    def _running(self, start: StreamOffset, planned: Position | None = None) -> Any:
        if self._finished is None:
            state = CaptureState(gauges=Gauges(is_caught_up=True), spool=open_spool(self._folder))
            self._finished = SimpleNamespace(state=state)
        return self._finished
