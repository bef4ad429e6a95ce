"""The log of a Delta table: what the table has now, and entries that are put if nobody was first.

Rule: entries of others are read in order before each put.

Source: Delta protocol, "Delta Log Entries", "Checkpoints" and "Action Reconciliation".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.vectors import id_of

Action = Mapping[str, Any]

_LOG = "_delta_log"
_KINDS = ("add", "remove", "txn", "protocol", "metaData", "sidecar")
_MOST_BYTES = 1 << 30  # of one entry


@dataclass(slots=True)
class LoggedState:
    """What a table has at a version.

    Attributes:
        files: the entry of each data file, by path; a path has one live entry.
        numbers: the last transaction identifier of each application.
        protocol, metadata: as in the log.
    """

    version: int = -1
    files: dict[str, Action] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply one entry: removals first, because the order within an entry has no meaning."""
        actions = list(actions)
        for removed in _of(actions, "remove"):
            known = self.files.get(removed["path"])
            vector = id_of(removed.get("deletionVector"))
            if known is not None and id_of(known.get("deletionVector")) == vector:
                del self.files[removed["path"]]
        for added in _of(actions, "add"):
            self.files[added["path"]] = added
        for each in _of(actions, "txn"):
            self.numbers[each["appId"]] = int(each["version"])
        self.protocol = next(_of(actions, "protocol"), self.protocol)
        self.metadata = next(_of(actions, "metaData"), self.metadata)


def _of(actions: Iterable[Action], kind: str) -> Iterator[Action]:
    return (action[kind] for action in actions if action.get(kind) is not None)


class TableLog:
    """The log of one table."""

    def __init__(self, place: TablePlace) -> None:
        self._place = place

    @property
    def _files(self) -> FileSystem:
        return self._place.files

    def state(self, version: int | None = None) -> LoggedState:
        """Return the newest state, or that of a version.

        Raises:
            FileNotFoundError: there is no table, or the log no longer has the version.
            OSError: the log cannot be read.
        """
        found = self._files.get_file_info(FileSelector(_LOG, allow_not_found=True))
        state, checkpoint = LoggedState(), _newest_checkpoint(found, version)
        if checkpoint:
            state.apply(self._checkpoint_actions([each.path for each in checkpoint]))
            state.version = _version(checkpoint[0].base_name)
        self.advance(state, version)
        if state.version < 0 or version not in (None, state.version):
            raise FileNotFoundError(f"the log of {self._place.name} does not have the version")
        return state

    def _checkpoint_actions(self, paths: Sequence[str]) -> Iterator[Action]:
        for path in paths:
            table = pq.read_table(path, filesystem=self._files)
            rows = table.select([name for name in _KINDS if name in table.column_names])
            for action in (_plain(row) for batch in rows.to_batches() for row in batch.to_pylist()):
                if sidecar := action.get("sidecar"):
                    yield from self._checkpoint_actions([f"{_LOG}/_sidecars/{sidecar['path']}"])
                else:
                    yield action

    def advance(self, state: LoggedState, up_to: int | None = None) -> list[list[Action]]:
        """Bring a state up to the newest version, or to one, and return the entries that came."""
        found = []
        while state.version != up_to and (actions := self.entry(state.version + 1)) is not None:
            state.apply(actions)
            state.version += 1
            found.append(actions)
        return found

    def entry(self, version: int) -> list[Action] | None:
        """Return the actions of a version; None if there is no such entry."""
        try:
            with self._files.open_input_stream(f"{_LOG}/{version:020}.json") as file:
                content = bytes(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return None
        return [json.loads(line) for line in content.splitlines() if line.strip()]

    def put(self, version: int, actions: Iterable[Action]) -> bool:
        """Write the entry of a version; return false if somebody else was first."""
        content = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
        return self._place.put_if_absent(f"{_LOG}/{version:020}.json", content.encode())


def _version(name: str) -> int:
    return int(name.partition(".")[0])


def _newest_checkpoint(found: Iterable[FileInfo], up_to: int | None) -> list[FileInfo]:
    """Return the files of the newest complete checkpoint up to a version; none if there is none."""
    by_kind: dict[tuple[int, str], list[FileInfo]] = {}
    for each in found:
        parts = each.base_name.split(".")
        if each.type == FileType.File and parts[1:2] == ["checkpoint"] and parts[-1] == "parquet":
            number, kind = int(parts[0]), ".".join(parts[2:-1])
            count = kind.rpartition(".")[2] if len(parts) == 5 else kind  # of parts: 1 of N
            by_kind.setdefault((number, count if len(parts) == 5 else each.base_name), []).append(each)
    whole = [
        (number, files)
        for (number, kind), files in by_kind.items()
        if (not kind.isdigit() or len(files) == int(kind)) and (up_to is None or number <= up_to)
    ]
    return max(whole, key=lambda each: each[0], default=(0, []))[1]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action as in JSON: maps of Parquet are lists of pairs, missing fields are NULL."""
    return {name: _without_nulls(value) for name, value in row.items() if value is not None}


def _without_nulls(value: object) -> Any:  # noqa: ANN401 - a value of JSON
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        if all(isinstance(each, tuple) and len(each) == 2 for each in value):
            return dict(value)
        return [_without_nulls(each) for each in value]
    return value
