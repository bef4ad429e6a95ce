"""Spark's offsets: a position of the stream as JSON with keys in a fixed order.

Rule: Spark compares offsets as text, so equal positions give equal text. "Not started" is a constant:
Spark never logs the start of its first batch, so that start must not mean "now". An unknown key was
written by a later version and may be essential: it is rejected.

An offset has one digest for server and database, and a digest for each table, so that tables may join
and leave (decision 0071).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from typing import TypeVar

from informix_capture_client.errors import BadOption, DataLoss, Gap, ProtocolViolation
from informix_capture_client.positions import DeliveredCommit, LogEnd, Position, SettlingRestart
from informix_checkpoints.json_values import number, text
from informix_checkpoints.spool import CutTransaction, ReportedLoss
from informix_checkpoints.table_states import (
    Tables,
    listed,
    places_from_json,
    tables_from_json,
    tables_to_json,
)

VERSION = 1
_FIELDS_OF_A_LOSS = 2  # before the tables
_IDS = re.compile(r"(\d{1,19})-(\d{1,19})")
MOST_IDS = 1 << 17  # in a whole list: far more than a server has open transactions
_Numbers = TypeVar("_Numbers", LogEnd, DeliveredCommit, SettlingRestart, CutTransaction)


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position with the stream and source that it belongs to.

    Attributes:
        logged: the end of the log when the stream started there: full row logging is known to be on
            from here on, and the captured tables exist. None if the stream started in the past.
        row_form: the options that decide which rows a change produces, as text; empty if unknown.
        lost: the data loss that was reported here, if any; the stream then does not continue.
        left: the tables that have left the stream and not rejoined, with the commit.
        cut: the transaction above the position that a batch in real-time mode has delivered in part.
        settling: a restart position that becomes valid once the next process has read so far.
        tables: the captured tables, by owner.table.
    """

    stream: str
    source: str
    position: Position
    logged: LogEnd | None = None
    row_form: str = ""
    lost: ReportedLoss | None = None
    tables: Tables = field(default_factory=dict)
    settling: SettlingRestart | None = None
    left: Mapping[str, int] = field(default_factory=dict)
    cut: CutTransaction | None = None

    def to_json(self) -> dict[str, object]:
        """Return the dictionary that Spark writes into its checkpoint.

        Raises:
            ProtocolViolation: it would have more transaction ids than `from_json` accepts.
        """
        if (count := len(self.position.unseen)) > MOST_IDS:
            raise ProtocolViolation(
                f"The server reports {count:,} transactions that were open when the stream started; a"
                f" checkpoint can store at most {MOST_IDS:,}.",
                "Start the query when fewer are open. If none are open, report the server's version.",
            )
        return {key: value for key, value in self._facts().items() if value is not None}

    def _facts(self) -> dict[str, object]:
        """Return all keys; unknown values are None."""
        last_delivered = self.position.last_delivered
        return {
            "version": VERSION,
            "stream": self.stream,
            "source": self.source,
            "commit": self.position.commit,
            "restart": self.position.restart,
            "unseen": list(in_runs(self.position.unseen)),
            "witness": list(last_delivered) if last_delivered else None,
            "logged": list(self.logged) if self.logged else None,
            "settling": list(self.settling) if self.settling else None,
            "form": self.row_form or None,
            "lost": [self.lost.gap.name, self.lost.message, *self.lost.tables] if self.lost else None,
            "tables": tables_to_json(self.tables),
            "chunk": self.position.chunk,
            "left": dict(sorted(self.left.items())) or None,
            "cut": list(self.cut) if self.cut else None,  # the last: the reader in the JVM adds it
        }

    @classmethod
    def from_json(cls, given: Mapping[str, object], most_ids: int = MOST_IDS) -> StreamOffset:
        """Read what `to_json` wrote.

        Args:
            given: the dictionary of a checkpoint.
            most_ids: the maximum number of transaction ids, with ranges expanded.

        Raises:
            BadOption: the checkpoint is not of this source, or of a later version.
        """
        try:
            if number(given["version"]) != VERSION:
                raise ValueError(f"its version is {given['version']!r}")
            _require_known(given)
            position = Position(
                number(given["commit"]),
                number(given["restart"]),
                tuple(_ids(given["unseen"], most_ids)),
                _numbers(DeliveredCommit, given.get("witness")),
                number(given["chunk"]),
            )
            return cls(
                text(given["stream"]),
                text(given["source"]),
                position,
                _numbers(LogEnd, given.get("logged")),
                text(given.get("form", "")),
                _loss(given.get("lost")),
                tables_from_json(given["tables"]),
                _numbers(SettlingRestart, given.get("settling")),
                places_from_json(given.get("left", {})),
                _numbers(CutTransaction, given.get("cut")),
            )
        except (KeyError, ValueError) as reason:
            raise BadOption(
                f"the checkpoint contains an offset that is not from this source: {reason}.",
                "Use a separate checkpoint for each query, and this version or a later one.",
            ) from None

    @property
    def is_started(self) -> bool:
        """Return whether this is a real position, not the constant before the first batch."""
        return self.stream != ""

    def not_before(self, start: StreamOffset) -> StreamOffset:
        """Return the offset with a restart position that is not below that of the earlier `start`.

        Commits above this offset are also above `start`, so that the restart position is valid for
        both, except for a table that joined in between. A crashed process may have known a later one.
        """
        restart = start.position.restart
        is_same = self.stream == start.stream and listed(self.tables) == listed(start.tables)
        if not is_same or restart <= self.position.restart:
            return self
        return replace(self, position=replace(self.position, restart=restart))

    def with_cut_of(self, start: StreamOffset) -> StreamOffset:
        """Return the offset with the cut of an earlier one, if the cut transaction lies above it."""
        is_above = start.cut is not None and start.cut.commit > self.position.commit
        return replace(self, cut=start.cut) if is_above and start.stream == self.stream else self

    def lost_by(self, loss: DataLoss) -> StreamOffset:
        """Return the offset with a recorded data loss, which is reported again at the next start."""
        return replace(self, lost=ReportedLoss.of(loss))


