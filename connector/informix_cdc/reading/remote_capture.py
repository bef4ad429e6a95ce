"""A stream that `informix-cdc capture` captures, read over Arrow Flight with TLS.

Rule: the server keeps the reader and decides; this end only asks. A call is bounded in time, and can be
repeated: it moves nothing but the reader's own place. Executors get rows from the server directly.
"""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from informix_capture_client.errors import AccessRefused, BadOption, ConnectionLost
from informix_cdc.executors import FlightAddress, ReaderAccess, SegmentPlaces, SegmentPublisher
from informix_cdc.options import SharedCaptureOptions, SourceOptions, flight_address
from informix_cdc.reading.calls import (
    COMMIT,
    DESCRIBE,
    NEXT,
    RANGES,
    decoded,
    digest_of_tables,
    encoded,
    limits_to_json,
    range_from_json,
)
from informix_cdc.reading.trigger import Figure, Trigger
from informix_checkpoints.limits import BatchLimits
from informix_checkpoints.offsets import StreamOffset
from informix_checkpoints.shared_captures import PublishedCapture
from informix_checkpoints.spool import SegmentRange

AWAY_SECONDS = 60.0  # as for a shared folder
MOST_SECONDS = 10.0  # that the server waits before it answers that there is nothing yet
_MARGIN_SECONDS = 20.0  # for the answer
_PAUSE_SECONDS = 0.5
_MOST_BYTES = 1 << 16
_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def address_of(shared: SharedCaptureOptions) -> tuple[FlightAddress, str]:
    """Return the address of a capture with the credentials of a reader, and the reader's name.

    Raises:
        BadOption: the file of the reader cannot be read, or is that of another reader.
    """
    path = Path(shared.reader_file)
    try:
        facts = path.stat()
        if facts.st_size > _MOST_BYTES:
            raise ValueError("it is too long")
        if facts.st_mode & _OTHERS:  # a secret of Kubernetes may be readable by its group
            remedy = f"chmod 600 {shlex.quote(str(path))}"
            raise ValueError(f"other users may read or change it, so run {remedy}")
        access = ReaderAccess.from_text(path.read_text())  # a secret of Kubernetes is a link
    except (OSError, ValueError) as reason:
        what = reason.strerror if isinstance(reason, OSError) else reason
        raise BadOption(
            f"option 'readerFile': {path} cannot be used: {what}.",
            "Write it on the host of the capture: informix-cdc readers FOLDER --add NAME > FILE.",
            option="readerFile",
        ) from None
    if shared.reader != access.reader:
        raise BadOption(
            f"option 'reader' is {shared.reader}, but {path} is the file of reader {access.reader}.",
            "Use the file of this reader.",
            option="reader",
        )
    host, port = flight_address(shared.capture_at)
    return FlightAddress(host, port, access.token, access.credentials), access.reader


class CaptureClient:
    """Calls a shared capture.

    Args:
        address: with the credentials of a reader.
    """

    def __init__(self, address: FlightAddress) -> None:
        self.address = address

    def describe(self) -> PublishedCapture:
        """Return what the capture publishes.

        Raises:
            ConnectionLost: it cannot be reached.
            AccessRefused: it does not accept the reader.
        """
        content = self.call(DESCRIBE, {})
        try:
            return PublishedCapture.from_json(content)
        except (ValueError, KeyError, TypeError) as reason:
            raise AccessRefused(f"the capture at {self.address} sent {reason!r}.") from None

    def call(self, name: str, content: Mapping[str, object]) -> dict[str, Any]:
        """Call an action, and return its answer.

        Raises:
            ConnectionLost: the capture cannot be reached, or does not answer.
            InformixCdcError: the error of the capture.
        """
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would print lines about closed connections
        from pyarrow import flight

        from informix_cdc.executors import call_options, flight_connection, why_refused

        options = call_options(self.address, MOST_SECONDS + _MARGIN_SECONDS)
        try:
            action = flight.Action(name, encoded(content))
            (result,) = flight_connection(self.address).do_action(action, options)
            return decoded(result.body.to_pybytes())
        except (OSError, pa.ArrowException, ValueError) as reason:
            raise _raised(reason, self.address, why_refused) from None


def _raised(
    reason: Exception, address: FlightAddress, why: Callable[[Exception], str]
) -> ConnectionLost | AccessRefused | Exception:
    from pyarrow import flight

    from informix_cdc.executors import error_from_json, is_refused, may_be_reached_later

    if (error := error_from_json(getattr(reason, "extra_info", b"") or b"")) is not None:
        return error
    if may_be_reached_later(reason) or isinstance(reason, flight.FlightTimedOutError):
        return ConnectionLost(
            f"the capture at {address} cannot be reached: it {why(reason)}.",
            "Start it, or correct option captureAt. If this reader was removed or added again, write"
            " its file again on the host of the capture: informix-cdc readers FOLDER --add NAME.",
        )
    if is_refused(reason):
        return AccessRefused(
            f"the capture at {address} does not accept this reader.",
            "Write its file again on the host of the capture: informix-cdc readers FOLDER --add NAME.",
        )
    return AccessRefused(
        f"the capture at {address} could not answer ({type(reason).__name__}).",
        "Look at its log, and start the query again.",
    )


