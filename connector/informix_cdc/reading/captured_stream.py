"""A captured stream, for one query: what all three ways to read one have in common.

CaptureReader  reads the folder of a capture
OwnReader      captures the stream itself, in a thread of this process, and reads it in the same way
RemoteReader   lets the capture's host do that, and calls it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption, RestartRequired
from informix_capture_client.shapes import DeliveredTable, row_schema
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.executors import SegmentPlaces, SegmentPublisher
from informix_cdc.options import SharedCaptureOptions, SourceOptions
from informix_cdc.reading.capture_folder import CaptureFolder
from informix_cdc.reading.own_capture import OwnCapture, OwnReader
from informix_cdc.reading.reader import CaptureReader
from informix_cdc.reading.remote_capture import CaptureClient, RemoteReader, address_of
from informix_cdc.reading.trigger import Figure, Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.shared_captures import PublishedCapture
from informix_checkpoints.spool import SegmentRange


class CapturedStream:
    """A captured stream, for one query; nothing is opened before the first request.

    Args:
        options: of the query.
        check_schema: refuses the schema of rows if it differs from that of the query.
        on_start: called with the offset at which reading begins.
        clock: of the capture, where it is the query's own.
    """

    def __init__(
        self,
        options: SourceOptions,
        check_schema: Callable[[pa.Schema], None] = lambda _: None,
        on_start: Callable[[StreamOffset], None] = lambda _: None,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._options, self._on_start = options, on_start
        self._publisher = SegmentPublisher(options)
        self._has_begun = False
        self._rows = _RowsOfQuery(options, check_schema)
        self.reader = self._reader(check_schema, clock)

    def _reader(
        self, check_schema: Callable[[pa.Schema], None], clock: Clock
    ) -> OwnReader | CaptureReader | RemoteReader:
        options, check = self._options, self._rows.check
        if not options.shared.capture_at:
            return OwnReader(options, OwnCapture(options, check_schema, clock), clock)
        if options.shared.reader_file:
            return RemoteReader(options, check)
        return CaptureReader(
            CaptureFolder(Path(options.shared.capture_at)),
            options.shared.reader,
            begins_at=options.stream.starting_position,
            on_data_loss=options.stream.on_data_loss,
            row_form=self.form.of_keys,
            check=check,
        )

    @property
    def form(self) -> RowForm:
        """What the query makes of stored changes."""
        return self._rows.form

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            InformixCdcError: the stream cannot continue, and no rows are left; or the captured tables
                have changed.
        """
        self._begin(start)
        return self.reader.next_offset(start, limits, trigger)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of the rows of a batch, in commit order.

        Raises:
            InformixCdcError: the rows cannot be delivered; or the captured tables have changed.
        """
        self._begin(start)
        return self.reader.ranges(start, end)

    @property
    def places(self) -> SegmentPlaces:
        """The places where executors find the ranges."""
        return self.reader.places(self._publisher)

    def commit(self, end: StreamOffset) -> None:
        """Release the rows up to an offset, which are not requested again."""
        self.reader.commit(end)

    def figures(self) -> Mapping[str, Figure] | None:
        """Return figures for Spark's progress; None if there are none yet."""
        return self.reader.figures()

    def close(self) -> None:
        """Release everything; can be called twice. A registered reader stays so."""
        self._publisher.close()
        self.reader.close()

    def _begin(self, start: StreamOffset) -> None:
        if not self._has_begun:
            self._on_start(start)
            if not self._options.shared.reader_file:  # then rows come from the capture's host
                self._publisher.open()
            self._has_begun = True


@dataclass(slots=True)
class _RowsOfQuery:
    """The rows that a query makes; Spark has fixed their schema, and a capture may change."""

    options: SourceOptions
    check_schema: Callable[[pa.Schema], None]
    published: PublishedCapture | None = None

    @property
    def form(self) -> RowForm:
        """What the query makes of stored changes."""
        if self.published is None:
            return self.options.row_form()
        return _form_of(self.published, self.options)

    def check(self, published: PublishedCapture) -> None:
        """Check that the query can read the rows of a capture, before it does.

        Raises:
            BadOption: it cannot.
            RestartRequired: it can after a restart.
        """
        options = self.options
        try:
            self.check_schema(_rows_of_capture(published, options))
        except BadOption as reason:
            if self.published is None:
                raise
            raise RestartRequired(
                f"the columns of the captured tables have changed: {reason.message}",
                "Start the query again with the same checkpoint: it continues with the new columns.",
            ) from None
        if options.rows.table_events and published.options["tableEvents"] != "true":
            raise BadOption(
                "option 'tableEvents' requires tableEvents=true in the source of the capture.",
                "Set it there, or remove it here.",
                option="tableEvents",
            )
        if options.stream.on_data_loss == "resync" and not (
            options.rows.table_events and options.rows.truncate == "emit"
        ):
            raise BadOption(
                "option 'onDataLoss' is resync, which requires tableEvents=true and truncate=emit.",
                "Set them, or set onDataLoss to continue.",
                option="onDataLoss",
            )
        self.published = published


def published_capture(shared: SharedCaptureOptions) -> PublishedCapture:
    """Return what the capture of option captureAt publishes.

    Raises:
        BadOption: no capture has begun there.
        ConnectionLost, AccessRefused: it cannot be reached, or does not accept the reader.
    """
    if shared.reader_file:
        return CaptureClient(address_of(shared)[0]).describe()
    return CaptureFolder(Path(shared.capture_at)).published


def published_schema(options: SourceOptions) -> pa.Schema:
    """Return the schema of the rows that a query makes of the changes of a shared capture.

    Raises:
        InformixCdcError: as `published_capture`; or its tables cannot be delivered in this shape.
    """
    return _rows_of_capture(published_capture(options.shared), options)


def _form_of(published: PublishedCapture, options: SourceOptions) -> RowForm:
    return replace(options.row_form(), server=published.options["server"])


def _rows_of_capture(published: PublishedCapture, options: SourceOptions) -> pa.Schema:
    tables = [DeliveredTable(each.name, read_schema(each.schema)) for each in published.tables]
    return row_schema(tables, _form_of(published, options))


def read_schema(content: bytes) -> pa.Schema:
    """Return a schema that Arrow has serialized."""
    return pa.ipc.read_schema(pa.py_buffer(content))
