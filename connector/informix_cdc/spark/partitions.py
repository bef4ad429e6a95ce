"""What a task of Spark gets: which rows it reads, for a reader in Python or in the JVM.

Rule: a small value, pickled without a secret but the Flight server's token. Where the rows lie in
files, a text of it names them, so that `jvm/SegmentRange.java` finds them without reading pickles:

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
    """The rows that one task reads: names of files and row numbers, and where the files are."""

    ranges: tuple[SegmentRange, ...]
    places: SegmentPlaces

    def __reduce__(self) -> tuple[Callable[..., SpoolPartition], tuple[str, SegmentPlaces]]:
        """Pickle the ranges as text; a JVM looks for it only where the files may be read."""
        text = json.dumps([asdict(wanted) for wanted in self.ranges])
        mark = _MARK if self.places.has_files else _LEFT_TO_PYTHON
        return _unpickled, (f"{mark} {len(text)} {text}", self.places)


def _unpickled(described: str, places: SegmentPlaces) -> SpoolPartition:
    *_, text = described.split(" ", 3)
    return SpoolPartition(tuple(SegmentRange(**fields) for fields in json.loads(text)), places)