class RemoteReader:
    """Reads a shared capture over the network, for one query.

    Args:
        options: `captureAt`, `reader`, `readerFile` and the others of a reader.
        check: called with what the capture publishes before rows of its tables are read; may refuse
            them.
        clock: a monotonic clock.
    """

    def __init__(
        self,
        options: SourceOptions,
        check: Callable[[PublishedCapture], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._check = check
        self._clock = clock
        self._client: CaptureClient | None = None
        self._digest = 0  # of the tables that were checked
        self._figures: Mapping[str, Figure] | None = None
        self._stream = ""  # of the last ranges
        self._run = secrets.token_hex(8)
        self._is_known = False  # whether a call of this run was answered
        self._away_since: float | None = None

    def next_offset(
        self, start: StreamOffset, limits: BatchLimits, trigger: Trigger
    ) -> StreamOffset | None:
        """Wait for the end of the next batch; return None if nothing is new.

        Raises:
            ConnectionLost: the run ends with what is committed now, and the capture is not reached.
            InformixCdcError: as `CaptureReader.next_offset`.
        """
        known = {"limits": limits_to_json(limits), "trigger": trigger.value}
        while True:
            try:
                answer = self._ask(NEXT, start, **known)
            except ConnectionLost:
                self._require_patience(is_needed=trigger is not Trigger.CONTINUOUS)
                if trigger is Trigger.CONTINUOUS:
                    return None
                continue
            if answer:
                self._figures = answer["figures"]
                offset = answer["offset"]
                return None if offset is None else StreamOffset.from_json(offset)

    def ranges(self, start: StreamOffset, end: StreamOffset) -> Sequence[SegmentRange]:
        """Return the ranges of a batch.

        Raises:
            ConnectionLost: the capture is not reached.
            InformixCdcError: as `CaptureReader.ranges`.
        """
        if not start.is_started:
            return []
        while True:
            try:
                answer = self._ask(RANGES, start, end=end.to_json())
            except ConnectionLost:
                self._require_patience(is_needed=True)
                continue
            if answer:
                self._stream = str(answer["stream"])
                return [range_from_json(each) for each in answer["ranges"]]

    def places(self, _publisher: SegmentPublisher) -> SegmentPlaces:
        """Return where executors find the ranges: at the capture's server."""
        assert self._client is not None  # there were ranges
        return SegmentPlaces("capture", None, replace(self._client.address, stream=self._stream))

    def commit(self, end: StreamOffset) -> None:
        """Let the capture remove the rows up to an offset; if it is away, the next commit does."""
        if self._client is None:  # it was away since the query's start, and another source has rows
            return
        try:
            self._call(COMMIT, end=end.to_json())
        except ConnectionLost:
            self._away_since = self._away_since or self._clock()

    def figures(self) -> Mapping[str, Figure] | None:
        """Return the figures of the reader."""
        if self._figures is None:
            return None
        return {**self._figures, "captureRunning": self._away_since is None}

    def close(self) -> None:
        """Do nothing: the reader stays registered, so that the capture keeps its rows."""

    def _ask(self, name: str, start: StreamOffset, **content: object) -> dict[str, Any]:
        """Call, and check the rows before any are read: Spark has fixed the schema of the query."""
        if self._client is None:
            self._describe(CaptureClient(address_of(self._options.shared)[0]))
        asked_at = self._clock()
        answer = self._call(name, start=start.to_json(), **content)
        if not answer and self._clock() - asked_at < _PAUSE_SECONDS:  # it cannot be decided yet
            time.sleep(_PAUSE_SECONDS)
        if answer and answer["tables"] != self._digest:
            assert self._client is not None  # it has answered
            self._describe(self._client)  # the capture has restarted with other options or tables
        return answer

    def _describe(self, client: CaptureClient) -> None:
        published = client.describe()
        self._check(published)
        self._client, self._digest = client, digest_of_tables(published)

    def _call(self, name: str, **content: object) -> dict[str, Any]:
        assert self._client is not None
        options = self._options
        known = {
            "reader": options.shared.reader,
            "run": self._run,
            "is_known": self._is_known,
            "begins_at": options.stream.starting_position,
            "on_data_loss": options.stream.on_data_loss,
            "row_form": options.row_form().of_keys,
        }
        answer = self._client.call(name, {**known, **content})
        self._away_since, self._is_known = None, True
        return answer

    def _require_patience(self, *, is_needed: bool) -> None:
        """Wait for a capture that is not reached.

        Raises:
            ConnectionLost: it has been away for long, and the query cannot go on without it.
        """
        now = self._clock()
        self._away_since = self._away_since or now
        if is_needed and now - self._away_since >= AWAY_SECONDS:
            raise ConnectionLost(
                f"the capture at {self._options.shared.capture_at} was not reached for"
                f" {AWAY_SECONDS:g} s.",
                "Start informix-cdc capture, and the query again.",
            )
        time.sleep(_PAUSE_SECONDS)
