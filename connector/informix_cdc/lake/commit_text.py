"""What a commit of a mirror says of itself: whose it is, and where its batch ends.

Rule: JSON in the place that a table format has for it: `userMetadata` of Delta's commitInfo, the
summary of an Iceberg snapshot. Both engines write the same text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from informix_capture_client.errors import DataLoss
from informix_capture_client.positions import show
from informix_cdc.lake.identity import BatchEnd, batch_of, epoch_of

RESUME = (
    "If an older checkpoint or an older lake was put back, put back the one that belongs to it, too."
    " Stop any other driver of this mirror. Otherwise set onDataLoss to resync: every table is then"
    " compared with Informix while changes stream, and only what differs is written."
)


@dataclass(slots=True)
class CommitText:
    """The text of the commits of a batch.

    Attributes:
        end: of the batch that is written now; None before the first.
    """

    end: BatchEnd | None = None

    def of(self, application: str, batch: int | None) -> str:
        """Return the text of a commit; `batch` is None if the commit has no rows of one."""
        end = {} if batch is None or self.end is None else asdict(self.end)
        return json.dumps({"informix-cdc": application, **end})

    @staticmethod
    def application_in(text: str) -> str:
        """Return whose commit has a text; empty if it is not one of a mirror."""
        return str(_object(text).get("informix-cdc", ""))

    @staticmethod
    def end_in(text: str) -> BatchEnd | None:
        """Return the end of the batch whose commit has a text; None if it has none."""
        known = _object(text)
        stream, commit, chunk = (known.get(name) for name in ("stream", "commit", "chunk"))
        if isinstance(stream, str) and isinstance(commit, int) and isinstance(chunk, int):
            return BatchEnd(stream, commit, chunk)
        return None


def _object(text: str) -> Mapping[str, object]:
    try:
        known: object = json.loads(text)
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def has_batch(
    table: str,
    latest: int | None,
    batch: int,
    end: Callable[[], BatchEnd | None],
    wanted: CommitText,
) -> bool:
    """Return whether a table has a batch.

    Args:
        table: for messages.
        latest: number of the last batch in it.
        batch: number of the batch.
        end: returns where the last batch in it ended.
        wanted: where the batch ends.

    Raises:
        DataLoss: it has another batch with this number, or a later one, so that two checkpoints, or
            two drivers, have numbered batches.
    """
    if latest is None or latest < batch:
        return False
    found = end() if latest == batch and wanted.end is not None else None
    if latest == batch and (found is None or found == wanted.end):
        return True
    there = f"batch {batch_of(latest)} of epoch {epoch_of(latest)}"
    at = f", which ends at {show(found.commit)}" if found else ""
    raise DataLoss(
        f"the table {table} has {there}{at}, but this mirror runs batch {batch_of(batch)} of epoch"
        f" {epoch_of(batch)}{f' up to {show(wanted.end.commit)}' if wanted.end else ''}.",
        RESUME,
    )
