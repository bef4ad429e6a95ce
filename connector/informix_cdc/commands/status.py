"""`informix-cdc status`: print a mirror's tables, capture sessions, the log, and checkpoints.

Rule: it changes nothing. The report is one value, printed as text or as JSON.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import sleep
from typing import TYPE_CHECKING

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.findings import Unanswered
from informix_capture_client.positions import log_page, show
from informix_capture_client.printable import shown_bytes
from informix_capture_client.session import OpenSession
from informix_capture_client.transport import Transport
from informix_cdc.commands.checkpoint_status import (
    SourceStatus,
    source_as_json,
    source_as_text,
    source_status,
)
from informix_cdc.commands.configuration import MirrorFile
from informix_cdc.options import SourceOptions
from informix_cdc.server import ServerLog, open_server_log, read_server_log
from informix_cdc.terminal import TABLES_STOPPED, answers, counted
from informix_checkpoints.offsets import Checkpoint, read_checkpoint
from informix_checkpoints.running_streams import RunningStream

if TYPE_CHECKING:  # of a mirror only
    from informix_cdc.lake import StateOfMirror


@dataclass(frozen=True, slots=True)
class Status:
    """The report about a server, and about a mirror of it.

    Attributes:
        log: of the server; None if it was not asked.
        checkpoints: given ones.
        sources: their sources of this package.
        with_offsets: whether their offsets are wanted.
        mirror: state of a mirror.
        is_running: whether it runs.
        problem: why the server cannot be asked; only with a mirror.
    """

    log: ServerLog | None
    checkpoints: tuple[Checkpoint, ...] = ()
    sources: tuple[SourceStatus, ...] = ()
    with_offsets: bool = False
    mirror: StateOfMirror | None = None
    is_running: bool = False
    problem: str = ""

    @property
    def exit_code(self) -> int:
        """3 if a table of the mirror has stopped, 1 if the server cannot be asked."""
        if self.mirror is not None and any(each.is_stopped for each in self.mirror.tables):
            return TABLES_STOPPED
        return int(bool(self.problem))


def print_status(
    options: SourceOptions | None,
    places: Sequence[str],
    mirror: MirrorFile | None,
    spool_path: str | None = None,
    *,
    as_json: bool,
    watch_seconds: float | None,
) -> int:
    """Print the report once, or every `watch_seconds` until interrupted; return the exit code.

    Args:
        options: of the server; None: it is not asked.
        places: checkpoints.
        mirror: whose tables are shown.
        spool_path: folder of the checkpoints' spools, or empty, if offsets are wanted; otherwise None.
        as_json: print JSON.
        watch_seconds: for how long to wait between reports.

    Raises:
        InformixCdcError: the server or a checkpoint cannot be read; with a mirror, the server's part of
            the report says so instead.
    """
    last: list[Status] = []
    with _Server(options) as server, contextlib.suppress(KeyboardInterrupt):

        def ask() -> Status:
            last[:] = [_asked(server, places, mirror, spool_path)]
            return last[0]

        (_print_json if as_json else _print_text)(ask, watch_seconds)
    return last[0].exit_code if last else 0


class _Server:
    """The server, over one connection for all reports; opened again after it has failed."""

    def __init__(self, options: SourceOptions | None) -> None:
        self._options = options
        self._open = contextlib.ExitStack()
        self._connection: Transport | None = None

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def log(self) -> ServerLog | None:
        """Return the log as it is now; None without options."""
        if self._options is None:
            return None
        try:
            if self._connection is None:
                self._connection = self._open.enter_context(open_server_log(self._options.connection))
            return read_server_log(self._connection, self._options.connection.dialect)
        except InformixCdcError:
            self._connection = None
            self._open.close()
            raise


def _asked(
    server: _Server, places: Sequence[str], mirror: MirrorFile | None, spool_path: str | None
) -> Status:
    state, is_running = None, False
    if mirror is not None:
        from informix_cdc.lake import state_of_mirror  # needs the extra `delta`

        state = state_of_mirror(mirror.settings)
        with contextlib.suppress(BadOption):
            is_running = RunningStream.of(mirror.settings.checkpoint, mirror.spool).is_running()
    # Before the log is asked for its end: what is delivered meanwhile lies behind it.
    checkpoints = [read_checkpoint(place) for place in places]
    log, problem = None, ""
    try:
        log = server.log()
    except InformixCdcError as reason:
        if state is None:
            raise
        problem = str(reason)
    with_offsets = spool_path is not None
    sources = [(each.place, source) for each in checkpoints for source in each.sources]
    is_known = log is not None or with_offsets
    return Status(
        log,
        tuple(checkpoints),
        tuple(source_status(*each, spool_path or "", log) for each in sources) if is_known else (),
        with_offsets,
        state,
        is_running,
        problem,
    )


def _print_json(ask: Callable[[], Status], watch_seconds: float | None) -> None:
    click.echo(json.dumps(status_as_json(ask())))
    while watch_seconds is not None:
        sleep(watch_seconds)
        click.echo(json.dumps(status_as_json(ask())))


def _print_text(ask: Callable[[], Status], watch_seconds: float | None) -> None:
    console = answers()
    if watch_seconds is not None and console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            while True:
                live.update(Group(*status_as_text(ask())), refresh=True)
                sleep(watch_seconds)
    while True:
        for piece in status_as_text(ask()):
            console.print(piece)
        if watch_seconds is None:
            return
        console.print()
        console.file.flush()  # readers of a pipe or file get each report at once
        sleep(watch_seconds)


_STYLES = {"stopped": "bold red", "loading": "yellow", "mirrored": "green"}  # in the order of rows
_ORDER = [*_STYLES]

# JSON


def status_as_json(status: Status) -> dict[str, object]:
    """Return the report as JSON; times are in ISO 8601, sizes in bytes."""
    shown: dict[str, object] = {}
    if status.mirror is not None:
        shown["mirror"] = _mirror_json(status.mirror, is_running=status.is_running)
    if status.log is not None:
        shown |= _log_json(status.log)
    elif status.mirror is not None:
        shown["problem"] = status.problem or None
    if status.log is not None or status.with_offsets:
        shown["checkpoints"] = [
            source_as_json(each, with_offsets=status.with_offsets) for each in status.sources
        ]
    if status.with_offsets:
        shown["otherSources"] = [
            {"checkpoint": each.place, "source": line.name, "offset": line.text}
            for each in status.checkpoints
            for line in each.foreign
        ]
    return shown


def _log_json(log: ServerLog) -> dict[str, object]:
    sessions: list[object] | None = None  # null: the user may not list sessions; []: there are none
    if not isinstance(log.sessions, Unanswered):
        sessions = [_session_json(each) for each in log.sessions]
    return {
        "server": log.server,
        "clock": _moment(log.clock).isoformat(),
        "log": {
            "current": show(log.current),
            "oldest": show(log_page(log.space.oldest.number, 0)),
            "logs": len(log.space.files),
            "totalBytes": log.space.total_bytes,
            "neverUsedBytes": log.space.free_bytes,
        },
        "sessions": sessions,
    }


def _mirror_json(mirror: StateOfMirror, *, is_running: bool) -> dict[str, object]:
    return {
        "isRunning": is_running,
        "commit": None if mirror.commit is None else show(mirror.commit),
        "committedAt": _iso(mirror.committed_at),
        "tables": [
            {
                "table": each.table,
                "target": each.target,
                "state": each.state,
                "reason": each.reason or None,
                "rows": each.rows,
                "changedAt": _iso(each.changed_at),
                "verifiedAt": _iso(each.verified_at),
                "differences": each.differences if each.verified_at else None,
            }
            for each in mirror.tables
        ],
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def _session_json(session: OpenSession) -> dict[str, object]:
    return {
        "session": session.session_id,
        "apiVersion": "{}.{}".format(*session.api_version),
        "created": _moment(session.created_at).isoformat(),
        "timeoutSeconds": session.timeout_seconds,
        "errorCode": session.error_code,
        "tables": [str(name) for name in session.tables],
    }


# text


def status_as_text(status: Status) -> Iterator[RenderableType]:
    """Yield the report as text."""
    if status.mirror is not None:
        yield from _mirror_lines(status.mirror, is_running=status.is_running)
    if status.log is not None:
        yield from _log_lines(status.log)
    elif status.mirror is not None:
        yield Text(status.problem or "It reads a capture, which `informix-cdc readers` shows.")
    for source in status.sources:
        yield from source_as_text(source, with_offsets=status.with_offsets)
    if status.with_offsets:
        for line in (line for each in status.checkpoints for line in each.foreign):
            skipped = f"source {line.name} does not belong to informix-cdc, skipped: {line.text}"
            yield Text(skipped, "dim")


def _log_lines(log: ServerLog) -> Iterator[RenderableType]:
    space = log.space
    yield Text(f"{log.server}, {_time(log.clock)}", "bold")
    yield Text(
        f"Log: at {show(log.current)}; {_kept(space.oldest.number, space.current.number)};"
        f" {shown_bytes(space.total_bytes)} in total, {shown_bytes(space.free_bytes)} never used."
    )
    yield _sessions(log.sessions)


def _mirror_lines(mirror: StateOfMirror, *, is_running: bool) -> Iterator[RenderableType]:
    """Yield the tables of a mirror, those that need somebody first."""
    head = Text.assemble(("Mirror: ", "bold"), "running" if is_running else ("not running", "yellow"))
    if mirror.commit is not None and mirror.committed_at is not None:
        head.append(f", up to {show(mirror.commit)} of {_utc(mirror.committed_at)}")
    yield head
    counts = Counter(each.state for each in mirror.tables)
    parts = [f"{count} {state}" for state, count in sorted(counts.items())]
    yield Text(f"{counted(len(mirror.tables), 'table')}: {', '.join(parts) or 'none yet'}")
    table = Table("table", "state", Column("rows", justify="right"), "last change", "verified")
    table.box, table.pad_edge, table.header_style = None, False, "dim"
    for each in sorted(mirror.tables, key=lambda each: (_ORDER.index(each.state), each.table)):
        verified = "" if each.verified_at is None else _utc(each.verified_at)
        differs = f", {counted(each.differences, 'difference')}" if each.differences else ""
        table.add_row(
            each.table,
            Text(each.state, _STYLES.get(each.state, "")),
            "" if each.rows is None else f"{each.rows:,}",
            "" if each.changed_at is None else _utc(each.changed_at),
            Text(verified + differs, "bold red" if differs else ""),
        )
    yield table
    for each in mirror.tables:
        if each.reason:
            yield Text(f"{each.table}: {each.reason}", _STYLES.get(each.state, ""))


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _kept(oldest: int, current: int) -> str:
    return (
        f"only log {current} is kept" if oldest == current else f"logs {oldest} to {current} are kept"
    )


def _sessions(sessions: Sequence[OpenSession] | Unanswered) -> Table | Text:
    if isinstance(sessions, Unanswered):
        return Text(f"Capture sessions: {sessions.reason} {sessions.remedy}")
    if not sessions:
        return Text("No capture session is open.")
    columns = ("session", "opened", "timeout", "error", "captures")
    table = Table(*columns, box=None, pad_edge=False, header_style="dim")
    for session in sessions:
        tables = ", ".join(map(str, session.tables)) or "nothing"
        timeout, error = f"{session.timeout_seconds} s", str(session.error_code or "-")
        table.add_row(str(session.session_id), _time(session.created_at), timeout, error, tables)
    return table


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _time(seconds: int) -> str:
    return f"{_moment(seconds):%Y-%m-%d %H:%M:%S} UTC"
