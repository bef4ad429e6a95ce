"""Losses that were reported while a planned batch was asked for again, kept in a file for each stream.

Rule: a loss that was reported is not forgotten, although nothing may show it any more: full row logging
is switched on again by the next stream of the table. Where Spark asks for a next offset the loss goes
into the checkpoint (`StreamOffset.lost`); a batch that was planned before has its offset already, so
that a file must do. It lies beside the spools where they are kept, else in the user's state folder.
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
_SOON_UNSEEN = {Gap.ROW_LOGGING_OFF}  # others go by positions, which no one mends


class ReportedLoss(NamedTuple):
    """A loss of data that was reported: why the stream cannot go on, and the sentence that said so.

    `table` is the one that it is of, `database:owner.table`; empty where an earlier version kept it.
    """

    gap: Gap
    message: str
    table: str = ""

    @classmethod
    def of(cls, loss: DataLoss) -> ReportedLoss | None:
        """Return what to remember of a loss; None for one that shows again as long as it is one."""
        return cls(loss.gap, loss.message, loss.table) if loss.gap in _SOON_UNSEEN else None

    def error(self) -> DataLoss:
        """Return the error to raise when the query is started again."""
        return DataLoss(
            f"a loss was reported before: {self.message}",
            f"To load the tables again, {NEW_STREAM}; or go on without what was lost, which mends no"
            " copy: set failOnDataLoss=false. If informix-cdc release --receipt switched row logging"
            " off, nothing is lost: run informix-cdc acquire with that receipt, and start the query"
            " with option schemaChange.",
            gap=self.gap,
            table=self.table,
        )


@dataclass(frozen=True, slots=True)
class ReportedLosses:
    """The marks of streams: kept in the first of some folders, looked for in all.

    A query may keep its spool in one run and not in another.
    """

    folders: tuple[Path, ...]

    @classmethod
    def beside(cls, spool_path: str) -> ReportedLosses:
        """Return the marks beside the spools, if they are kept, and in the user's state folder."""
        folders = [Path(spool_path)] if spool_path else []
        with contextlib.suppress(RuntimeError):  # a user without a home
            state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
            folders.append(Path(state) / "informix-cdc" / "losses")
        return cls(tuple(folders))

    def record(self, stream: str, source: str, loss: DataLoss) -> None:
        """Keep a loss of a stream.

        Raises:
            OSError: there is no folder for it, or the file cannot be written.
        """
        if (reported := ReportedLoss.of(loss)) is None:
            return
        if not self.folders:
            raise FileNotFoundError("no spoolPath, no XDG_STATE_HOME and no home of this user")
        known = {"source": source, **reported._asdict(), "gap": reported.gap.name}
        make_folder(self.folders[0], durable=True)
        path = self.folders[0] / f"{stream}{_SUFFIX}"
        replace_file(path, json.dumps(known).encode(), durable=True)

    def find(self, stream: str) -> ReportedLoss | None:
        """Return what was reported of a stream; of a file that makes no sense, that it is there.

        Where no file can be read, none could be kept.

        Raises:
            AccessRefused: a file of that name is a link or another user's: nobody knows what it says.
        """
        for path in self._paths(stream):
            try:
                content, doubt = read_own(path)
            except OSError:
                continue
            if doubt:  # an earlier version's under umask 002, or opened by a mount: ours, so a loss
                return ReportedLoss(Gap.ROW_LOGGING_OFF, f"{path} says so; what it says {doubt}.")
            try:
                known = json.loads(content)
                table = str(known.get("table", ""))
                return ReportedLoss(Gap[known["gap"]], str(known["message"]), table)
            except (ValueError, KeyError, TypeError):
                return ReportedLoss(Gap.ROW_LOGGING_OFF, f"{path} says so, and is damaged.")
        return None

    def remove(self, stream: str) -> None:
        """Forget a stream that was left for another one."""
        for path in self._paths(stream):
            with contextlib.suppress(OSError):
                path.unlink()

    def _paths(self, stream: str) -> Iterator[Path]:
        return (folder / f"{stream}{_SUFFIX}" for folder in self.folders)
