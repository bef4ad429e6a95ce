"""`informix-cdc offsets`: print the log position of a checkpoint, and what a restart needs.

Rule: it changes nothing. The report is one value, printed as text or as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from informix_capture_client.catalog import PlaceInLog, place_in_log
from informix_capture_client.positions import show
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server import ServerLog, open_server_log, read_server_log
from informix_cdc.terminal import answers, counted, headroom_text, place_as_json
from informix_checkpoints.offsets import (
    BatchAgain,
    Checkpoint,
    RestartNeeds,
    SourceProgress,
    StreamOffset,
    in_runs,
    read_checkpoint,
    restart_needs_of,
)
from informix_checkpoints.spool import Manifest, load_manifest
from informix_checkpoints.table_states import TableState, tables_to_json


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source of the query: its progress, its spool if given and found, and what a restart needs.

    `in_log` is where the restart position is in the server's log, if a server was named.
    """

    progress: SourceProgress
    spool: Manifest | None
    needs: RestartNeeds
    in_log: PlaceInLog | None


@dataclass(frozen=True, slots=True)
class OffsetsReport:
    """The report on a checkpoint; `spool_path` is empty if none was given."""

    checkpoint: Checkpoint
    sources: tuple[SourceReport, ...]
    spool_path: str


def print_offsets(place: str, spool_path: str, options: SourceOptions | None, *, as_json: bool) -> None:
    """Read a checkpoint and print its content; with options, read the server's log too.

    Raises:
        BadOption: it is not a checkpoint of this source, or it is damaged.
        AccessRefused: it cannot be read.
        DataLoss: the manifest of the spool is damaged.
    """
    report = report_of(place, spool_path, options)
    if as_json:
        click.echo(json.dumps(report_as_json(report)))
        return
    console = answers()
    for piece in report_as_text(report):
        console.print(piece)


def report_of(place: str, spool_path: str, options: SourceOptions | None) -> OffsetsReport:
    """Read a checkpoint, and the spools of its streams under `spool_path`."""
    checkpoint = read_checkpoint(place)
    log = _server_log(options.connection) if options else None
    sources = tuple(_source_report(progress, spool_path, log) for progress in checkpoint.sources)
    return OffsetsReport(checkpoint, sources, spool_path)


def _server_log(connection_options: ConnectionOptions) -> ServerLog:
    with open_server_log(connection_options) as connection:
        return read_server_log(connection, connection_options.dialect)


def _source_report(progress: SourceProgress, spool_path: str, log: ServerLog | None) -> SourceReport:
    stream = progress.planned[1].stream
    spool = load_manifest(Path(spool_path) / stream) if spool_path else None
    needs = restart_needs_of(progress, spool)
    in_log = place_in_log(needs.restart, log.space, log.clock) if log else None
    return SourceReport(progress, spool, needs, in_log)


def report_as_json(report: OffsetsReport) -> dict[str, object]:
    """Return the report as JSON; positions in the server's notation and as integers."""
    return {
        "checkpoint": report.checkpoint.place,
        "sources": [_source_json(source) for source in report.sources],
        "otherSources": [
            {"source": line.name, "offset": line.text} for line in report.checkpoint.foreign
        ],
    }


def _source_json(source: SourceReport) -> dict[str, object]:
    progress = source.progress
    return {
        "source": progress.name,
        "committed": _batch_json(*progress.committed) if progress.committed else None,
        "planned": _batch_json(*progress.planned),
        "restart": _needs_json(source.needs),
        "spool": _spool_json(source.spool) if source.spool else None,
        "server": place_as_json(source.in_log) if source.in_log else None,
    }


def _batch_json(number: int, offset: StreamOffset) -> dict[str, object]:
    position = offset.position
    return {
        "batch": number,
        "stream": offset.stream,
        "digest": offset.source,
        "commit": show(position.commit),
        "restart": show(position.restart),
        "commitSequence": position.commit,
        "restartSequence": position.restart,
        "unseen": list(position.unseen),
        "lost": offset.lost and offset.lost.message,
        "chunk": position.chunk,
        "tables": tables_to_json(offset.tables),
    }


def _needs_json(needs: RestartNeeds) -> dict[str, object]:
    batch = needs.batch
    return {
        "position": show(needs.restart),
        "positionSequence": needs.restart,
        "oldestLog": needs.oldest_log,
        "usesSpool": needs.is_spool_used,
        "batchRunAgain": batch
        and {
            "batch": batch.number,
            "above": show(batch.above),
            "upto": show(batch.up_to),
            "isEmpty": batch.is_empty,
            "isInSpool": batch.is_in_spool,
        },
    }