NOT_STARTED = StreamOffset("", "", Position(0, 0))


def in_runs(ids: tuple[int, ...]) -> Iterator[int | str]:
    """Yield sorted ids, with three or more consecutive ones as "first-last": there may be thousands."""
    first = 0
    for end, transaction_id in enumerate(ids, 1):
        if end < len(ids) and ids[end] == transaction_id + 1:
            continue
        run, first = ids[first:end], end
        if len(run) < 3:
            yield from run
        else:
            yield f"{run[0]}-{run[-1]}"


def _ids(value: object, most: int) -> Iterator[int]:
    """Yield the ids of a list with ranges, at most `most` in total."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list of transaction ids")
    left = most
    for item in value:
        run = _IDS.fullmatch(item) if isinstance(item, str) else None
        first, last = (int(run[1]), int(run[2])) if run is not None else (item, item)
        count = number(last) - number(first) + 1
        if not 0 < count <= left:
            raise ValueError(f"{item!r} is not a range of transaction ids, or there are too many")
        left -= count
        yield from range(number(first), number(last) + 1)


def _require_known(given: Mapping[str, object]) -> None:
    """Reject keys of a later version: the next written offset would lose them."""
    unknown = sorted(given.keys() - NOT_STARTED._facts().keys())
    if unknown:
        raise BadOption(
            f"the checkpoint contains an offset with {', '.join(map(repr, unknown))}, which this"
            f" version{_installed()} does not know: a later version of informix-cdc wrote it.",
            "Use the version that wrote it, or a later one. The checkpoint was not changed.",
        )


def _installed() -> str:
    try:
        return f" ({metadata.version('informix-cdc')})"
    except metadata.PackageNotFoundError:  # run from a zip, or from its sources
        return ""


def _numbers(kind: type[_Numbers], value: object) -> _Numbers | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != len(kind._fields):
        raise ValueError(f"{value!r} is not {', '.join(kind._fields)}")
    return kind(*map(number, value))


def _loss(value: object) -> ReportedLoss | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) < _FIELDS_OF_A_LOSS:
        raise ValueError(f"{value!r} is not a loss")
    gap, message, *tables = map(text, value)
    return ReportedLoss(Gap[gap], message, tuple(tables))
