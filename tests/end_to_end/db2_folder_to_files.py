"""A stream over a folder of Db2's messages in a process of its own, to be killed.

Rule: it is the query of examples/db2_q_messages.py, a file a micro-batch.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).parents[2] / "examples" / "db2_q_messages.py"


def example() -> ModuleType:
    """Return the example as a module."""
    found = importlib.util.spec_from_file_location("db2_q_messages", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def main() -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    example().start(spark, Path(sys.argv[1]), 1).awaitTermination()


if __name__ == "__main__":
    main()
