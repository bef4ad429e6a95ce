"""A data source over a spool that is already full: all of the product's reader but the capture."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from harness.capture.shaped import delivery_of
from informix_capture_client.positions import Position
from informix_cdc.capture import Gauges
from informix_cdc.capture.state import CaptureState
from informix_cdc.options.source import SourceOptions
from informix_cdc.reading import CapturedStream
from informix_cdc.reading.own_capture import OwnCapture, OwnReader
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
_GIVEN = ("delivery", "metadata")


class PreparedSpool(DataSource):
    """`format("prepared-spool")`, options `path`, `delivery`, `metadata` and `tables`, how many."""

    @classmethod
    def name(cls) -> str:
        return "prepared-spool"

    @property
    def _parsed(self) -> SourceOptions:
        given = {name: self.options[name] for name in _GIVEN if name in self.options}
        return SourceOptions.parse({**_OPTIONS, **given})

    def schema(self) -> StructType:
        count = int(self.options.get("tables", "1"))
        tables = catalog_tables(count) if count > 1 else [catalog_table()]
        return to_spark(delivery_of(tables, self._parsed.row_form()).schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _PreparedReader(Path(self.options["path"]), self._parsed, schema)


class _PreparedReader(InformixStreamReader):
    def __init__(self, folder: Path, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._captured = CapturedStream(options)
        self._captured.reader = OwnReader(options, _PreparedCapture(folder, options))


class _PreparedCapture(OwnCapture):
    """Captures nothing: all rows are in the spool."""

    def __init__(self, folder: Path, options: SourceOptions) -> None:
        super().__init__(options)
        self._folder = folder

    def begin(self, start: StreamOffset, planned: Position | None = None) -> CaptureState:
        if self.state is None:
            spool = open_spool(self._folder)
            self.state = CaptureState(gauges=Gauges(is_caught_up=True), spool=spool)
        return self.state
