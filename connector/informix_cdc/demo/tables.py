"""Compare the Delta tables of the mirror with the shop's tables as the workload left them.

Rule: the account records what was committed, and shares no code with the mirror.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from informix_capture_client.shapes import ChangeRow
from informix_cdc.demo.rows_there import key_of
from informix_cdc.lake import as_of
from informix_emulator.shop import CommittedTransaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from informix_emulator.shop import RowDict

_Key = tuple[object, ...]
_State = Mapping[str, Mapping[_Key, "RowDict"]]
_GONE = ("delete", "update_preimage")
_MOST_COMMITS = 4  # commits at which all tables are compared


@dataclass(slots=True)
class TablesAccount:
    """The content of each table after the transactions applied so far.

    Attributes:
        kept: the state at some commits, to compare with the lake as of these commits.
    """

    kept: dict[int, _State] = field(default_factory=dict)
    _tables: dict[str, dict[_Key, RowDict]] = field(default_factory=dict)

    def insert(self, table: str, row: RowDict) -> None:
        """Record an existing row."""
        self._tables.setdefault(table, {})[key_of(table, row)] = row

    def apply(self, transaction: CommittedTransaction) -> None:
        """Record a committed transaction."""
        for change in transaction.changes:
            if change.change_type in _GONE:
                self._tables[change.table].pop(key_of(change.table, change.row))
            else:
                self.insert(change.table, change.row)

    def keep(self, commit: int) -> None:
        """Keep the current state as that of a commit; of many, only the first and the last ones."""
        if len(self.kept) >= _MOST_COMMITS:
            del self.kept[list(self.kept)[1]]
        self.kept[commit] = {table: dict(rows) for table, rows in self._tables.items()}

    def compare(self, spark: SparkSession, into: str) -> tuple[bool, str]:
        """Return whether the Delta tables equal the account at each kept commit, with a text."""
        if not self.kept:
            return False, "NOT compared: no batch ended with all changes of the stream"
        rows = 0
        for commit, state in self.kept.items():
            tables = as_of(spark, into, commit)
            if tables.commit != commit or tables.missing:
                return False, f"NOT equal: no tables as of commit {commit}: {dict(tables.missing)}"
            for table, wanted in state.items():
                found = tables[table.rpartition(".")[2]].toArrow().to_pylist()
                rows = len(found) + rows if commit == max(self.kept) else rows
                if {key_of(table, row): row for row in found} != wanted or len(found) != len(wanted):
                    return False, f"NOT equal: {table} as of commit {commit} differs"
        names = ", ".join(table.rpartition(".")[2] for table in self._tables)
        return True, (
            f"equal: {names} in Delta, {rows:,} rows, every value; and as of"
            f" {len(self.kept) - 1} earlier commits, all tables together"
        )


def changes_in_order(rows: Sequence[Mapping[str, Any]]) -> list[ChangeRow]:
    """Return the changes of a micro-batch in commit order, over all tables."""
    found = [(row["_table"], change) for row in rows for change in _changes_of(row)]
    found.sort(key=lambda each: (each[1]["_commit_version"], each[1]["_change_ordinal"]))
    return [
        ChangeRow(str(change["_change_type"]), str(table), dict(row), change)
        for table, change in found
        if (row := change.pop("row")) is not None  # the truncate that starts a snapshot has none
    ]


def _changes_of(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from pa.ipc.open_stream(row["arrow"]).read_all().to_pylist()
