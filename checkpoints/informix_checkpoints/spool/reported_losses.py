"""Data losses that no checkpoint has, one file per stream.

Rule: a reported loss is recorded, because it may not be detectable later: full row logging is switched
on again by the next stream of the table. When Spark requests the next offset, the loss goes into the
checkpoint (`StreamOffset.lost`). A file is used where no offset can carry it: for a batch that was
planned before, and for a stream that was left, until Spark has an offset of the next one. It is in the
spoolPath if set, otherwise in the user's state folder.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from informix_capture_client.errors import NEW_STREAM, DataLoss, Gap
from informix_checkpoints.spool.durable_files import make_folder, read_own, replace_file

_SUFFIX = ".lost.json"
_SOON_UNSEEN = {Gap.ROW_LOGGING_OFF}  # others depend on positions, which do not change back


class ReportedLoss(NamedTuple):
    """A reported data loss: the reason that the stream cannot continue, and the error's message.

    `tables` are the affected ones, `database:owner.table`; empty if it may be all of the stream.
    """

    gap: Gap
    message: str
    tables: tuple[str, ...] = ()

    @classmethod
    def of(cls, loss: DataLoss) -> ReportedLoss | None:
        """Return the record of a loss; None for a loss that is detected again at each start."""
        return cls(loss.gap, loss.message, loss.tables) if loss.gap in _SOON_UNSEEN else None

    def error(self) -> DataLoss:
        """Return the error to raise when the query is started again."""
        return DataLoss(
            f"a loss was reported before: {self.message}",
            f"To read the tables again, {NEW_STREAM}. To continue without the lost changes, set"
            " onDataLoss=continue; copies then stay incomplete.",
            gap=self.gap,
            tables=self.tables,
        )


@dataclass(frozen=True, slots=True)
class ReportedLosses:
    """The recorded losses of streams: written to the first of several folders, searched in all.

    A query may use a spoolPath in one run and not in another.
    """

    folders: tuple[Path, ...]

    @classmethod
    def beside(cls, spool_path: str) -> ReportedLosses:
        """Return the losses recorded in the spool path, if set, and in the user's state folder."""
        folders = [Path(spool_path)] if spool_path else []
        with contextlib.suppress(RuntimeError):  # a user without a home
            state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
            folders.append(Path(state) / "informix-cdc" / "losses")
        return cls(tuple(folders))

    def record(self, stream: str, source: str, loss: DataLoss) -> None:
        """Record a loss of a stream.

        Raises:
            OSError: no folder is known, or the file cannot be written.
        """
        if (reported := ReportedLoss.of(loss)) is None:
            return
        if not self.folders:
            raise FileNotFoundError("no spoolPath, no XDG_STATE_HOME and no home directory")
        known = {"source": source, **reported._asdict(), "gap": reported.gap.name}
        make_folder(self.folders[0], durable=True)
        path = self.folders[0] / f"{stream}{_SUFFIX}"
        replace_file(path, json.dumps(known).encode(), durable=True)

    def find(self, stream: str) -> ReportedLoss | None:
        """Return the recorded loss of a stream; a file that cannot be parsed counts as a loss.

        If no file can be read, none could be written either.

        Raises:
            AccessRefused: the file is a link or belongs to another user, so it is not trusted.
        """
        for path in self._paths(stream):
            try:
                content, doubt = read_own(path)
            except OSError:
                continue
            if doubt:  # of whoever could write it, for example if a mount has opened it
                return ReportedLoss(Gap.ROW_LOGGING_OFF, f"{path} records a loss, but it {doubt}.")
            try:
                known = json.loads(content)
                tables = tuple(map(str, known["tables"]))
                return ReportedLoss(Gap[known["gap"]], str(known["message"]), tables)
            except (ValueError, KeyError, TypeError):
                return ReportedLoss(Gap.ROW_LOGGING_OFF, f"{path} records a loss, but it is corrupt.")
        return None

    def remove(self, stream: str) -> None:
        """Remove the record of a stream that was replaced by a new one."""
        for path in self._paths(stream):
            with contextlib.suppress(OSError):
                path.unlink()

    def _paths(self, stream: str) -> Iterator[Path]:
        return (folder / f"{stream}{_SUFFIX}" for folder in self.folders)
