"""Find the stream of a checkpoint, and send requests to the query or the shared capture that runs it.

The checkpoint may be that of a reader of a shared capture, which may be in a stream that the capture
has left after a data loss: requests go to the stream that is captured now.

Rule: nothing here connects to a server; requests and answers are files in the stream's folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from informix_capture_client.errors import BadOption, ServerRefused
from informix_capture_client.positions import RecordPlace
from informix_checkpoints.offsets import StreamOffset, read_checkpoint
from informix_checkpoints.readers import Readers
from informix_checkpoints.requests import Answer, Request, RequestFolder
from informix_checkpoints.shared_captures import load_published
from informix_checkpoints.spool import Spool, has_writer, load_manifest
from informix_checkpoints.table_states import Tables

_POLL_SECONDS = 0.1
_AWAY_SECONDS = 60.0  # a running query makes a request at least every ten seconds
_GRACE_SECONDS = 5.0  # within which a query that was just started or restarted opens its spool


@dataclass(frozen=True, slots=True)
class RunningStream:
    """The stream of a checkpoint.

    Attributes:
        checkpoint: Spark's checkpoint of the query.
        spool_path: option spoolPath of the query, or of the shared capture that it reads.
    """

    checkpoint: str
    spool_path: Path

    @classmethod
    def of(cls, checkpoint: str, spool_path: str = "") -> RunningStream:
        """Return the stream of a checkpoint; the default of spoolPath is that of a mirror.

        Raises:
            BadOption: the checkpoint has no stream, or its folder is not there.
            AccessRefused: the checkpoint cannot be read.
        """
        usual = f"{checkpoint.rstrip('/').removeprefix('file://')}/spool"
        found = cls(checkpoint, Path(spool_path or usual))
        if not found.folder.is_dir():
            raise BadOption(
                f"the folder {found.folder} of the stream does not exist.",
                "Give --spool with option spoolPath of the query, on the host of its driver. A query"
                " without spoolPath cannot receive requests. For a reader of informix-cdc capture, give"
                " spoolPath of the capture, on its host.",
            )
        return found

    @property
    def captured(self) -> StreamOffset:
        """The newest known offset of the stream that is captured now."""
        return self._shared or self.offset

    @property
    def columns_follow_tables(self) -> bool:
        """Whether the columns of delivered rows depend on the tables, so that a query fixes them."""
        return not {"shape=json", "shape=arrow"} & set(self.captured.row_form.split())

    @property
    def emits_truncates(self) -> bool:
        """Whether rows of kind truncate are delivered, after which a table can be read again."""
        return "truncate=emit" in self.captured.row_form.split()

    @property
    def is_delivered(self) -> bool:
        """Whether no planned batch is incomplete; those of readers are repeated by a shared capture."""
        if self.is_shared:
            return True
        (source,) = read_checkpoint(self.checkpoint).sources
        return source.delivered.position.place >= self.offset.position.place

    @property
    def is_shared(self) -> bool:
        """Whether a shared capture captures the stream, and not the query of the checkpoint."""
        return self._shared is not None

    @property
    def _shared(self) -> StreamOffset | None:
        """What the capture in the folder has published last, if it has the stream of the checkpoint."""
        published = load_published(self.spool_path)
        if published is None or published.offset is None:
            return None
        known = {published.offset.stream, *published.previous}
        return published.offset if self.offset.stream in known else None

    @property
    def offset(self) -> StreamOffset:
        """The latest planned offset."""
        sources = read_checkpoint(self.checkpoint).sources
        if len(sources) != 1:
            raise BadOption(
                f"the query of {self.checkpoint} has {len(sources)} sources of informix-cdc.",
                "Requests need a query with one.",
            )
        return sources[0].planned[1]

    @property
    def committed(self) -> RecordPlace:
        """The place up to which Spark has committed batches of the stream; (0, 0) if there is none."""
        (source,) = read_checkpoint(self.checkpoint).sources
        done = source.committed[1] if source.committed else None
        is_same = done is not None and done.stream == self.captured.stream
        return done.position.place if done is not None and is_same else (0, 0)

    @property
    def folder(self) -> Path:
        """The stream's folder; another one after a data loss."""
        return self.spool_path / self.captured.stream

    @property
    def requests(self) -> RequestFolder:
        """The stream's requests."""
        return RequestFolder(self.folder)

    @property
    def tables(self) -> Tables:
        """The states of the stream's tables."""
        manifest = load_manifest(self.folder)
        return manifest.present_tables if manifest else {}

    def opened(self) -> Spool:
        """Open the spool as the query would, which does not run now.

        Raises:
            AccessRefused: another process has it.
        """
        (source,) = read_checkpoint(self.checkpoint).sources
        known, manifest = self._shared or source.delivered, load_manifest(self.folder)
        return Spool(
            self.folder,
            known.stream,
            known.source,
            known.position,
            rows=manifest.rows if manifest else "",
            durable=True,
            tables=known.tables,
            captured=known.tables.keys() | self.tables.keys(),
            altering={name for each in self.altering() for name in each.tables},
            left=known.left,
        )

    def altering(self) -> list[Request]:
        """Return the requests to alter tables that have no answer."""
        return self.requests.altering()

    def tables_matching(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return the stream's tables that match names or patterns with `*` of owner.table.

        Args:
            patterns: empty: all tables.

        Raises:
            BadOption: a name or pattern matches none.
        """
        known = sorted(self.captured.tables)
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise BadOption(
                    f"no table of the stream matches {pattern!r}.", f"Its tables: {', '.join(known)}."
                )
        return tuple(n for n in known if not patterns or any(fnmatchcase(n, p) for p in patterns))

    def is_running(self) -> bool:
        """Return whether a query or a shared capture captures the stream."""
        return has_writer(self.spool_path if self.is_shared else self.folder)

    def runs_soon(self) -> bool:
        """Return whether the stream is captured, also if its query or capture has just been started."""
        ends = time.monotonic() + _GRACE_SECONDS
        while not self.is_running() and time.monotonic() < ends:
            time.sleep(_POLL_SECONDS)
        return self.is_running()

    def wait(
        self,
        is_true: Callable[[], bool],
        what: str,
        timeout_seconds: float,
        next_step: str = "run this command again: it continues where it was",
    ) -> None:
        """Wait until something is true.

        Args:
            is_true: whether it is.
            what: it, for messages.
            timeout_seconds: how long to wait.
            next_step: for messages, what the operator does when the query runs.

        Raises:
            ServerRefused: it does not happen in time, or no query captures the stream.
        """
        begun = seen = time.monotonic()
        while not is_true():
            if self.is_running():
                seen = time.monotonic()
            elif time.monotonic() - seen >= _GRACE_SECONDS and not is_true():
                raise ServerRefused(
                    f"{self._runner} does not run, so {what} does not happen.",
                    f"Start it, and {next_step}.",
                )
            if time.monotonic() - begun >= timeout_seconds:
                logs = "logs of the capture and of the query" if self.is_shared else "query's log"
                raise ServerRefused(
                    f"{what} did not happen within {timeout_seconds:g} s.",
                    f"Look at the {logs}, and {next_step}.",
                )
            time.sleep(_POLL_SECONDS)

    def is_read(self) -> bool:
        """Return whether a query of a shared capture was seen lately; else, whether it captures."""
        if not self.is_shared:
            return self.is_running()
        seen = max((each.seen_at for each in Readers(self.spool_path).all()), default=0.0)
        return time.time() - seen < _AWAY_SECONDS

    @property
    def _runner(self) -> str:
        is_shared = self.is_shared
        return f"the capture {self.spool_path}" if is_shared else f"the query of {self.checkpoint}"

    def answer(self, request_id: str) -> Answer | None:
        """Return the answer to a request; None if there is none yet."""
        return self.requests.answer(request_id)
