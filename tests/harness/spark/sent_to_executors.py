"""What PySpark's planning worker sends to executors for a data source, by its own function."""

from __future__ import annotations

import inspect
import io

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import IntegerType, StructType
from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions

from informix_cdc.spark.datasource import InformixCdcDataSource

SCHEMA = StructType().add("a", IntegerType())


def sent_to_executors(options: dict[str, str]) -> bytes:
    """Make a data source of options, carry it to a planning worker, and return what that one sends."""
    pickler, sent = CloudPickleSerializer(), io.BytesIO()
    made = InformixCdcDataSource(CaseInsensitiveDict(options))
    copied = pickler.loads(pickler.dumps(made))
    told = {
        "reader": copied.streamReader(SCHEMA),
        "data_source": copied,
        "schema": SCHEMA,
        "max_arrow_batch_size": 10_000,
        "binary_as_bytes": True,
    }
    taken = inspect.signature(write_read_func_and_partitions).parameters  # of this PySpark
    write_read_func_and_partitions(sent, **{key: told[key] for key in told if key in taken})
    return sent.getvalue()
