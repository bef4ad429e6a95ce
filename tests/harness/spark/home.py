"""A SPARK_HOME for tests, without the archive from which each Python process would compile PySpark.

Spark puts SPARK_HOME/python/lib/pyspark.zip before everything else on the path of its Python processes:
an archive of sources, whose compiled form nobody keeps. Without it they import the installed package.
Measured: a query's Python process takes 1.5 s of CPU to start and run a small stream, not 2.8 s.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path


def light_spark_home() -> str:
    """Make such a folder of links for the life of this process; return its path."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    home = Path(tempfile.mkdtemp(prefix="informix-cdc-spark-home-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in Path(found.origin).parent.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    (home / "python" / "lib").mkdir(parents=True)
    return os.fspath(home)
