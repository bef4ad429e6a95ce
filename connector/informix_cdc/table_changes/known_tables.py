"""Compare the tables of a stream with those of the options.

Rule: offsets and spool have the tables of a stream; the options have the tables that it should have.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from informix_capture_client.errors import NEW_STREAM, BadOption, DataLoss, Gap
from informix_capture_client.positions import Position, show
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.spool import Spool, load_manifest


def require_may_leave(offset: StreamOffset, names: Collection[str], planned: Position | None) -> None:
    """Refuse to remove a table that the stream still needs.

    Args:
        offset: of the stream.
        names: the tables that remain.
        planned: end of a planned batch that Spark requests again.

    Raises:
        BadOption: a planned batch has rows of it, or its snapshot is not finished.
    """
    left = sorted(offset.tables.keys() - set(names))
    if left and planned is not None and planned.place > offset.position.place:
        raise BadOption(
            f"Spark repeats a batch that was planned with table {left[0]}, which is no longer in"
            " option table.",
            "Run the query once with the previous options until that batch is done, then change them.",
            option="table",
        )
    for name, state in offset.tables.items():
        if name in left and state.snapshot is not None and not state.snapshot.is_done:
            raise BadOption(
                f"table {name} is no longer in option table, but its snapshot is not finished.",
                "Let the snapshot finish, then remove the table from the option.",
                option="table",
            )


def require_chunks(spool: Spool, planned: Position | None) -> None:
    """Refuse to capture a planned batch again that has snapshot rows, which are not in the log.

    Raises:
        DataLoss: the spool no longer has them.
    """
    if planned is not None and planned.chunk > spool.manifest.high_watermark.chunk:
        raise DataLoss(
            f"Spark repeats a batch, up to {show(planned.commit)}, that has snapshot rows, but"
            f" the spool {spool.folder} no longer has them.",
            f"Restore the folder if it was moved or spoolPath was changed; otherwise {NEW_STREAM}."
            " onDataLoss=continue has no effect here.",
        )


def require_form_of_chunks(folder: Path, start: Position, planned: Position | None, rows: str) -> None:
    """Refuse options that would lose the snapshot rows of a planned batch.

    A spool abandons rows stored in another form, and captures them again; snapshot rows are not in the
    log.

    Raises:
        BadOption: the options give rows another form than the stored ones; nothing has been changed.
    """
    held = load_manifest(folder) if planned is not None and planned.chunk > start.chunk else None
    if (
        held is None
        or planned is None
        or held.rows == rows
        or held.high_watermark.chunk < planned.chunk
    ):
        return
    raise BadOption(
        f"Spark repeats a batch, up to {show(planned.commit)}, that has snapshot rows, but the"
        " options give rows another form than the spool has.",
        "Run the query once with the previous options until that batch is done, then change them.",
    )


def other_source(begun_on: str, found: str) -> DataLoss:
    """Return the error for a server or tables that are not those of the stream."""
    return DataLoss(
        f"the stream was started on source {begun_on}, but server, database and tables are now"
        f" source {found}.",
        "A table was dropped, re-created or altered, another server answers, or the options"
        f" changed: {NEW_STREAM}.",
        expected=begun_on,
        found=found,
        gap=Gap.OTHER_SOURCE,
    )


def other_table(name: str, begun_on: str, found: str) -> DataLoss:
    """Return the error for a table that is not the one whose rows the stream has delivered."""
    return DataLoss(
        f"the stream has table {name} with digest {begun_on}, but its digest is now {found}.",
        "The table was dropped, re-created or altered, or options columns or mask have changed:"
        f" {NEW_STREAM}. To alter a table and keep the stream, use informix-cdc alter.",
        expected=begun_on,
        found=found,
        table=name,
        gap=Gap.OTHER_SOURCE,
    )
