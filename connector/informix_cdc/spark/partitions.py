"""The input partition of a Spark task: the rows to read, for a reader in Python or in the JVM.

Rule: a small value, pickled without any secret except for the Flight server's token. If the rows are in
files, a text names them, so that `jvm/SegmentRange.java` finds them without parsing pickles:

    informix-cdc ranges LENGTH [{"path": ..., "first": ..., ...}, ...]      LENGTH bytes of ASCII
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from pyspark.sql.datasource import InputPartition

from informix_cdc.executors import SegmentPlaces
from informix_checkpoints.spool import SegmentRange

_MARK = "informix-cdc ranges"
_LEFT_TO_PYTHON = "informix-cdc rows"


@dataclass(frozen=True)
class SpoolPartition(InputPartition):
    """The rows that one task reads: file names and row numbers, and the location of the files."""

    ranges: tuple[SegmentRange, ...]
    places: SegmentPlaces

    def __reduce__(self) -> tuple[Callable[..., SpoolPartition], tuple[str, SegmentPlaces]]:
        """Pickle the ranges as text; a JVM looks for it only if the files may be read."""
        text = json.dumps([asdict(wanted) for wanted in self.ranges])
        mark = _MARK if self.places.has_files else _LEFT_TO_PYTHON
        return _unpickled, (f"{mark} {len(text)} {text}", self.places)


def _unpickled(described: str, places: SegmentPlaces) -> SpoolPartition:
    *_, text = described.split(" ", 3)
    return SpoolPartition(tuple(SegmentRange(**fields) for fields in json.loads(text)), places)
