"""A sink in the JVM that writes each row as a line of a file: Spark allows it in real-time mode too."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

ROOT = Path(__file__).parents[3]
_SOURCE = Path(__file__).with_name("LinesOf.java")
_SPARK = Path(pyspark.__file__).parent / "jars"


@functools.cache
def sink_jar() -> Path:
    """Compile the sink once for all workers and runs; return the jar."""
    digest = hashlib.sha256(pyspark.__version__.encode() + _SOURCE.read_bytes()).hexdigest()[:12]
    folder = ROOT / "build" / f"line-sink-{digest}"
    made = folder / "sink.jar"
    if not made.exists():
        classes = folder / f"classes-{os.getpid()}"
        command = ["javac", "-nowarn", "-proc:none", "--release", "17", "-cp", f"{_SPARK}/*"]
        subprocess.run([*command, "-d", str(classes), str(_SOURCE)], check=True, capture_output=True)
        draft = folder / f"{os.getpid()}.jar"
        with zipfile.ZipFile(draft, "w") as jar:
            for path in classes.rglob("*.class"):
                jar.write(path, path.relative_to(classes))
        draft.replace(made)
    return made


@dataclass(frozen=True, order=True)
class Line:
    """A row as the sink wrote it.

    Attributes:
        batch: the number of the batch.
        values: numbers, of the selected columns.
        written_ns: UNIX time.
    """

    batch: int
    values: tuple[int, ...]
    written_ns: int


class LineSink:
    """Lines of the rows of queries that follow each other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        frame: DataFrame,
        checkpoint: Path,
        *,
        pause_microseconds: int = 0,
        options: dict[str, str] | None = None,
        **trigger: Any,
    ) -> StreamingQuery:
        """Start a query whose columns are numbers."""
        writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).outputMode("update")
        writer = writer.options(**(options or {}))
        jvm: Any = SparkSession.active()._jvm
        if "realTime" in trigger and pyspark.__version__.startswith("4.1."):
            # PySpark 4.1 has no word for what its Spark has.
            real_time = jvm.org.apache.spark.sql.streaming.Trigger.RealTime(trigger["realTime"])
            writer._jwrite = writer._jwrite.trigger(real_time)
        elif trigger:
            writer = writer.trigger(**trigger)
        writer._jwrite.foreach(jvm.informixcdc.tests.LinesOf(str(self.folder), pause_microseconds))
        return writer.start()

    def lines(self) -> list[Line]:
        """Return the complete lines, in the order in which they were written."""
        return sorted(map(_line, self._texts()), key=lambda line: line.written_ns)

    def values(self) -> list[tuple[int, ...]]:
        """Return the rows, in the order in which they were written."""
        return [line.values for line in self.lines()]

    def _texts(self) -> list[str]:
        texts = [path.read_text() for path in self.folder.iterdir()]
        # A process that died may have written a part of its last line.
        return [line for text in texts for line in text.rpartition("\n")[0].splitlines()]


def _line(text: str) -> Line:
    batch, *values, written_ns = map(int, text.split())
    return Line(batch, tuple(values), written_ns)
