"""Options of snapshots: which tables are read as they were before the stream, and how.

Rule: declarations, and what contradicts them; which key serves is decided where tables are known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern, read_paths
from informix_cdc.options.connection import name_or_pattern
from informix_cdc.options.declaring import names, one_of, option, size, whole_number
from informix_cdc.options.executors import ExecutorOptions

if TYPE_CHECKING:
    from informix_cdc.options.source import SourceOptions

NONE, ALL = "none", "all"
ANY_MARKER, TEMP_MARKER, HEARTBEAT_MARKER, NO_MARKER = "auto", "temp", "heartbeat", "none"
_WORDS: dict[str, tuple[str, ...]] = {NONE: (), ALL: (ALL,)}

_NAMED = r'(?:"(?:[^"]|"")*"|[^",()])+'
_KEY = re.compile(rf"\s*({_NAMED})\(({_NAMED}(?:,{_NAMED})*)\)\s*(?:,|$)")


def snapshot_tables(text: str) -> tuple[str, ...]:
    """Read which tables have a snapshot: none, all, or a list; none is an empty one."""
    word = text.strip().lower()
    return _WORDS[word] if word in _WORDS else names(text)


def snapshot_keys(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read keys of tables.

    >>> snapshot_keys('informix.items(order_id, "Line No")')
    (('informix.items', ('order_id', 'Line No')),)
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    at = 0
    while at < len(text):
        if (match := _KEY.match(text, at)) is None:
            raise ValueError("must be owner.table(column, ...), or several of them with commas")
        columns = tuple(path[-1] for path in read_paths(match[2]))
        found.append((match[1].strip(), columns))
        at = match.end()
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions(ExecutorOptions):
    """Which tables begin with the rows that were there, and how these are read."""

    initial_snapshot: tuple[str, ...] = option(
        "Tables whose rows that were there before the stream are delivered too, as inserts with"
        " _snapshot=true: none (the default), all, or names and patterns as in option table; needs"
        " spoolPath.",
        snapshot_tables,
        default=(),
    )
    snapshot_key: tuple[tuple[str, tuple[str, ...]], ...] = option(
        "Columns that tell the rows of a table apart, where it has no primary key and no unique index:"
        " owner.table(column, ...), or several of them with commas.",
        snapshot_keys,
        default=(),
    )
    snapshot_without_key: str = option(
        "What a table without a key does: fail the start, or lock (it is locked in share mode while it"
        " is read whole, and writers wait).",
        one_of("fail", "lock"),
        default="fail",
    )
    snapshot_chunk_rows: int = option(
        "Maximum number of rows that a snapshot reads at once.",
        whole_number(1, 10_000_000),
        default=50_000,
    )
    snapshot_chunk_bytes: int = option(
        "Number of bytes of rows at which a chunk of a snapshot ends before snapshotChunkRows, such as"
        " 64m.",
        size(1 << 16),
        default=64 << 20,
    )
    snapshot_parallelism: int = option(
        "Number of tables that are read for a snapshot at a time; each takes two connections.",
        whole_number(1, 8),
        default=1,
    )
    snapshot_marker: str = option(
        "What moves the server's log on behind a chunk: temp (a temporary table is made and dropped),"
        " heartbeat (heartbeatTable is updated), auto (temp), or none (other people's changes are"
        " waited for).",
        one_of(ANY_MARKER, TEMP_MARKER, HEARTBEAT_MARKER, NO_MARKER),
        default=ANY_MARKER,
    )
    snapshot_barrier_seconds: int = option(
        "Seconds after which a snapshot fails because the stream shows nothing of what was written"
        " behind a chunk.",
        whole_number(1, 86_400),
        default=60,
    )
    snapshot_lock_seconds: int = option(
        "Seconds for which a snapshot tries again to read rows that others have locked.",
        whole_number(0, 86_400),
        default=300,
    )
    snapshot_max_touched_keys: int = option(
        "Maximum number of keys of a table that are remembered as changed while a chunk waits; beyond"
        " it the chunk is read again with fewer rows.",
        whole_number(1, 100_000_000),
        default=1_000_000,
    )

    def snapshot_choice(self) -> tuple[TableName | TablePattern, ...]:
        """Return the names and patterns of option initialSnapshot; without those for all.

        Raises:
            BadOption: one is neither a name nor a pattern.
        """
        asked = () if self.initial_snapshot == (ALL,) else self.initial_snapshot
        return tuple(name_or_pattern(text, self.database) for text in asked)

    def snapshot_key_names(self) -> Mapping[TableName, tuple[str, ...]]:
        """Return the key that option snapshotKey names for a table.

        Raises:
            BadOption: what is in front of a bracket is no name of a table.
        """
        return {TableName.parse(table, self.database): columns for table, columns in self.snapshot_key}


def require_snapshot_may_be(options: SourceOptions) -> None:
    """Refuse a snapshot that could not be kept, or has no place in what is delivered.

    Raises:
        BadOption: names the option that is in its way.
    """
    if not options.initial_snapshot:
        return
    options.snapshot_choice()
    options.snapshot_key_names()
    if options.shape == "raw":
        raise BadOption(
            "option 'initialSnapshot' has no meaning with shape=raw, whose rows are records of a log.",
            "Set shape to rows, json, arrow or envelope, or leave initialSnapshot out.",
            option="initialSnapshot",
        )
    if options.starting_position != "latest":
        raise BadOption(
            "option 'initialSnapshot' begins a stream now: rows of a snapshot are as they are when they"
            f" are read, and startingPosition={options.starting_position} asks for changes before.",
            "Leave startingPosition out.",
            option="startingPosition",
        )
    if not options.spool_path:
        raise BadOption(
            "option 'initialSnapshot' needs option spoolPath: rows of a snapshot that a batch has to"
            " show again are nowhere else.",
            "Set spoolPath to a folder that outlives the query.",
            option="spoolPath",
        )
    if options.snapshot_marker == HEARTBEAT_MARKER and not options.heartbeat_table:
        raise BadOption(
            "option 'snapshotMarker' is heartbeat, and option heartbeatTable names no table.",
            "Set heartbeatTable, or leave snapshotMarker out.",
            option="heartbeatTable",
        )
