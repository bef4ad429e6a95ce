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
from dataclasses import dataclass

from informix_checkpoints.json_values import mapping, number, text


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The progress of a table's snapshot in the stream.

    Attributes:
        key: the columns by which the table is read; empty for a table without a key, which is locked.
        after: the key of the last row read, as fetched; empty before the first chunk.
        rows: the number of rows in the stream so far.
        is_done: whether the snapshot is complete.
    """

    after: tuple[str, ...] = ()
    rows: int = 0
    is_done: bool = False
    key: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        if self.is_done:
            return {"done": True, "rows": self.rows}
        return {"key": list(self.key), "after": list(self.after), "rows": self.rows}

    @classmethod
    def from_json(cls, given: object) -> SnapshotState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the value is not valid.
        """
        known = mapping(given, "a snapshot")
        rows = number(known.get("rows"))
        if known.keys() == {"done", "rows"} and known["done"] is True:
            return cls((), rows, is_done=True)
        key, after = known.get("key"), known.get("after")
        is_known = known.keys() == {"key", "after", "rows"}
        if not (is_known and isinstance(key, list) and isinstance(after, list)):
            raise ValueError(f"{given!r} is not a snapshot of a table")
        if len(key) != len(after) and (after or rows):
            raise ValueError(f"{after!r} is not a value of the key {key!r}")
        return cls(tuple(map(text, after)), rows, key=tuple(map(text, key)))


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table of a stream.

    Attributes:
        digest: of its identity and captured columns.
        since: the commit at which it joined: changes at or below it are not in the stream.
        snapshot: None if none was requested.
    """

    digest: str
    since: int = 0
    snapshot: SnapshotState | None = None

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        known: dict[str, object] = {"digest": self.digest, "since": self.since}
        return known if self.snapshot is None else {**known, "snapshot": self.snapshot.to_json()}

    @classmethod
    def from_json(cls, given: object) -> TableState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: the value is not valid.
        """
        known = mapping(given, "a table")
        if unknown := sorted(known.keys() - {"digest", "since", "snapshot"}):
            raise ValueError(f"the state of a table has unknown keys {', '.join(map(repr, unknown))}")
        snapshot = SnapshotState.from_json(known["snapshot"]) if "snapshot" in known else None
        return cls(text(known.get("digest")), number(known.get("since")), snapshot)


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