def _spool_json(spool: Manifest) -> dict[str, object]:
    return {
        "above": show(spool.start.commit),
        "upto": show(spool.high_watermark.commit),
        "restart": show(spool.high_watermark.restart),
        "segments": len(spool.segments),
        "transactions": sum(segment.transactions for segment in spool.segments),
        "rows": sum(segment.rows for segment in spool.segments),
        "bytes": sum(segment.size_bytes for segment in spool.segments),
    }


def report_as_text(report: OffsetsReport) -> Iterator[Text | Table]:
    """Yield the report as text."""
    for source in report.sources:
        progress = source.progress
        yield Text(f"{report.checkpoint.place}, source {progress.name}", "bold")
        yield Text(_stream_text(progress))
        yield _positions_table(progress)
        yield Text(_needs_text(source.needs))
        if report.spool_path:
            yield Text(_spool_text(source, report.spool_path))
        if source.in_log:
            yield Text("Headroom until the server overwrites the restart position: ").append_text(
                headroom_text(source.in_log)
            )
    for line in report.checkpoint.foreign:
        yield Text(f"source {line.name} does not belong to informix-cdc, skipped: {line.text}", "dim")


def _stream_text(progress: SourceProgress) -> str:
    planned, committed = progress.planned[1], progress.committed and progress.committed[1]
    text = f"Stream {planned.stream}, source digest {planned.source}.{_tables_text(planned, committed)}"
    if planned.lost is not None:
        text += f" Stopped at a reported data loss: {planned.lost.message}"
    if committed is None or committed.stream in ("", planned.stream):
        return text
    return f"{text} It continues from where stream {committed.stream} lost data."


def _tables_text(offset: StreamOffset, committed: StreamOffset | None) -> str:
    known = committed.tables if committed is not None else {}
    shown = [_table_text(name, state, known.get(name)) for name, state in sorted(offset.tables.items())]
    return f" Tables: {', '.join(shown)}."


def _table_text(name: str, state: TableState, committed: TableState | None) -> str:
    facts = []
    if state.since:
        facts.append(f"since {show(state.since)}")
    if (snapshot := state.snapshot) is not None:
        kind = f"{snapshot.purpose or 'snapshot'} {'done' if snapshot.is_done else 'running'}"
        if committed is None or committed.snapshot != snapshot:
            kind += ", read but not committed"
        facts.append(f"{kind}, {counted(snapshot.rows, 'row')}")
    return f"{name} ({'; '.join(facts)})" if facts else name


_COLUMNS = ("", "batch", "commit", "restart", "unseen ids")


def _positions_table(progress: SourceProgress) -> Table:
    table = Table(*_COLUMNS, box=None, pad_edge=False, header_style="dim")
    rows: Mapping[str, tuple[int, StreamOffset] | None] = {
        "committed": progress.committed,
        "planned": progress.planned,
    }
    for name, batch in rows.items():
        table.add_row(*(_row(name, *batch) if batch else (name, "none")))
    return table


def _row(name: str, number: int, offset: StreamOffset) -> tuple[str, ...]:
    position = offset.position
    unseen = ", ".join(map(str, in_runs(position.unseen))) or "-"
    return name, str(number), show(position.commit), show(position.restart), unseen


def _needs_text(needs: RestartNeeds) -> str:
    return (
        f"A restart reads the log from {show(needs.restart)}: logical log {needs.oldest_log} and"
        f" all later ones must still exist. {_again_text(needs.batch)}"
    )


def _again_text(batch: BatchAgain | None) -> str:
    if batch is None:
        return "Every planned batch is committed."
    if batch.is_empty:
        return f"A restart runs batch {batch.number} again, which is not committed; it is empty."
    where = "they are in the spool" if batch.is_in_spool else "they are read from the log again"
    return (
        f"A restart runs batch {batch.number} again, which is not committed: commits after"
        f" {show(batch.above)} up to {show(batch.up_to)}; {where}."
    )


def _spool_text(source: SourceReport, spool_path: str) -> str:
    spool, stream = source.spool, source.progress.planned[1].stream
    if spool is None:
        return f"The spool {spool_path} has no data of stream {stream}."
    rows = sum(segment.rows for segment in spool.segments)
    use = "A restart uses it." if source.needs.is_spool_used else "A restart cannot use it."
    return (
        f"The spool has {counted(rows, 'row')} in {counted(len(spool.segments), 'segment')}:"
        f" commits after {show(spool.start.commit)} up to {show(spool.high_watermark.commit)}."
        f" {use}"
    )
