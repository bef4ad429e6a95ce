"""A table joins a stream, with a snapshot: writers change both in the same transactions meanwhile.

Rule: the stream begins with another table. Later somebody stops the query and names both; what the
other table has been given comes all the same, each row once, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.servers.options import changed
from harness.simulation.account import OTHER_TABLE, TABLE, Noted, row
from harness.simulation.decisions import Decisions
from harness.simulation.oracle import Stream
from harness.simulation.setup import captured_table
from harness.simulation.spark import Checkpoint, Offset
from harness.simulation_of_snapshots.oracle import NAME, SnapshotOracle
from harness.simulation_of_snapshots.world import SnapshotSetup, SnapshotWorld
from harness.simulation_of_snapshots.writers import Writers, Writing
from informix_capture_client.catalog import Table
from informix_cdc.options.source import SourceOptions
from informix_emulator import EmulatedServer

OTHER_NAME = "informix.other"
_PLACE = ("_commit_version", "_change_ordinal", "_snapshot", "_change_type")


@dataclass(frozen=True)
class JoiningSetup(SnapshotSetup):
    """As of snapshots; `names_both` once the table has been named that joins."""

    names_both: bool = False

    @property
    def captured(self) -> list[Table]:
        joined = [captured_table(TABLE)] if self.names_both else []
        return [captured_table(OTHER_TABLE), *joined]

    def options(self, folder: Path, decide: Decisions) -> SourceOptions:
        options = super().options(folder, decide)
        if not self.names_both:
            return changed(options, tables__listed=(OTHER_NAME,), snapshots__tables=())
        return changed(options, tables__listed=(OTHER_NAME, NAME), snapshots__tables=(NAME,))


@dataclass
class WritingBoth(Writing):
    """A transaction, and what it has added to the other table."""

    others: list[int] = field(default_factory=list)


@dataclass
class WritersOfBoth(Writers):
    """Change both tables in one transaction; the other one is only added to."""

    added: list[tuple[Noted, int]] = field(default_factory=list)  # committed, in order

    def begin(self) -> str:
        transaction = self.server.begin()
        self.open.append(WritingBoth(transaction, transaction.begin_sequence))
        return f"begin {transaction.id}"

    def change(self, noted: Noted) -> str:
        assert isinstance(noted, WritingBoth)
        if not self.decide.one_in(3):
            return super().change(noted)
        self.next_value += 1
        noted.transaction.insert(OTHER_TABLE, row(self.next_value, 0))
        noted.others.append(self.next_value)
        return f"add {self.next_value} to the other in {noted.transaction.id}"

    def undo_some(self, noted: Noted) -> str:
        assert isinstance(noted, WritingBoth)
        known = list(noted.others)
        said = super().undo_some(noted)
        noted.others = known
        return said

    def commit(self, noted: Noted) -> str:
        assert isinstance(noted, WritingBoth)
        said = super().commit(noted)
        self.added += [(noted, number) for number in noted.others]
        if noted.others and not noted.changes:
            self.committed.append(noted)
        return said

    def foreign(self) -> str:
        """Let a transaction go by that changes nothing of the two."""
        with self.server.transaction() as transaction:
            pass
        return f"foreign {transaction.id}"


class JoiningOracle(SnapshotOracle):
    """Judges the table that joins as one that is read at the beginning, from where it has joined."""

    def published(self, start: Offset, end: Offset) -> None:
        if start["stream"] and start["tables"] != end["tables"] and NAME not in start["tables"]:
            start = {**start, "restart": 0}  # it goes back to where what joins is whole
        super().published(start, end)

    def undelivered(self, checkpoint: Checkpoint, count: int | None = None) -> list[Noted]:
        ends = checkpoint.ends
        missing = super().undelivered(checkpoint, count)
        return [noted for noted in missing if not ends or self._concerns(noted, ends[-1])]

    def _concerns(self, noted: Noted, offset: Offset) -> bool:
        assert isinstance(noted, WritingBoth)
        return NAME in offset["tables"] or bool(noted.others)

    def _may_be_left_out(self, noted: Noted, stream: Stream) -> bool:
        """Also what is older than the stream, though it commits behind the place of the join.

        The server may show no session anything of it; the chunks have what it has changed.
        """
        return stream.may_be_older(noted)

    def _since(self, end: Offset) -> int | None:
        return end["tables"][NAME]["since"] if NAME in end["tables"] else None

    def _rows(self, table: pa.Table | None) -> list[tuple[Any, ...]]:
        if table is None or "changes" not in table.schema.names:
            return []
        places = zip(*(table[name].to_pylist() for name in _PLACE), strict=True)
        tables, values = table["_table"].to_pylist(), table["changes"].to_pylist()
        return [
            (*place, (value or {}).get("id"), (value or {}).get("value"))
            for place, name, value in zip(places, tables, values, strict=True)
            if name.endswith("changes")
        ]

    def check(self, checkpoint: Checkpoint) -> None:
        super().check(checkpoint)
        self._check_others(checkpoint)

    def _check_others(self, checkpoint: Checkpoint) -> None:
        if not checkpoint.ends:
            return
        stream, account = self.streams[checkpoint.ends[0]["stream"]], self.world.account
        assert isinstance(account, WritersOfBoth)
        last = max((int(end["commit"]) for end in _done(checkpoint)), default=0)
        expected = [
            (noted.commit, number) for noted, number in account.added if stream.delivers(noted, last)
        ]
        vague = {noted.commit for noted, _ in account.added if stream.may_deliver(noted)}
        came = [each for _, table in sorted(checkpoint.sink.items()) for each in self._others(table)]
        assert [each for each in came if each[0] not in vague] == expected, (
            f"rows of the other table:\n found {came}\n not   {expected}"
        )

    def _others(self, table: pa.Table | None) -> list[tuple[int, int]]:
        if table is None:
            return []
        commits = table["_commit_version"].to_pylist()
        if "id" in table.schema.names:
            return list(zip(commits, table["id"].to_pylist(), strict=True))
        values = table["other"].to_pylist()
        return [(c, v["id"]) for c, v in zip(commits, values, strict=True) if v is not None]


def _done(checkpoint: Checkpoint) -> Sequence[Offset]:
    return [end for batch, end in enumerate(checkpoint.ends) if batch in checkpoint.sink]


class JoiningWorld(SnapshotWorld):
    """One schedule."""

    def made_writers(self, server: EmulatedServer) -> Writers:
        return WritersOfBoth(server, self.decide)

    def made_oracle(self) -> JoiningOracle:
        return JoiningOracle(self)

    @property
    def _may_name_both(self) -> bool:
        """A batch that runs again has other columns then, which Spark takes, and our sink does not."""
        assert isinstance(self.setup, JoiningSetup)
        is_begun = bool(self.checkpoint.offsets) and self.checkpoint.is_all_done
        return is_begun and not self.setup.names_both

    def _begin_process(self) -> None:
        if self._may_name_both and (self.is_draining or self.decide.one_in(2)):
            assert isinstance(self.setup, JoiningSetup)
            self.setup = replace(self.setup, names_both=True)
            self.log("a table is to join")
        super()._begin_process()

    def _step(self) -> None:
        super()._step()
        if self._may_name_both and not self.process.query.has_ended and self.decide.one_in(8):
            self.stop_query()

    def _drain(self) -> None:
        super()._drain()
        self.account.foreign()  # a table joins behind a record of after it was switched on
        if self._may_name_both and not self.process.query.has_ended:
            self.stop_query()

    def is_all_there(self) -> bool:
        ends = self.checkpoint.ends
        return bool(ends) and NAME in ends[-1]["tables"] and super().is_all_there()
