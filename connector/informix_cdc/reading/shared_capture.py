"""A stream that `informix-cdc capture` captures, read by a query on the same host or mount."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption, RestartRequired
from informix_capture_client.shapes import DeliveredTable, row_schema
from informix_cdc.executors import SegmentPlaces, SegmentPublisher
from informix_cdc.options import SourceOptions
from informix_cdc.reading.captured_stream import Figure, Trigger
from informix_cdc.reading.shared_reader import SharedFolder, SharedReader
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.shared_captures import PublishedCapture
from informix_checkpoints.spool import SegmentRange


class SharedCapture:
    """Reads a shared capture for one query.

    Args:
        options: `captureAt`, `reader` and the others of a reader.
        check_schema: refuses a schema of rows that differs from that of the query.
        on_start: called with the first offset.
    """

    def __init__(
        self,
        options: SourceOptions,
        check_schema: Callable[[pa.Schema], None] = lambda _: None,
        on_start: Callable[[StreamOffset], None] = lambda _: None,
    ) -> None:
        self._options = options
        self._check_schema = check_schema
        self._on_start = on_start
        self._publisher = SegmentPublisher(options)
        self._has_begun = False
        self._checked: PublishedCapture | None = None
        self.reader = SharedReader(
            SharedFolder(Path(options.capture_at)),
            options.reader,
            begins_at=options.starting_position,
            on_data_loss=options.on_data_loss,
            row_form=options.row_form().of_keys,
        )

    @property
    def form(self) -> RowForm:
        """What the query makes of stored changes."""
        return form_of(self.reader.folder.published, self._options)

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            InformixCdcError: as `SharedReader.next_offset`; or the captured tables have changed.
        """
        self._begin(start)
        return self.reader.next_offset(start, limits, trigger)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of a batch.

        Raises:
            InformixCdcError: as `SharedReader.ranges`; or the captured tables have changed.
        """
        self._begin(start)
        return self.reader.ranges(start, end)

    @property
    def places(self) -> SegmentPlaces:
        """The places where executors find the ranges."""
        assert self.reader.spool is not None  # otherwise there are no ranges
        return self._publisher.places(self.reader.spool)

    def commit(self, end: StreamOffset) -> None:
        """Let the capture remove the rows up to an offset."""
        self.reader.commit(end)

    def figures(self) -> Mapping[str, Figure] | None:
        """Return the figures of the reader."""
        return self.reader.figures()

    def close(self) -> None:
        """Close the port; the reader stays registered, so that the capture keeps its rows."""
        self._publisher.close()

    def _begin(self, start: StreamOffset) -> None:
        """Check the rows before any are read: Spark has fixed the schema of the query."""
        published, checked = self.reader.folder.published, self._checked
        if checked is None or published.tables != checked.tables:
            is_change = checked is not None
            check_rows(published, self._options, self._check_schema, is_change=is_change)
            self._checked = published
        if not self._has_begun:
            self._on_start(start)
            self._publisher.open()
            self._has_begun = True


def check_rows(
    published: PublishedCapture,
    options: SourceOptions,
    check_schema: Callable[[pa.Schema], None],
    *,
    is_change: bool,
) -> None:
    """Check that a query can read the rows of a capture.

    Args:
        published: by the capture.
        options: of the query.
        check_schema: refuses a schema of rows that differs from that of the query.

        is_change: the capture has published other columns while the query ran.

    Raises:
        BadOption: it cannot.
        RestartRequired: it can after a restart.
    """
    try:
        check_schema(rows_of_capture(published, options))
    except BadOption as reason:
        if not is_change:
            raise
        raise RestartRequired(
            f"the columns of the captured tables have changed: {reason.message}",
            "Start the query again with the same checkpoint: it continues with the new columns.",
        ) from None
    if options.table_events and published.options["tableEvents"] != "true":
        raise BadOption(
            "option 'tableEvents' requires tableEvents=true in the source of the capture.",
            "Set it there, or remove it here.",
            option="tableEvents",
        )
    if options.on_data_loss == "resync" and not (options.table_events and options.truncate == "emit"):
        raise BadOption(
            "option 'onDataLoss' is resync, which requires tableEvents=true and truncate=emit.",
            "Set them, or set onDataLoss to continue.",
            option="onDataLoss",
        )


def form_of(published: PublishedCapture, options: SourceOptions) -> RowForm:
    """Return what a query makes of the changes of a capture."""
    return replace(options.row_form(), server=published.options["server"])


def rows_of_capture(published: PublishedCapture, options: SourceOptions) -> pa.Schema:
    """Return the schema of the rows that a query makes of the changes of a capture.

    Raises:
        BadOption: its tables cannot be delivered in this shape.
    """
    tables = [DeliveredTable(each.name, read_schema(each.schema)) for each in published.tables]
    return row_schema(tables, form_of(published, options))


def read_schema(content: bytes) -> pa.Schema:
    """Return a schema that Arrow has serialized."""
    return pa.ipc.read_schema(pa.py_buffer(content))
