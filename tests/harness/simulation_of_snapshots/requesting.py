"""Requests to a stream that a table has joined: its rows are read again, and it is altered.

Rule: a consumer follows the manual, on a copy that is damaged whenever a request begins. What changed
or was read since is equal to the account at the end of every batch; so is what was never damaged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.capture.copies import Copies
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.options import changed
from harness.simulation.account import COLUMNS, DATABASE, OTHER_TABLE, TABLE, Noted
from harness.simulation.decisions import Decisions
from harness.simulation.setup import captured_table
from harness.simulation.spark import Checkpoint, Offset
from harness.simulation_of_snapshots.joining import (
    OTHER_NAME,
    JoiningOracle,
    JoiningSetup,
    JoiningWorld,
    WritersOfBoth,
    WritingBoth,
)
from harness.simulation_of_snapshots.oracle import NAME, touched
from harness.simulation_of_snapshots.writers import KEYS, Writers
from informix_capture_client.catalog import Table
from informix_capture_client.errors import InformixCdcError, RestartRequired
from informix_cdc.options.source import SourceOptions
from informix_checkpoints.requests import ALTER, RESYNC, Request, RequestFolder
from informix_emulator import EmulatedServer, LongTransactionError
from informix_emulator.sql_errors import SqlError

Row = dict[str, Any]
_MOST_PENDING = 2
_LAYOUTS = (COLUMNS, COLUMNS.replace("value integer", "value bigint"))
_CHANGES = {
    "insert": (("insert", "after"),),
    "delete": (("delete", "before"),),
    "update": (("update_preimage", "before"), ("update_postimage", "after")),
    "update_preimage": (("update_preimage", "before"),),
    "update_postimage": (("update_postimage", "after"),),
    "truncate": (("truncate", ""),),
}


@dataclass(frozen=True)
class RequestingSetup(JoiningSetup):
    """As of a table that joins, with what requests need.

    Attributes:
        shape: with rows, the query ends where its columns change, and is started again.
    """

    shape: str = "json"
    layout: str = _LAYOUTS[0]  # of the table, when the query starts

    @property
    def captured(self) -> list[Table]:
        joined = [captured_table(TABLE, self.layout)] if self.names_both else []
        return [captured_table(OTHER_TABLE), *joined]

    @classmethod
    def decided(cls, decide: Decisions) -> RequestingSetup:
        found = super().decided(decide)
        assert isinstance(found, RequestingSetup)
        needed: dict[str, Any] = {"truncate": "emit", "before_images": True, "loses_spool_one_in": 0}
        needed["shape"] = decide.one_of(["json", "json", "rows"])
        return replace(found, turns=found.turns + 60, most_touched=1_000_000, **needed)

    def options(self, folder: Path, decide: Decisions) -> SourceOptions:
        options = super().options(folder, decide)
        return changed(options, rows__shape=self.shape, rows__table_events=True)


@dataclass
class WritingUnlogged(WritingBoth):
    """A transaction, and whether it has changed the table while full row logging was off."""

    is_unlogged: bool = False


@dataclass
class WritersBesideRequests(WritersOfBoth):
    """Go on while the table is altered: what they change then is not in the log completely."""

    def begin(self) -> str:
        transaction = self.server.begin()
        self.open.append(WritingUnlogged(transaction, transaction.begin_sequence))
        return f"begin {transaction.id}"

    def change(self, noted: Noted) -> str:
        assert isinstance(noted, WritingUnlogged)
        noted.is_unlogged |= not self.server.table(TABLE).full_row_logging
        return super().change(noted)

    def truncate(self) -> str:
        said = super().truncate()
        noted = self.open[-1]
        assert isinstance(noted, WritingUnlogged)
        noted.is_unlogged |= not self.server.table(TABLE).full_row_logging
        return said


@dataclass
class Consumer:
    """A copy by the manual's rules, and the keys in which it may differ.

    Attributes:
        stale: keys that were damaged, or may have changed while the table was not captured.
    """

    copies: Copies = field(default_factory=lambda: Copies({NAME: ("id",), OTHER_NAME: ("id",)}))
    stale: set[int] = field(default_factory=set)
    requests: set[str] = field(default_factory=set)
    since: int | None = None

    @property
    def rows(self) -> dict[int, int]:
        return {key: row["value"] for (key,), row in self.copies.rows[NAME].items()}

    def take(self, rows: list[Row], state: dict[str, Any] | None) -> None:
        """Apply a batch; `state` is the table's in the offset at its end."""
        if state is None or state["since"] != self.since:
            self.stale = set(range(KEYS)) if self.since is not None else set()
            self.since = state["since"] if state else self.since
        request = state["snapshot"].get("request", "") if state else ""
        if request and request not in self.requests:
            self.requests.add(request)
            self._damage(request)
        self.copies.apply(rows)
        if state is not None:
            self.stale -= set(_known_keys([row for row in rows if row["_commit_version"] > self.since]))

    def _damage(self, request: str) -> None:
        """Remove rows, change some, and add ghosts."""
        draw, rows = random.Random(request), self.copies.rows[NAME]
        for key in draw.sample(range(KEYS), KEYS // 2):
            rows.pop((key,), None)
            if draw.random() < 0.6:
                rows[key,] = {"id": key, "value": -1}
            self.stale.add(key)


def _known_keys(rows: list[Row]) -> Iterator[int]:
    """Yield the keys that changed, or are in an interval."""
    low: int | None = None
    for row in rows:
        if not row["_table"].endswith("changes"):
            continue
        kind, images = row["_change_type"], [row[each] for each in ("before", "after") if row[each]]
        keys = [json.loads(image)["id"] for image in images]
        if kind == "truncate":
            yield from range(KEYS)
        elif kind == "range_start":
            low = keys[0]
        elif kind == "range_end":
            high = keys[0]
            yield from (
                key
                for key in range(KEYS)
                if (low is None or key > low) and (high is None or key <= high)
            )
        elif kind != "resync_begin":
            yield from keys


class RequestingOracle(JoiningOracle):
    """Judges a consumer that is damaged when a request begins."""

    def check(self, checkpoint: Checkpoint) -> None:
        super().check(checkpoint)
        self.world.require_altered()  # type: ignore[attr-defined]

    def published(self, start: Offset, end: Offset) -> None:
        since = [self._since(each) for each in (start, end)] if start["stream"] else [0, 0]
        if since[0] != since[1]:
            start = {**start, "restart": 0}  # it goes back to where what returns is whole
        super().published(start, end)

    def _concerns(self, noted: Noted, offset: Offset) -> bool:
        assert isinstance(noted, WritingUnlogged)
        is_logged = NAME in offset["tables"] and not noted.is_unlogged
        return bool(noted.others) or (is_logged and bool(noted.changes))

    def _judge(self, checkpoint: Checkpoint, left_out: list[Noted]) -> None:
        account, consumer = self.world.account, Consumer()
        assert isinstance(account, Writers)
        changes = {noted.commit: noted.changes for noted in account.committed}
        unsure = {key for noted in left_out for key in touched(noted)}
        places: list[tuple[int, int]] = []
        for batch, end in enumerate(checkpoint.ends):
            if batch not in checkpoint.sink:
                break
            rows = _delivered(checkpoint.sink[batch])
            places += [(row["_commit_version"], row["_change_ordinal"]) for row in rows]
            for row in filter(_is_change, rows):
                for change in _changes(row):
                    assert change in changes[row["_commit_version"]], f"batch {batch}: {row}"
            state = end["tables"].get(NAME)
            consumer.take(rows, state)
            judged = _judged(state) - consumer.stale - unsure
            found = {key: value for key, value in consumer.rows.items() if key in judged}
            wanted = account.state(end["commit"])
            expected = {key: value for key, value in wanted.items() if key in judged}
            assert found == expected, (
                f"state after batch {batch}, keys {sorted(judged)}, {end}:\n"
                f" found {sorted(found.items())}\n not   {sorted(expected.items())}"
            )
            left = consumer.stale if self._is_all_read(state) else set()
            assert not left, f"keys {sorted(left)} were not read again up to batch {batch}, {end}"
        assert places == sorted(set(places)), f"places are not unique and rising: {places}"

    def _is_all_read(self, state: dict[str, Any] | None) -> bool:
        """Tell whether everything has been read that was requested last."""
        snapshot = state["snapshot"] if state else {}
        return snapshot.get("done", False) and snapshot.get("request") in self.world.whole  # type: ignore[attr-defined]

    def _rows(self, table: pa.Table | None) -> list[tuple[Any, ...]]:
        names = ("_commit_version", "_change_ordinal", "_snapshot", "_change_type")
        rows = [row for row in _delivered(table) if row["_table"].endswith("changes")]
        return [tuple(row[name] for name in names) for row in rows]

    def _others(self, table: pa.Table | None) -> list[tuple[int, int]]:
        rows = [row for row in _delivered(table) if row["_table"].endswith("other")]
        return [(row["_commit_version"], json.loads(row["after"])["id"]) for row in rows]


def _delivered(table: pa.Table | None) -> list[Row]:
    rows = table.to_pylist() if table is not None else []
    return [row if "after" in row else _as_json(row) for row in rows]


def _as_json(row: Row) -> Row:
    """Return a row of shape=rows as one of shape=json."""
    kind, name = row["_change_type"], row["_table"].rpartition(".")[2]
    image = row.get(name, {each: value for each, value in row.items() if not each.startswith("_")})
    text = json.dumps(image) if image is not None else None
    is_before = kind in ("delete", "update_preimage")
    return {**row, "before": text if is_before else None, "after": None if is_before else text}


def _is_change(row: Row) -> bool:
    return row["_table"].endswith("changes") and not row["_snapshot"]


def _changes(row: Row) -> Iterator[tuple[str, int, int]]:
    for kind, image in _CHANGES[row["_change_type"]]:
        values = json.loads(row[image]) if image else {"id": 0, "value": 0}
        yield kind, values["id"], values["value"]


def _judged(state: dict[str, Any] | None) -> set[int]:
    """Return the keys that a copy has: during the first snapshot those that were read."""
    if state is None:
        return set()
    snapshot = state["snapshot"]
    if snapshot.get("done") or snapshot.get("purpose"):
        return set(range(KEYS))
    upto = int(snapshot["after"][0]) if snapshot.get("after") else -1
    return set(range(upto + 1))


class RequestingWorld(JoiningWorld):
    """One schedule."""

    def __init__(self, decide: Decisions, setup: RequestingSetup, folder: Path) -> None:
        self.requested = {RESYNC: 0, ALTER: 0}
        self.restarts = 0  # because the columns of the query had changed
        self.layouts = 0  # that the table has had
        self._alters: list[str] = []
        self.whole: set[str] = set()  # requests for all rows that are not cancelled
        self._numbers = count(1)
        super().__init__(decide, setup, folder)

    def made_writers(self, server: EmulatedServer) -> Writers:
        return WritersBesideRequests(server, self.decide)

    def made_oracle(self) -> RequestingOracle:
        return RequestingOracle(self)

    @property
    def _requests(self) -> RequestFolder:
        return RequestFolder(self.folder / "spool" / self.checkpoint.ends[-1]["stream"])

    def _step(self) -> None:
        super()._step()
        ends = self.checkpoint.ends
        if ends and NAME in ends[-1]["tables"] and self.decide.one_in(8):
            self._request()
        self._alter()

    def _request(self) -> None:
        pending = self._requests.pending()
        resyncs = [each for each in pending if each.kind == RESYNC]
        if resyncs and self.decide.one_in(4):
            self._requests.cancel(resyncs[0].id)
            self.whole.discard(resyncs[0].id)
            self.log(f"request {resyncs[0].id} is cancelled")
        if len(pending) >= _MOST_PENDING:
            return
        kind = ALTER if self.decide.one_in(3) else RESYNC
        low, high = (
            self.decide.below(KEYS) if kind == RESYNC and self.decide.one_in(3) else None for _ in "ab"
        )
        request = Request(
            kind=kind,
            tables=(NAME,),
            low=None if low is None else str(low),
            high=None if high is None else str(max(high, low or 0)),
            id=f"{next(self._numbers):019d}-000000",
        )
        self._requests.submit(request)
        self.requested[kind] += 1
        self._alters += [request.id] if kind == ALTER else []
        if low is high is None:
            self.whole.add(request.id)
        self.log(f"{kind} from {request.low} to {request.high} is requested: {request.id}")

    def _alter(self) -> None:
        """Do what `informix-cdc alter` does when the stream has released the table, in two steps."""
        if not self.checkpoint.ends:
            return
        folder = self._requests
        for request in folder.pending():
            if (
                request.kind != ALTER
                or not folder.is_ready(request.id)
                or folder.is_altered(request.id)
            ):
                continue
            if self.server.table(TABLE).full_row_logging:
                self.server.set_full_row_logging(TABLE, False)
                self.log("full row logging is off")
                self._change_layout()
            elif self.is_draining or self.decide.one_in(4):
                self.server.set_full_row_logging(TABLE, True)
                folder.mark_altered(request.id)
                self.log("full row logging is on, and the table altered")

    def _change_layout(self) -> None:
        """Run an ALTER, which waits for transactions that have locked rows of the table."""
        if self.decide.one_in(4):
            return
        name, kind = _LAYOUTS[(self.layouts + 1) % 2].rpartition(", ")[2].split()
        writer = InProcessConnection(self.server, LOGIN, DATABASE)
        try:
            for noted in list(self.account.open):
                self.log(self.account.commit(noted))
            writer.rows(f"ALTER TABLE informix.changes MODIFY ({name} {kind})")
        except (SqlError, LongTransactionError) as reason:
            self.log(f"the ALTER fails: {reason}")
            return
        self.layouts += 1
        self.server.finish_alter(TABLE)
        self.log(f"the table is altered: {name} {kind}")

    def _begin_process(self) -> None:
        assert isinstance(self.setup, RequestingSetup)
        self.setup = replace(self.setup, layout=_LAYOUTS[self.layouts % 2])
        super()._begin_process()

    def _query_failed(self, reason: InformixCdcError) -> None:
        if isinstance(reason, RestartRequired):
            self.log(f"the query ends: {reason}")
            self.restarts += 1
            self._alter()  # somebody goes on while the query is away
            self.die("it is to be started again")
        super()._query_failed(reason)

    def require_altered(self) -> None:
        """Require that no table came back before it was altered."""
        for request in self._alters:
            assert self._requests.is_altered(request), f"request {request} ended without an ALTER"

    def _drain(self) -> None:
        self._alter()
        super()._drain()

    def is_all_there(self) -> bool:
        return super().is_all_there() and not self._requests.pending()
