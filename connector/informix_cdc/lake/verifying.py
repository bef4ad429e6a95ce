"""Compare the targets of a running mirror with the tables of Informix.

Rule: only the running mirror compares, because only it knows which commit both sides are at. This
process submits a request, and reads the result from the control tables of the mirror.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from informix_capture_client.errors import BadOption, ServerRefused
from informix_cdc.lake.control_tables import MIRRORED, ControlTables
from informix_cdc.lake.identity import known_identity
from informix_cdc.lake.lakes import open_lake
from informix_cdc.lake.settings import MirrorSettings
from informix_checkpoints.offsets import StreamOffset, read_checkpoint
from informix_checkpoints.requests import REPAIR, VERIFY, Request
from informix_checkpoints.running_streams import RunningStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = ("table", "key", "what", "columns", "commit", "repaired")
_OF_DIFFERENCES = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.string()),
        ("what", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("commit", pa.int64()),
        ("repaired", pa.bool_()),
    ]
)
_POLL_SECONDS = 1.0
_MOST_SECONDS_WITHOUT_MIRROR = 60.0  # a restart takes less


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """The result for one table.

    Attributes:
        table: owner.table.
        commit: sequence number of the commit up to which both sides were compared.
        rows: number of rows compared.
        missing: number of rows that only Informix has.
        extra: number of rows that only the target has.
        different: number of rows with different values.
    """

    table: str
    commit: int
    rows: int
    missing: int
    extra: int
    different: int

    @property
    def differences(self) -> int:
        """The number of rows that are not equal."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        tables: those that were compared.
        differences: a row for each difference: table, key (JSON), what (missing, extra or different),
            columns with different values, commit, and whether it was repaired.
        unverified: why tables were not compared, by owner.table.
    """

    tables: tuple[VerifiedTable, ...]
    differences: pa.Table
    unverified: Mapping[str, str]

    @property
    def is_equal(self) -> bool:
        """Whether every table was compared and has no difference."""
        return not self.unverified and not any(each.differences for each in self.tables)

    def differences_in(self, spark: SparkSession) -> DataFrame:
        """Return the differences as a data frame."""
        return spark.createDataFrame(self.differences)


class MirrorNotRunning(BadOption):
    """No mirror writes the stream, so nothing can be compared."""


def verify(
    settings: MirrorSettings,
    *,
    spool_path: str = "",
    tables: Sequence[str] = (),
    sample: float = 1.0,
    repair: bool = False,
    timeout: float | None = None,
    spark: SparkSession | None = None,
) -> Verification:
    """Let a running mirror compare its targets with Informix, and wait for the result.

    Args:
        settings: of the mirror.
        spool_path: option spoolPath of the mirror, if it sets one.
        tables: names or patterns with `*` of owner.table; empty: all tables of the mirror.
        sample: the fraction of rows to compare.
        repair: write the rows of Informix over those that differ.
        timeout: seconds after which the request is cancelled; None: wait until the end.
        spark: a session with the catalog; needed for Iceberg.

    Raises:
        MirrorNotRunning: no mirror is running.
        BadOption: there is no such mirror or table, or the sample is not in (0, 1].
    """
    if not 0 < sample <= 1:
        raise BadOption(f"the sample is {sample}.", "Use a fraction above 0, at most 1.")
    try:
        stream = RunningStream.of(settings.checkpoint, spool_path)
        stream.wait(stream.is_running, "the verification", math.inf)
    except (BadOption, ServerRefused) as reason:
        raise MirrorNotRunning(
            f"no mirror is running: {reason.message}",
            "Start the mirror, and the capture if it reads one, and verify again while they run.",
        ) from None
    if not stream.is_read():
        raise MirrorNotRunning(
            f"no mirror is running: no reader of the capture {stream.spool_path} was seen lately.",
            "Start the mirror, and verify again while it runs.",
        )
    chosen = stream.tables_matching(tables)
    kind = REPAIR if repair else VERIFY
    request = Request(kind=kind, tables=chosen, sample=sample)
    return _Verifying(settings, spark, request, stream).result(timeout)


class _Verifying:
    """Submits a request and waits for its result."""

    def __init__(
        self,
        settings: MirrorSettings,
        spark: SparkSession | None,
        request: Request,
        stream: RunningStream,
    ) -> None:
        self._settings, self._request, self._stream = settings, request, stream
        self._identity = known_identity(settings.checkpoint)
        self._lake = open_lake(settings, self._identity.application, spark)

    def result(self, timeout: float | None) -> Verification:
        """Return the result; the request is cancelled if it cannot be waited for."""
        begun = seen = time.monotonic()
        unverified = dict(self._not_mirrored())
        wanted = [name for name in self._request.tables if name not in unverified]
        if not wanted:
            return self._read({}, unverified)
        request = replace(self._request, tables=tuple(wanted))
        self._stream.requests.submit(request)
        is_done = False
        try:
            while not (is_done := self._is_done(wanted, unverified)):
                now = time.monotonic()
                seen = now if self._stream.is_running() and self._stream.is_read() else seen
                if why := _why_to_stop(now - begun, timeout, now - seen):
                    left = set(wanted) - self._rows().keys()
                    return self._read(self._rows(), unverified | dict.fromkeys(left, why))
                time.sleep(_POLL_SECONDS)
        finally:
            if not is_done:
                self._stream.requests.cancel(request.id)
        return self._read(self._rows(), unverified)

    def _is_done(self, wanted: Sequence[str], unverified: dict[str, str]) -> bool:
        """Return whether each table is compared, or will not be; the reasons are added."""
        committed = read_checkpoint(self._settings.checkpoint).sources[0].committed
        end = committed[1] if committed else None  # read before the rows that its batches wrote
        rows, answer = self._rows(), self._stream.requests.answer(self._request.id)
        stopped = dict(self._not_mirrored())
        for name in wanted:
            if name in rows:
                continue
            problems = answer.problems if answer else {}
            why = stopped.get(name) or problems.get(name) or problems.get("", "")
            if not why and answer and _is_over(end, name, self._request.id):
                why = "the mirror has read its rows, but did not compare them: it is too old."
            if why:
                unverified[name] = why
        return all(name in rows or name in unverified for name in wanted)

    def _not_mirrored(self) -> Iterator[tuple[str, str]]:
        for name, record in self._control.tables().items():
            if name in self._request.tables and record.status != MIRRORED:
                yield name, f"it is {record.status}: {record.reason}".rstrip(": ")

    def _rows(self) -> dict[str, dict[str, Any]]:
        """Return the row of each table that was compared for this request, or with a later one."""
        rows = [row for row in self._control.verifications() if row["request"] >= self._request.id]
        return {row["table"]: row for row in rows if row["table"] in self._request.tables}

    @property
    def _control(self) -> ControlTables:
        return ControlTables(self._identity.id, self._lake.target)  # anew: another process writes

    def _read(self, rows: Mapping[str, dict[str, Any]], unverified: Mapping[str, str]) -> Verification:
        requests = {(name, row["request"]) for name, row in rows.items()}
        found = [
            {name: row[name] for name in SHOWN}
            for row in self._control.differences()
            if (row["table"], row["request"]) in requests
        ]
        found.sort(key=lambda row: (row["table"], row["commit"], row["key"]))
        tables = tuple(_verified(rows[name]) for name in sorted(rows))
        left = {name: why for name, why in sorted(unverified.items()) if name not in rows}
        return Verification(tables, pa.Table.from_pylist(found, _OF_DIFFERENCES), left)


def _verified(row: Mapping[str, Any]) -> VerifiedTable:
    return VerifiedTable(**{name: row[name] for name in VerifiedTable.__slots__})


def _is_over(end: StreamOffset | None, table: str, request: str) -> bool:
    """Return whether the mirror has applied everything that was read of a table for a request."""
    state = end.tables.get(table) if end else None
    snapshot = state.snapshot if state else None
    return snapshot is not None and snapshot.request >= request and snapshot.is_done


def _why_to_stop(waited: float, timeout: float | None, without_mirror: float) -> str:
    if timeout is not None and waited >= timeout:
        return f"it was not compared within {timeout:g} s. Set a longer timeout."
    if without_mirror >= _MOST_SECONDS_WITHOUT_MIRROR:
        return "the mirror has stopped. Start it, and verify again while it runs."
    return ""
