"""What a stream knows of each of its tables: its digest, from where on it has it, its snapshot.

Rule: values, and their JSON as offsets and manifests keep it; light to import. What is not known was
written by a later version, and means something: it is refused.

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
    """How far the snapshot of a table is in the stream.

    Attributes:
        key: the columns by which the table is read; empty where it has none, and is locked.
        after: the key of the last row read, as it was fetched; empty before the first chunk.
        rows: how many rows have been put into the stream.
        is_done: whether there are no more.
    """

    after: tuple[str, ...] = ()
    rows: int = 0
    is_done: bool = False
    key: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return what is kept of it."""
        if self.is_done:
            return {"done": True, "rows": self.rows}
        return {"key": list(self.key), "after": list(self.after), "rows": self.rows}

    @classmethod
    def from_json(cls, given: object) -> SnapshotState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
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
    """What a stream knows of one of its tables.

    Attributes:
        digest: of its identity and captured columns.
        since: changes that committed at or below are not of the stream: it joined there.
        snapshot: None if none was asked for.
    """

    digest: str
    since: int = 0
    snapshot: SnapshotState | None = None

    def to_json(self) -> dict[str, object]:
        """Return what is kept of it."""
        known: dict[str, object] = {"digest": self.digest, "since": self.since}
        return known if self.snapshot is None else {**known, "snapshot": self.snapshot.to_json()}

    @classmethod
    def from_json(cls, given: object) -> TableState:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        known = mapping(given, "a table")
        if unknown := sorted(known.keys() - {"digest", "since", "snapshot"}):
            raise ValueError(f"the state of a table has unknown keys {', '.join(map(repr, unknown))}")
        snapshot = SnapshotState.from_json(known["snapshot"]) if "snapshot" in known else None
        return cls(text(known.get("digest")), number(known.get("since")), snapshot)


Tables = Mapping[str, TableState]  # by owner.table, as SQL writes it
ChangedStates = Mapping[str, TableState | None]  # None: the table has left


def changed(tables: Tables, changes: ChangedStates) -> Tables:
    """Return tables after some of them have changed, joined or left."""
    after = {**tables, **changes}
    return {name: state for name, state in after.items() if state is not None}


def listed(tables: Tables) -> dict[str, str]:
    """Return which tables a stream has, as they are, without how far their snapshots are."""
    return {name: state.digest for name, state in tables.items()}


def tables_to_json(tables: ChangedStates) -> dict[str, object]:
    """Return what is kept of tables, in the order of their names."""
    return {name: state and state.to_json() for name, state in sorted(tables.items())}


def tables_from_json(given: object) -> dict[str, TableState]:
    """Read the states of tables.

    Raises:
        ValueError: it is something else.
    """
    return {text(name): TableState.from_json(state) for name, state in mapping(given, "tables").items()}


def places_from_json(given: object) -> dict[str, int]:
    """Read at which commit each of some tables has left.

    Raises:
        ValueError: it is something else.
    """
    return {text(name): number(commit) for name, commit in mapping(given, "tables that left").items()}


def changes_from_json(given: object) -> dict[str, TableState | None]:
    """Read changes of tables.

    Raises:
        ValueError: it is something else.
    """
    return {
        text(name): None if state is None else TableState.from_json(state)
        for name, state in mapping(given, "tables").items()
    }
