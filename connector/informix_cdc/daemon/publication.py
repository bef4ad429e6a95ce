"""What a shared capture publishes: it is written when something changes that readers must know.

Rule: the capture thread publishes what the rows are before it stores any; the loop of the process
publishes everything else.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from informix_capture_client.errors import ConnectionLost, InformixCdcError, RestartRequired
from informix_capture_client.failpoints import failpoint
from informix_capture_client.positions import Position
from informix_capture_client.shapes import delivered_tables
from informix_cdc.capture import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_checkpoints.shared_captures import (
    PreviousStream,
    PublishedCapture,
    PublishedError,
    PublishedTable,
    load_published,
    save_published,
)
from informix_checkpoints.spool import Spool, disk_errors

_QUIET_SECONDS = 10.0  # a later restart position of a quiet stream, for the next start
_NOWHERE = Position(0, 0)


@dataclass(slots=True)
class Publication:
    """The file of a capture, and what was written to it last.

    Args:
        folder: of the capture.
        source: options of the format.
        state: of the capture.
        clock: a monotonic clock.

    Attributes:
        published: what the file has; None before it is written first.
        rows: what the rows are; None before the tables are described.
        written_at: when it was written last, by the clock.
    """

    folder: Path
    source: SourceOptions
    state: CaptureState
    clock: Callable[[], float]
    published: PublishedCapture | None = None
    rows: PublishedCapture | None = None
    written_at: float = -math.inf
    _writing: threading.Lock = field(default_factory=threading.Lock)

    @property
    def previous(self) -> Mapping[str, PreviousStream]:
        """The streams before the current one."""
        return self.published.previous if self.published else {}

    def load(self) -> None:
        """Read what an earlier process has published.

        Raises:
            DataLoss, AccessRefused: the file is damaged, or cannot be read.
        """
        self.published = load_published(self.folder)

    def describe(self, tables: SourceTables) -> None:
        """Publish what the rows are, before any is stored; the capture thread calls it."""
        rows = _described(self.source, tables)
        with self._writing:
            self.rows, known = rows, self.published
            if known is None:
                return
            news = replace(known, options=rows.options, tables=rows.tables)
            if news != known:
                self._save(news)

    def publish(
        self, spool: Spool, answered: Callable[[PublishedCapture | None], Mapping[str, int]]
    ) -> None:
        """Write what has changed; a quiet stream's position only now and then.

        Args:
            spool: of the stream.
            answered: returns the answered questions of readers, with those of earlier processes.
        """
        with self._writing:
            assert self.rows is not None  # a stream begins after its tables are described
            state, known = self.state, self.published
            news = replace(
                self.rows,
                offset=replace(state.offset(spool), row_form=self.source.row_form().of_keys),
                previous=self._previous(spool),
                waits=state.waits_for_spark,
                answered=answered(known),
            )
            now = self.clock()
            is_quiet = known is not None and _without_position(news) == _without_position(known)
            if is_quiet and (news == known or now - self.written_at < _QUIET_SECONDS):
                return
            failpoint("daemon.before_publish")
            spool.store()  # readers look for what is published; the next start begins at its position
            self._save(news)
            self.written_at = now

    def publish_error(self) -> None:
        """Let readers report an error that a restart does not mend."""
        error, known = self.state.outcome.error, self.published or self.rows
        if not isinstance(error, InformixCdcError) or isinstance(error, ConnectionLost):
            return
        if known is None or error.is_temporary or isinstance(error, RestartRequired):
            return
        with contextlib.suppress(OSError):  # it may be the disk: the log has the error
            save_published(replace(known, error=PublishedError.of(error)), self.folder)

    def _save(self, news: PublishedCapture) -> None:
        with disk_errors(self.folder):
            save_published(news, self.folder)
        self.published = news

    def _previous(self, spool: Spool) -> dict[str, PreviousStream]:
        """Return the streams before the current one, each with the one that follows it.

        A stream is published before any of its rows are removed: its start is the first one then.
        """
        known = list(self.state.previous_streams.items())
        left = [each for each in known if each[0] != spool.stream]  # it may be left at this moment
        names = [*(name for name, _ in left), spool.stream]
        begins = {names[-2]: spool.manifest.start.place} if left else {}
        begins |= {name: each.begins for name, each in self.previous.items()}
        return {
            name: PreviousStream(end, after, begins.get(name, (0, 0)))
            for (name, end), after in zip(left, names[1:], strict=True)
        }


def _without_position(published: PublishedCapture) -> PublishedCapture:
    """Return what must be known at once: everything but positions of the same stream."""
    if published.offset is None:
        return published
    return replace(published, offset=replace(published.offset, position=_NOWHERE, settling=None))


def _described(options: SourceOptions, source: SourceTables) -> PublishedCapture:
    """Return what is published before a stream has begun."""
    delivered = delivered_tables(source.tables, source.rules)
    return PublishedCapture(
        tables=tuple(
            PublishedTable(table.name, table.columns.serialize().to_pybytes(), definition.to_text())
            for table, definition in zip(delivered, source.definitions, strict=True)
        ),
        options={
            "server": options.connection.server,
            "database": options.connection.database,
            "tableEvents": str(options.rows.table_events).lower(),
        },
    )
