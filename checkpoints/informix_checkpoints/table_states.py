"""The state of each table of a stream: its digest, the commit at which it joined, its snapshot.

Rule: values and their JSON in offsets and manifests; cheap to import. Unknown keys were written by a
later version and may be essential: they are rejected.

    {"informix.orders": {"digest": "c0ffee01", "since": 0},
     "informix.items":  {"digest": "0badf00d", "since": 201863847960,
                         "snapshot": {"key": ["id", "line"], "after": ["1042", "A7"],
                                      "rows": 150000}}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from informix_checkpoints.json_values import mapping, number, text


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The progress of a table's snapshot in the stream, or of a later one that reads it again.

    Attributes:
        key: the columns by which the table is read; empty for a table without a key, which is locked.
        after: the key of the last row read, as fetched; before the first chunk empty, or the prefix of
            a key from which on rows are read.
        rows: the number of rows in the stream so far.
        is_done: whether the snapshot is complete.
        purpose: empty for the initial snapshot, and for a cancelled one; resync, verify or repair for
            rows that are read again with key intervals; reload for rows that are read again after a
            truncate.
        request: the request for which they are read, or were read last.
        limit: the highest value of the first key column to read, as fetched; empty: no limit.
        window: the time of day in which rows are read, such as 22:00-05:00; empty: any.
        sample: the fraction of rows that is read.
    """

    after: tuple[str, ...] = ()
    rows: int = 0
    is_done: bool = False
    key: tuple[str, ...] = ()
    purpose: str = ""
    request: str = ""
    limit: tuple[str, ...] = ()
    window: str = ""
    sample: float = 1.0

    def done(self) -> SnapshotState:
        """Return the state when all rows have been read."""
        return SnapshotState(
            rows=self.rows, is_done=True, key=self.key, purpose=self.purpose, request=self.request
        )

    def cancelled(self) -> SnapshotState:
        """Return the state when no more rows are to be read: it has no purpose, and no request."""
        return SnapshotState(rows=self.rows, is_done=True, key=self.key)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        progress: dict[str, object] = {"done": True}
        if not self.is_done:
            progress = {"key": list(self.key), "after": list(self.after)}
        optional = {
            "purpose": self.purpose,
            "request": self.request,
            "limit": list(self.limit),
            "window": self.window,
            "sample": self.sample if self.sample != 1 else None,
        }
        set_ones = {name: value for name, value in optional.items() if value}
        return {**progress, "rows": self.rows, **set_ones}

    @classmethod
    def from_json(cls, given: object) -> SnapshotState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the value is not valid.
        """
        known = mapping(given, "a snapshot")
        is_done = known.get("done") is True
        wanted = {"done", "rows"} if is_done else {"key", "after", "rows"}
        if not wanted <= known.keys() <= {*wanted, "purpose", "request", "limit", "window", "sample"}:
            raise ValueError(f"{given!r} is not a snapshot of a table")
        key, after, limit = (_texts(known.get(name, [])) for name in ("key", "after", "limit"))
        sample = known.get("sample", 1.0)
        if len(key) < len(after) or (len(key) > len(after) and known["rows"] and not is_done):
            raise ValueError(f"{after!r} is not a value of the key {key!r}")
        if not isinstance(sample, float | int) or not 0 < sample <= 1:
            raise ValueError(f"{sample!r} is not a fraction")
        return cls(
            after,
            number(known["rows"]),
            is_done,
            key,
            text(known.get("purpose", "")),
            text(known.get("request", "")),
            limit,
            text(known.get("window", "")),
            float(sample),
        )


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise ValueError(f"{given!r} is not a list")
    return tuple(map(text, given))


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table of a stream.

    Attributes:
        digest: of its identity and captured columns.
        since: the commit at which it joined: changes at or below it are not in the stream.
        snapshot: None if none was requested.
        left: the commit at which it had left the stream before, if its rows were not read when it
            joined again: changes above it, up to `since`, are lost.
    """

    digest: str
    since: int = 0
    snapshot: SnapshotState | None = None
    left: int | None = None

    @property
    def is_read(self) -> bool:
        """Whether its rows are being read, or are to be read."""
        return self.snapshot is not None and not self.snapshot.is_done

    def joined(self, since: int, left: int | None) -> TableState:
        """Return the state of a table that joins; without its rows, one that had left has a gap."""
        return replace(self, since=since, left=None if self.is_read else left)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        known: dict[str, object] = {"digest": self.digest, "since": self.since}
        if self.left is not None:
            known["left"] = self.left
        return known if self.snapshot is None else {**known, "snapshot": self.snapshot.to_json()}

    @classmethod
    def from_json(cls, given: object) -> TableState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the value is not valid.
        """
        known = mapping(given, "a table")
        if unknown := sorted(known.keys() - {"digest", "since", "snapshot", "left"}):
            raise ValueError(f"the state of a table has unknown keys {', '.join(map(repr, unknown))}")
        snapshot = SnapshotState.from_json(known["snapshot"]) if "snapshot" in known else None
        left = number(known["left"]) if "left" in known else None
        return cls(text(known.get("digest")), number(known.get("since")), snapshot, left)


Tables = Mapping[str, TableState]  # by owner.table, as SQL writes it
ChangedStates = Mapping[str, TableState | None]  # None: the table has left


def changed(tables: Tables, changes: ChangedStates) -> Tables:
    """Return tables with changes applied: changed, joined or left."""
    after = {**tables, **changes}
    return {name: state for name, state in after.items() if state is not None}


def listed(tables: Tables) -> dict[str, str]:
    """Return the tables of a stream with their digests, without snapshot progress."""
    return {name: state.digest for name, state in tables.items()}


def tables_to_json(tables: ChangedStates) -> dict[str, object]:
    """Return the JSON object of tables, sorted by name."""
    return {name: state and state.to_json() for name, state in sorted(tables.items())}


def tables_from_json(given: object) -> dict[str, TableState]:
    """Read the states of tables.

    Raises:
        ValueError: the value is not valid.
    """
    return {text(name): TableState.from_json(state) for name, state in mapping(given, "tables").items()}


def places_from_json(given: object) -> dict[str, int]:
    """Read the commit at which each table left.

    Raises:
        ValueError: the value is not valid.
    """
    return {text(name): number(commit) for name, commit in mapping(given, "tables that left").items()}


def changes_from_json(given: object) -> dict[str, TableState | None]:
    """Read changes of tables.

    Raises:
        ValueError: the value is not valid.
    """
    return {
        text(name): None if state is None else TableState.from_json(state)
        for name, state in mapping(given, "tables").items()
    }
