"""Run examples one after the other in one process, which shares one Spark; print what each has printed.

    python examples_in_one_spark.py EXAMPLE.py ...

The last line is a JSON object: text by the example's name. What Spark itself writes, for a sink of the
format `console`, comes before it: from a process of its own that nobody here can redirect.

Most of an example's time is Spark's start. Each is a program of its own all the same: what it leaves in
the session must not disturb the next.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

from notebooks import run
from pyspark.sql import SparkSession


def printed_by(path: str) -> str:
    """Return what an example prints, run as `python EXAMPLE.py` or Jupyter runs it."""
    if path.endswith(".ipynb"):
        return json.dumps(list(run(json.loads(Path(path).read_text(encoding="utf-8")))))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()


def main(paths: list[str]) -> None:
    """Run them all; nobody stops Spark before the end."""
    stop, SparkSession.stop = SparkSession.stop, lambda _self: None  # type: ignore[method-assign]
    printed = {Path(path).stem: printed_by(path) for path in paths}
    sys.stdout.write(json.dumps(printed))
    if (session := SparkSession.getActiveSession()) is not None:
        stop(session)


if __name__ == "__main__":
    main(sys.argv[1:])
