"""The data source that Spark knows as `informix-cdc`.

Rule: quick to import and to create, because Spark creates it in several processes. Options are checked
here, so that a mistake is an AnalysisException at load(); nothing is opened before `schema()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
except ModuleNotFoundError as missing:
    raise ImportError(
        "informix-cdc requires PySpark 4.0 or later, the first version with Python streaming"
        f" data sources ({missing}). See docs/versions.md for tested versions."
    ) from missing

from informix_capture_client.errors import BadOption
from informix_cdc.options import SourceOptions
from informix_cdc.spark.connect_plans import refuse_password_in_plan
from informix_cdc.spark.entry_points import one_line

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from informix_cdc.spark.reader import InformixStreamReader


_MARK_OF_THE_JAR = "readinjvm"


class InformixCdcDataSource(DataSource):
    """`spark.readStream.format("informix-cdc")`: committed row changes of Informix tables.

    Raises:
        BadOption: at load(), if an option is unknown, missing or invalid, or if Spark Connect would
            expose a password.
    """

    @one_line
    def __init__(self, options: dict[str, str]) -> None:
        # An option of the jar: `jvm/InformixCdcSource.java` adds it.
        self._has_jar = options.get(_MARK_OF_THE_JAR) == "true"
        given = {key: value for key, value in options.items() if key.lower() != _MARK_OF_THE_JAR}
        super().__init__(given)
        self._parsed = SourceOptions.parse(given)
        refuse_password_in_plan(self._parsed.connection)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "informix-cdc"

    @one_line
    def schema(self) -> StructType:
        """Read the tables from the server's catalog, and check that they can be captured."""
        from informix_cdc.monitoring import log_to_standard_error
        from informix_cdc.reading import published_schema
        from informix_cdc.server import look_up_tables
        from informix_cdc.snapshots import wanted_tables
        from informix_cdc.spark.schema import to_spark

        log_to_standard_error(self._parsed.reports.log_level)
        if self._parsed.shared.capture_at:
            return to_spark(published_schema(self._parsed))
        source = look_up_tables(self._parsed)
        wanted_tables(self._parsed, source.tables)  # errors are reported before a query starts
        return to_spark(source.schema())

    @one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """Refuse `spark.read`: changes have no end, and a stream needs a checkpoint.

        Raises:
            BadOption: always.
        """
        raise BadOption(
            "spark.read reads a table as it is now, but format informix-cdc supports only streams.",
            "Use spark.readStream; with initialSnapshot=all it starts with the existing rows,"
            " and with trigger(availableNow=True) it stops once it has delivered them.",
        )

    @one_line
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader; it connects when it is first asked for an offset.

        From then on this object has no password: PySpark pickles it to the executors with the reader,
        for its name in error messages (`pyspark/sql/worker/plan_data_source_read.py`).
        """
        from informix_cdc.spark.runner_process import spare_pandas

        spare_pandas()
        reader = _reader_class()(self._parsed, schema, has_jar=self._has_jar)
        reader.log_who_reads()
        self._parsed = self._parsed.without_secrets()
        self.options = {}
        return reader


def _reader_class() -> type[InformixStreamReader]:
    from informix_cdc.spark.versions import HAS_ADMISSION_CONTROL

    if HAS_ADMISSION_CONTROL:
        from informix_cdc.spark.reader import InformixStreamReader

        return InformixStreamReader
    from informix_cdc.spark.reader_without_limits import ReaderWithoutLimits

    return ReaderWithoutLimits
