"""Losses that were reported while a planned batch was asked for again, kept in a file for each stream.

Rule: a loss that was reported is not forgotten, although nothing may show it any more: full row logging
is switched on again by the next stream of the table. Where Spark asks for a next offset the loss goes
into the checkpoint (`StreamOffset.lost`); a batch that was planned before has its offset already, so
that a file must do. It lies beside the spools where they are kept, else in the user's state folder.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from informix_capture_client.errors import DataLoss, Gap
from informix_checkpoints.spool.durable_files import make_folder, replace_file

_SUFFIX = ".lost.json"
_SOON_UNSEEN = {Gap.ROW_LOGGING_OFF}  # others go by positions, which no one mends


class ReportedLoss(NamedTuple):
    """A loss of data that was reported: why the stream cannot go on, and the sentence that said so."""

    gap: Gap
    message: str

    @classmethod
    def of(cls, loss: DataLoss) -> ReportedLoss | None:
        """Return what to remember of a loss; None for one that shows again as long as it is one."""
        return cls(loss.gap, loss.message) if loss.gap in _SOON_UNSEEN else None

    def error(self) -> DataLoss:
        """Return the error to raise when the query is started again."""
        return DataLoss(
            f"a loss was reported before: {self.message}",
            "Reload the tables and start a new stream with a new checkpoint; or go on without what was"
            " lost: set failOnDataLoss=false.",
            gap=self.gap,
        )


@dataclass(frozen=True, slots=True)
class LossMarks:
    """The marks in one folder."""

    folder: Path

    @classmethod
    def beside(cls, spool_path: str) -> LossMarks:
        """Return the marks of streams that keep their spools there; empty: of those that keep none."""
        if spool_path:
            return cls(Path(spool_path))
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return cls(Path(state) / "informix-cdc" / "losses")

    def note(self, stream: str, source: str, loss: DataLoss) -> None:
        """Keep a loss of a stream.

        Raises:
            OSError: the file cannot be written.
        """
        if (reported := ReportedLoss.of(loss)) is None:
            return
        known = {"source": source, "gap": reported.gap.name, "message": reported.message}
        make_folder(self.folder, durable=True)
        replace_file(self._path(stream), json.dumps(known).encode(), durable=True)

    def find(self, stream: str) -> ReportedLoss | None:
        """Return what was reported of a stream; of a file that cannot be read, that it is there."""
        try:
            known = json.loads(self._path(stream).read_bytes())
            return ReportedLoss(Gap[known["gap"]], str(known["message"]))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return ReportedLoss(Gap.ROW_LOGGING_OFF, f"{self._path(stream)} says so, and is damaged.")

    def remove(self, stream: str) -> None:
        """Forget a stream that was left for another one."""
        self._path(stream).unlink(missing_ok=True)

    def _path(self, stream: str) -> Path:
        return self.folder / f"{stream}{_SUFFIX}"
