"""A SPARK_HOME for tests, without the archive from which each Python process would compile PySpark.

Spark puts SPARK_HOME/python/lib/pyspark.zip before everything else on the path of its Python processes:
an archive of sources, whose compiled form nobody keeps. Without it they import the installed package.
Measured: a query's Python process takes 1.5 s of CPU to start and run a small stream, not 2.8 s.

Rule: the same PySpark has the same home, in build/, since its path is part of the archive of classes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import zlib
from pathlib import Path

_BUILD = Path(__file__).resolve().parents[3] / "build"


def light_spark_home() -> Path:
    """Make such a folder of links unless it is there; return its path."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    home = _BUILD / f"spark-{zlib.crc32(os.fsencode(package)):08x}"
    (home / "python" / "lib").mkdir(parents=True, exist_ok=True)
    for entry in package.iterdir():
        if entry.name != "python":
            with contextlib.suppress(FileExistsError):
                (home / entry.name).symlink_to(entry)
    return home
