"""One source of a checkpoint: its offsets, what a restart needs, and where that is in the server's log.

Rule: `status` prints it, with --offsets in full. The report is one value, printed as text or as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from informix_capture_client.catalog import PlaceInLog, place_in_log
from informix_capture_client.positions import page_after, show
from informix_cdc.server import ServerLog
from informix_cdc.terminal import (
    counted,
    distance_text,
    headroom_text,
    place_as_json,
    snapshot_text,
    snapshots_of,
)
from informix_checkpoints.offsets import (
    BatchAgain,
    RestartNeeds,
    SourceProgress,
    StreamOffset,
    in_runs,
    restart_needs_of,
)
from informix_checkpoints.spool import Manifest, load_manifest
from informix_checkpoints.table_states import TableState, tables_to_json

_MOST_NAMED = 8  # snapshots; more are shown by their total
_AHEAD = (
    "BEYOND THE END OF THE LOG: from another server, or this one was restored; a restart will"
    " fail. (A server that has not flushed its log buffer yet shows this for a moment.)"
)


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of a checkpoint.

    Attributes:
        place: the checkpoint.
        progress: its last batches.
        needs: what a restart needs.
        spool: the stored rows of its stream, if a folder was given and has them.
        spool_path: that folder; empty if none was given.
        in_log: where the restart position is in the server's log; None if no server was asked.
        is_ahead: changes were delivered that are behind the end of the log.
    """

    place: str
    progress: SourceProgress
    needs: RestartNeeds
    spool: Manifest | None = None
    spool_path: str = ""
    in_log: PlaceInLog | None = None
    is_ahead: bool = False

    @property
    def lost(self) -> str | None:
        """The reported data loss at which the query has stopped."""
        lost = self.progress.planned[1].lost
        return lost and lost.message


def source_status(
    place: str, progress: SourceProgress, spool_path: str, log: ServerLog | None
) -> SourceStatus:
    """Return the status of a source.

    Raises:
        DataLoss: the manifest of the spool is damaged.
    """
    spool = load_manifest(Path(spool_path) / progress.planned[1].stream) if spool_path else None
    needs = restart_needs_of(progress, spool)
    if log is None:
        return SourceStatus(place, progress, needs, spool, spool_path)
    in_log = place_in_log(needs.restart, log.space, log.clock)
    is_ahead = progress.delivered.position.commit >= page_after(log.current)
    return SourceStatus(place, progress, needs, spool, spool_path, in_log, is_ahead)


# JSON


def source_as_json(source: SourceStatus, *, with_offsets: bool) -> dict[str, object]:
    """Return a source as JSON; positions in the server's notation, in offsets as integers too."""
    progress = source.progress
    return {
        "checkpoint": source.place,
        "source": progress.name,
        "commit": show(progress.delivered.position.commit),
        "restart": show(source.needs.restart),
        "isAheadOfLog": source.is_ahead,
        "lost": source.lost,
        "snapshots": {
            name: {"rows": state.rows, "done": state.is_done}
            for name, state in snapshots_of(progress.planned[1]).items()
        },
        **(place_as_json(source.in_log) if source.in_log else {}),
        **({"offsets": _offsets_json(source)} if with_offsets else {}),
    }


def _offsets_json(source: SourceStatus) -> dict[str, object]:
    progress = source.progress
    return {
        "committed": _batch_json(*progress.committed) if progress.committed else None,
        "planned": _batch_json(*progress.planned),
        "restart": _needs_json(source.needs),
        "spool": _spool_json(source.spool) if source.spool else None,
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


# text


def source_as_text(source: SourceStatus, *, with_offsets: bool) -> Iterator[Text | Table]:
    """Yield a source as text."""
    yield Text(f"{source.place}, source {source.progress.name}", "bold")
    yield from _offset_lines(source) if with_offsets else _short_lines(source)
    if source.in_log is None:
        return
    if source.is_ahead:
        yield Text(f"  {_AHEAD}", "bold red")
        return
    yield Text(f"  lag, to the end of the log: {distance_text(source.in_log.behind)}")
    yield Text("  headroom, until it is overwritten: ").append_text(headroom_text(source.in_log))


def _short_lines(source: SourceStatus) -> Iterator[Text]:
    commit = source.progress.delivered.position.commit
    yield Text(f"  delivered up to {show(commit)}; a restart reads from {show(source.needs.restart)}")
    if source.lost:
        yield Text(f"  Stopped at a reported data loss: {source.lost}", "bold red")
    snapshots = snapshots_of(source.progress.planned[1])
    if len(snapshots) > _MOST_NAMED:
        done = sum(state.is_done for state in snapshots.values())
        rows = counted(sum(state.rows for state in snapshots.values()), "row")
        yield Text(f"  snapshots: {done:,} of {len(snapshots):,} done, {rows}")
    elif snapshots:
        in_sink = source.progress.committed  # later rows are only read and planned
        committed = snapshots_of(in_sink[1]) if in_sink else {}
        shown = [
            snapshot_text(name, state)
            + ("" if committed.get(name) == state else " (not committed yet)")
            for name, state in snapshots.items()
        ]
        yield Text(f"  snapshots: {'; '.join(shown)}")


def _offset_lines(source: SourceStatus) -> Iterator[Text | Table]:
    yield Text(_stream_text(source.progress))
    yield _positions_table(source.progress)
    yield Text(_needs_text(source.needs))
    if source.spool_path:
        yield Text(_spool_text(source))


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


def _spool_text(source: SourceStatus) -> str:
    spool, stream = source.spool, source.progress.planned[1].stream
    if spool is None:
        return f"The spool {source.spool_path} has no data of stream {stream}."
    rows = sum(segment.rows for segment in spool.segments)
    use = "A restart uses it." if source.needs.is_spool_used else "A restart cannot use it."
    return (
        f"The spool has {counted(rows, 'row')} in {counted(len(spool.segments), 'segment')}:"
        f" commits after {show(spool.start.commit)} up to {show(spool.high_watermark.commit)}."
        f" {use}"
    )
