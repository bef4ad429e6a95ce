"""The log of a Delta table: what the table has now, and entries that are put if nobody was first.

Source: Delta protocol, "Delta Log Entries", "Checkpoints" and "Action Reconciliation".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from informix_cdc.merge_on_read.places import TablePlace
from informix_cdc.merge_on_read.vectors import id_of

Action = Mapping[str, Any]

LOG = "_delta_log"
_KINDS = ("add", "txn", "protocol", "metaData", "sidecar")
_REMOVED_AT = "deletionTimestamp"
_MINUTE = 60_000  # milliseconds
_AT_ONCE = 16  # entries that are read at the same time


@dataclass(slots=True)
class LoggedState:
    """What a table has at a version.

    Attributes:
        version: -1 if nothing has been read.
        files: the entry of each data file, by path; a path has one live entry.
        numbers: the last transaction identifier of each application.
        numbered_at: when they were written, in milliseconds since 1970, as far as the log says so.
        protocol, metadata: as in the log.
        removed: number of files and vectors that were removed in each minute since 1970, as far as the
            log still lists them.
    """

    version: int = -1
    files: dict[str, Action] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    numbered_at: dict[str, int] = field(default_factory=dict)
    protocol: Action = field(default_factory=dict)
    metadata: Action = field(default_factory=dict)
    removed: Counter[int] = field(default_factory=Counter)

    @property
    def configuration(self) -> Mapping[str, str]:
        """The properties of the table."""
        return self.metadata.get("configuration") or {}

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply one entry: removals first, because the order within an entry has no meaning."""
        actions = list(actions)
        for removed in _of(actions, "remove"):
            self.removed[removed.get(_REMOVED_AT, 0) // _MINUTE] += 1
            known = self.files.get(removed["path"])
            vector = id_of(removed.get("deletionVector"))
            if known is not None and id_of(known.get("deletionVector")) == vector:
                del self.files[removed["path"]]
        for added in _of(actions, "add"):
            self.files[added["path"]] = added
        for each in _of(actions, "txn"):
            self.numbers[each["appId"]] = int(each["version"])
            self.numbered_at[each["appId"]] = each.get("lastUpdated") or 0
        self.protocol = next(_of(actions, "protocol"), self.protocol)
        self.metadata = next(_of(actions, "metaData"), self.metadata)

    def tombstones(self, since: float) -> int:
        """Return how many files and vectors were removed since a time, in seconds since 1970.

        A log checkpoint lists each of them until it is older than the table's retention.
        """
        first = int(since * 1000) // _MINUTE
        for minute in [each for each in self.removed if each < first]:
            del self.removed[minute]
        return self.removed.total()


def _of(actions: Iterable[Action], kind: str) -> Iterator[Action]:
    return (action[kind] for action in actions if action.get(kind) is not None)


class TableLog:
    """The log of one table.

    Attributes:
        state: what was last read or put.
    """

    def __init__(self, place: TablePlace) -> None:
        self.place, self.state = place, LoggedState()

    def refresh(self) -> bool:
        """Read what others have put; return whether anything is new.

        A log that no longer has the newest entry that was read was put back: it is read anew.

        Raises:
            FileNotFoundError: there is no table.
            OSError: the log cannot be read.
        """
        before = self.state.version
        if before < 0 or not self.is_newest_there():
            self.state = self.at()
            return True
        while (actions := self.entry(self.state.version + 1)) is not None:
            self.state.apply(actions)
            self.state.version += 1
        return self.state.version > before

    def is_newest_there(self) -> bool:
        """Return whether the log has the newest entry that was read: it was not put back."""
        return self.place.is_there(_entry(self.state.version))

    def at(self, version: int | None = None) -> LoggedState:
        """Return the state at a version, or the newest one.

        Raises:
            FileNotFoundError: there is no table, or the log no longer has the version.
            OSError: the log cannot be read.
        """
        after = self._after(version)
        names = self.place.listed(LOG, after)
        if after and not _newest_checkpoint(names, version):  # it is torn, or the log was put back
            names = self.place.listed(LOG)
        state, checkpoint = LoggedState(), _newest_checkpoint(names, version)
        if checkpoint:
            self._read_checkpoint(state, checkpoint)
            state.version = _version(checkpoint[0])
        entries = sorted(_version(name) for name in names if _is_entry(name))
        last = entries[-1] if version is None and entries else version or 0
        later = [each for each in entries if state.version < each <= last]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for number, actions in zip(later, pool.map(self.entry, later), strict=True):
                if number != state.version + 1 or actions is None:
                    break  # the log has a gap
                state.apply(actions)
                state.version = number
        if state.version < 0 or version not in (None, state.version):
            raise FileNotFoundError(f"the log of {self.place.name} does not have the version")
        return state

    def last_checkpoint(self) -> int:
        """Return the version of the last log checkpoint, as the log names it; -1 if it names none."""
        try:
            return int(json.loads(self.place.read(f"{LOG}/_last_checkpoint") or b"{}")["version"])
        except (KeyError, ValueError):
            return -1

    def _after(self, version: int | None) -> str:
        """Return a name after which all files are that a version needs; those before are many."""
        known = self.last_checkpoint()
        return f"{known:020}" if known >= 0 and (version is None or known <= version) else ""

    def _read_checkpoint(self, state: LoggedState, names: Sequence[str]) -> None:
        for name in names:
            with pq.ParquetFile(f"{LOG}/{name}", filesystem=self.place.files) as file:
                wanted = [*_KINDS, f"remove.{_REMOVED_AT}"]
                for batch in file.iter_batches(columns=wanted):
                    for kind in (each for each in _KINDS if each in batch.schema.names):
                        found = batch.column(kind).drop_null().to_pylist(maps_as_pydicts="strict")
                        state.apply({kind: _without_nulls(each)} for each in found)
                        for each in found if kind == "sidecar" else ():
                            self._read_checkpoint(state, [f"_sidecars/{each['path']}"])
                    if "remove" in batch.schema.names:
                        state.removed += _by_minute(batch.column("remove"))

    def entry(self, version: int) -> list[Action] | None:
        """Return the actions of a version; None if there is no such entry."""
        content = self.place.read(_entry(version))
        if content is None:
            return None
        return [json.loads(line) for line in content.splitlines() if line.strip()]

    def put(self, actions: Sequence[Action]) -> bool:
        """Write the next entry; return false if somebody else was first."""
        content = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
        if not self.place.put_if_absent(_entry(self.state.version + 1), content.encode()):
            return False
        self.state.apply(actions)
        self.state.version += 1
        return True


def _by_minute(removals: pa.StructArray) -> Counter[int]:
    times = removals.drop_null().field(_REMOVED_AT).fill_null(0).to_numpy()
    minutes, counts = np.unique(times // _MINUTE, return_counts=True)
    return Counter(dict(zip(minutes.tolist(), counts.tolist(), strict=True)))


def _entry(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def _is_entry(name: str) -> bool:
    return name.endswith(".json") and len(name) == 25 and name[:20].isdigit()


def _version(name: str) -> int:
    return int(name.partition(".")[0])


def checkpoints_in(names: Iterable[str]) -> list[tuple[int, list[str]]]:
    """Return version and files of each complete log checkpoint among files of the log."""
    by_kind: dict[tuple[int, str], list[str]] = {}
    for name in names:
        parts = name.split(".")
        if parts[1:2] == ["checkpoint"] and parts[-1] == "parquet":
            number, kind = int(parts[0]), ".".join(parts[2:-1])
            count = kind.rpartition(".")[2] if len(parts) == 5 else kind  # of parts: 1 of N
            by_kind.setdefault((number, count if len(parts) == 5 else name), []).append(name)
    return [
        (number, files)
        for (number, kind), files in by_kind.items()
        if not kind.isdigit() or len(files) == int(kind)
    ]


def _newest_checkpoint(names: Iterable[str], up_to: int | None) -> list[str]:
    """Return the files of the newest complete checkpoint up to a version; none if there is none."""
    found = [each for each in checkpoints_in(names) if up_to is None or each[0] <= up_to]
    return max(found, key=lambda each: each[0], default=(0, []))[1]


def _without_nulls(value: object) -> Any:  # noqa: ANN401 - a value of JSON
    """Return a value as in JSON, where missing fields are left out."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
