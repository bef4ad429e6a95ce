"""`informix-cdc status`: print capture sessions, the log, and the positions of checkpoints.

Rule: it changes nothing. The report is one value, printed as text or as JSON.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import sleep

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from informix_capture_client.catalog import PlaceInLog, place_in_log
from informix_capture_client.findings import Unanswered
from informix_capture_client.positions import log_page, show
from informix_capture_client.printable import shown_bytes
from informix_capture_client.session import OpenSession
from informix_cdc.options import SourceOptions
from informix_cdc.server import ServerLog, open_server_log, read_server_log
from informix_cdc.terminal import (
    answers,
    distance_text,
    headroom_text,
    place_as_json,
    snapshot_text,
    snapshots_of,
)
from informix_checkpoints.offsets import SourceProgress, read_checkpoint, restart_needs_of


@dataclass(frozen=True, slots=True)
class CheckpointStatus:
    """One source of a checkpoint: its restart position, and where that is in the log."""

    place: str
    progress: SourceProgress
    restart: int
    in_log: PlaceInLog


@dataclass(frozen=True, slots=True)
class Status:
    """The report about a server."""

    log: ServerLog
    checkpoints: tuple[CheckpointStatus, ...]


def print_status(
    options: SourceOptions, places: Sequence[str], *, as_json: bool, watch_seconds: float | None
) -> None:
    """Print the report once, or every `watch_seconds` until interrupted.

    Raises:
        InformixCdcError: the server or a checkpoint cannot be read.
    """
    with open_server_log(options) as connection, contextlib.suppress(KeyboardInterrupt):

        def ask() -> Status:
            return status_of(read_server_log(connection, options.dialect), places)

        if as_json:
            _print_json(ask, watch_seconds)
        else:
            _print_text(ask, watch_seconds)


def status_of(log: ServerLog, places: Sequence[str]) -> Status:
    """Compare checkpoints with a server's log."""
    found = [
        _checkpoint_status(place, progress, log)
        for place in places
        for progress in read_checkpoint(place).sources
    ]
    return Status(log, tuple(found))


def _checkpoint_status(place: str, progress: SourceProgress, log: ServerLog) -> CheckpointStatus:
    restart = restart_needs_of(progress, None).restart
    return CheckpointStatus(place, progress, restart, place_in_log(restart, log.space, log.clock))


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


# JSON


def status_as_json(status: Status) -> dict[str, object]:
    """Return the report as JSON; times are in ISO 8601, sizes in bytes."""
    log = status.log
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
        "checkpoints": [_checkpoint_json(checkpoint) for checkpoint in status.checkpoints],
    }


def _session_json(session: OpenSession) -> dict[str, object]:
    return {
        "session": session.session_id,
        "apiVersion": "{}.{}".format(*session.api_version),
        "created": _moment(session.created_at).isoformat(),
        "timeoutSeconds": session.timeout_seconds,
        "errorCode": session.error_code,
        "tables": [str(name) for name in session.tables],
    }


def _checkpoint_json(checkpoint: CheckpointStatus) -> dict[str, object]:
    return {
        "checkpoint": checkpoint.place,
        "source": checkpoint.progress.name,
        "commit": show(checkpoint.progress.delivered.position.commit),
        "restart": show(checkpoint.restart),
        "lost": _loss(checkpoint),
        "snapshots": {
            name: {"rows": state.rows, "done": state.is_done}
            for name, state in snapshots_of(checkpoint.progress.planned[1]).items()
        },
        **place_as_json(checkpoint.in_log),
    }


def _loss(checkpoint: CheckpointStatus) -> str | None:
    """Return the reported data loss at which the query has stopped, or None."""
    lost = checkpoint.progress.planned[1].lost
    return lost and lost.message


# text


def status_as_text(status: Status) -> Iterator[RenderableType]:
    """Yield the report as text."""
    log, space = status.log, status.log.space
    yield Text(f"{log.server}, {_time(log.clock)}", "bold")
    yield Text(
        f"Log: at {show(log.current)}; {_kept(space.oldest.number, space.current.number)};"
        f" {shown_bytes(space.total_bytes)} in total, {shown_bytes(space.free_bytes)} never used."
    )
    yield _sessions(log.sessions)
    for checkpoint in status.checkpoints:
        yield from _checkpoint_lines(checkpoint)


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


def _checkpoint_lines(checkpoint: CheckpointStatus) -> Iterator[Text]:
    commit = checkpoint.progress.delivered.position.commit
    yield Text(f"{checkpoint.place}, source {checkpoint.progress.name}", "bold")
    yield Text(f"  delivered up to {show(commit)}; a restart reads from {show(checkpoint.restart)}")
    if loss := _loss(checkpoint):
        yield Text(f"  Stopped at a reported data loss: {loss}", "bold red")
    if snapshots := snapshots_of(checkpoint.progress.planned[1]):
        in_sink = checkpoint.progress.committed  # later rows are only read and planned
        committed = snapshots_of(in_sink[1]) if in_sink else {}
        shown = [
            snapshot_text(name, state)
            + ("" if committed.get(name) == state else " (not committed yet)")
            for name, state in snapshots.items()
        ]
        yield Text(f"  snapshots: {'; '.join(shown)}")
    yield Text(f"  lag, to the end of the log: {distance_text(checkpoint.in_log.behind)}")
    yield Text("  headroom, until it is overwritten: ").append_text(headroom_text(checkpoint.in_log))


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _time(seconds: int) -> str:
    return f"{_moment(seconds):%Y-%m-%d %H:%M:%S} UTC"
