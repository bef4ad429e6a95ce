"""Which tables a stream has, and which the options name: what may differ, and what may not.

Rule: what a stream knows of its tables is in its offsets and in its spool; what it shall have, in the
options.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from informix_capture_client.errors import NEW_STREAM, BadOption, DataLoss, Gap
from informix_capture_client.positions import Position, show
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import Spool, load_manifest


def in_this_version(offset: StreamOffset, source: SourceTables) -> StreamOffset:
    """Return an offset with what it says of tables; version 1 has one digest for all of them.

    It is that of the list of tables in the options, or of the first of them, where others were added
    behind them since.

    Raises:
        DataLoss: it is of another list of tables, or of another server.
    """
    if offset.tables is not None:
        return offset
    for count in range(len(source.tables), 0, -1):
        if source.of_first(count) == offset.source:
            states = source.states()
            known = {name: states[name] for name in source.names[:count]}
            return replace(offset, source=source.source, tables=known)
    raise other_source(offset.source, source.of_first(len(source.tables)))


def require_may_leave(offset: StreamOffset, source: SourceTables, planned: Position | None) -> None:
    """Refuse to leave out a table that the stream is not done with.

    Raises:
        BadOption: rows of it are in a planned batch, or its snapshot is under way.
    """
    left = sorted((offset.tables or {}).keys() - set(source.names))
    if left and planned is not None and planned.place > offset.position.place:
        raise BadOption(
            f"Spark runs a batch again that was planned with table {left[0]}, which option table does"
            " not name any more.",
            "Run the query once with the former options until that batch is done, then change them.",
            option="table",
        )
    for name, state in (offset.tables or {}).items():
        if name in left and state.snapshot is not None and not state.snapshot.is_done:
            raise BadOption(
                f"table {name}, which option table does not name any more, has a snapshot under way.",
                "Let the snapshot end, then take the table out of the option.",
                option="table",
            )


def require_chunks(spool: Spool, planned: Position | None) -> None:
    """Refuse to capture a planned batch again that has rows of a snapshot: the log does not have them.

    Raises:
        DataLoss: the spool does not hold them any more.
    """
    if planned is not None and planned.chunk > spool.manifest.high_watermark.chunk:
        raise DataLoss(
            f"Spark runs a batch again, up to {show(planned.commit)}, that has rows of a snapshot, and"
            f" the spool {spool.folder} does not hold them any more.",
            f"Bring the folder back, if it was moved or spoolPath was changed; else {NEW_STREAM}."
            " failOnDataLoss=false changes nothing here.",
        )


def require_form_of_chunks(
    folder: Path, start: Position, planned: Position | None, forms: Collection[str]
) -> None:
    """Refuse options that would leave the rows of a planned batch that a snapshot has read.

    A spool leaves what it holds in another form, and captures it again: the log has not these rows.

    Raises:
        BadOption: rows have another form than those that are held; nothing has been changed.
    """
    held = load_manifest(folder) if planned is not None and planned.chunk > start.chunk else None
    if (
        held is None
        or planned is None
        or held.rows in forms
        or held.high_watermark.chunk < planned.chunk
    ):
        return
    raise BadOption(
        f"Spark runs a batch again, up to {show(planned.commit)}, that has rows of a snapshot, and the"
        " options give rows another form than the spool holds them in.",
        "Run the query once with the former options until that batch is done, then change them.",
    )


def other_source(begun_on: str, found: str) -> DataLoss:
    """Return the error for a server or tables that are not those of the stream."""
    return DataLoss(
        f"the stream was begun on source {begun_on}, but server, database and tables now make source"
        f" {found}.",
        "A table was dropped, re-created or altered, another server answers, or the options changed:"
        f" {NEW_STREAM}.",
        expected=begun_on,
        found=found,
        gap=Gap.OTHER_SOURCE,
    )


def other_table(name: str, begun_on: str, found: str) -> DataLoss:
    """Return the error for a table that is not the one that the stream has delivered rows of."""
    return DataLoss(
        f"the stream has table {name} of digest {begun_on}, but it now makes digest {found}.",
        "The table was dropped, re-created or altered, or the options choose other columns of it:"
        f" {NEW_STREAM}. For an ALTER that the stream survives, see --receipt of"
        " informix-cdc release, and option schemaChange.",
        expected=begun_on,
        found=found,
        table=name,
        gap=Gap.OTHER_SOURCE,
    )
