"""The input partition of a Spark task: the rows to read, for a reader in Python or in the JVM.

Rule: a small value, pickled without any secret except for the Flight server's token. If the rows are in
files, a text names them, so that `jvm/SegmentRange.java` finds them without parsing pickles:

    informix-cdc ranges LENGTH {"form": {"shape": ..., ...}, "ranges": [{"path": ..., ...}, ...]}

LENGTH counts bytes of ASCII. The form says what to make of the changes there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from pyspark.sql.datasource import InputPartition

from informix_capture_client.choices import RowForm
from informix_cdc.executors import SegmentPlaces
from informix_checkpoints.spool import SegmentRange

_MARK = "informix-cdc ranges"
_LEFT_TO_PYTHON = "informix-cdc rows"


@dataclass(frozen=True)
class SpoolPartition(InputPartition):
    """The changes that one task reads, the location of the files, and what to make of the changes.

    Attributes:
        is_flat: whether rows have the columns of one table, instead of a struct for each of several.
    """

    ranges: tuple[SegmentRange, ...]
    places: SegmentPlaces
    form: RowForm
    is_flat: bool = False

    def __reduce__(self) -> tuple[Callable[..., SpoolPartition], tuple[str, SegmentPlaces]]:
        """Pickle all but the places as text; a JVM looks for it only if the files may be read."""
        known = {
            "form": {**asdict(self.form), "is_flat": self.is_flat},
            "ranges": [asdict(wanted) for wanted in self.ranges],
        }
        text = json.dumps(known)
        mark = _MARK if self.places.has_files else _LEFT_TO_PYTHON
        return _unpickled, (f"{mark} {len(text)} {text}", self.places)


def _unpickled(described: str, places: SegmentPlaces) -> SpoolPartition:
    *_, text = described.split(" ", 3)
    known = json.loads(text)
    is_flat = known["form"].pop("is_flat")
    ranges = tuple(SegmentRange(**fields) for fields in known["ranges"])
    return SpoolPartition(ranges, places, RowForm(**known["form"]), is_flat)
