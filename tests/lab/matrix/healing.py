"""Targets of Spark are tampered with while their mirror runs, repaired, read again and altered.

One table is never tampered with and changes all the time: a difference in it is a false alarm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from harness.lake.ledger import DATABASE, Key, Ledger, LedgerTable, Row
from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import PASSWORD
from informix_cdc import lake
from informix_cdc.lake.commit_text import CommitText
from informix_cdc.lake.identity import known_identity
from informix_cdc.lake.places import Lake
from informix_cdc.lake.spark_tables import SparkMerges
from informix_cdc.options import PASSWORD_VARIABLE

_ROWS = 4  # at least, in each table
_WRITE_SECONDS = 0.05
_FRESH: dict[str, Any] = {"string": "zz", "date32[day]": date(2079, 1, 1)}  # else a number
_LIVE = {"_deleted_at": None, "_valid_to": None, "_valid_to_timestamp": None, "_change_type": "insert"}


class Healing:
    """A running mirror whose targets are tampered with.

    Args:
        name_of: returns a target's name in SQL.
        caught_up: waits until the mirror has everything that is committed.
    """

    def __init__(
        self,
        spark: SparkSession,
        made: Ledger,
        port: int,
        settings: lake.MirrorSettings,
        name_of: Callable[[str], str],
        caught_up: Callable[[], None],
    ) -> None:
        self.spark, self.made, self.port = spark, made, port
        self.settings, self.name_of, self.caught_up = settings, name_of, caught_up
        *self.tampered, self.busy = made.tables

    def heal(self) -> None:
        """Play it: a clean verification, tampering, a repair, a resync, and an ALTER."""
        while min(map(len, self.made.states[max(self.made.states)].values())) < _ROWS:
            self.made.change(5)
        with self._writing():
            assert self._differences() == {}
        keys = self._tamper_all()
        with self._writing():
            for repair in (False, True):
                found = self._differences(repair=repair)
                assert found == keys, f"found {found}, not {keys}"
            assert self._differences() == {}
        self.require_equal()
        self._tamper_all()
        with self._writing():
            for table in self.tampered:
                self._command("resync", f"informix.{table.name}")
        self.require_equal()
        self.alter(self.tampered[0], "ADD (added INTEGER DEFAULT 7)")
        live = self.live(self.tampered[0], self._rows(self.tampered[0]).to_pylist())
        assert {row["added"] for row in live.values()} == {7}
        with self._writing():
            assert self._differences() == {}

    def _differences(self, *, repair: bool = False) -> dict[tuple[str, Key], str]:
        """Return the kind of each difference, by target and key as text."""
        found = lake.verify(self.settings, repair=repair, spark=self.spark, timeout=patiently(120))
        assert found.unverified == {}, found
        return {
            (row["table"].partition(".")[2], tuple(map(str, json.loads(row["key"]).values()))): row[
                "what"
            ]
            for row in found.differences.to_pylist()
        }

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with meanwhile(lambda: self.made.change(1, [self.busy]), _WRITE_SECONDS):
            yield
        self.caught_up()

    def _rows(self, table: LedgerTable) -> pa.Table:
        self.spark.sql(f"REFRESH TABLE {self.name_of(table.name)}")
        return self.spark.table(self.name_of(table.name)).toArrow()

    def live(self, table: LedgerTable, rows: list[Row]) -> dict[Key, Row]:
        """Return those of the rows that a target of any form has now."""
        if rows and "_change_type" in rows[0]:
            rows = sorted(rows, key=lambda row: (row["_commit_version"], row["_change_ordinal"]))
        found: dict[Key, Row] = {}
        for row in rows:
            key = tuple(row[name] for name in table.key)
            kind = row.get("_change_type", "insert")
            if kind == "truncate":
                found.clear()
            elif kind in ("delete", "update_preimage"):
                found.pop(key, None)
            elif row.get("_deleted_at") is None and row.get("_valid_to") is None:
                found[key] = row
        return found

    def require_equal(self) -> None:
        """Compare all targets with the writer's account."""
        state = self.made.states[max(self.made.states)]
        for table in self.made.tables:
            rows = {
                key: {name: row[name] for name in table.columns}
                for key, row in self.live(table, self._rows(table).to_pylist()).items()
            }
            assert rows == state[table.name], table.name

    def _tamper_all(self) -> dict[tuple[str, Key], str]:
        """Remove a row, add a ghost, and change a value in each table but one; return the keys."""
        found: dict[tuple[str, Key], str] = {}
        for table in self.tampered:
            rows = self._rows(table)
            kept = rows.to_pylist()
            gone, wrong, *_ = self.live(table, kept).values()
            kept = [row for row in kept if any(row[name] != gone[name] for name in table.key)]
            column = next(n for n in table.columns if n not in table.key)
            wrong[column] = (
                None if wrong[column] is not None else _other(rows.schema.field(column).type)
            )
            last = table.key[-1]
            kind = str(rows.schema.field(last).type)
            ghost = {**gone, last: _FRESH.get(kind, 32_000)}
            ghost |= {name: value for name, value in _LIVE.items() if name in ghost}
            self._overwrite(table, pa.Table.from_pylist([*kept, ghost], rows.schema))
            for row, what in ((gone, "missing"), (wrong, "different"), (ghost, "extra")):
                found[table.name, tuple(str(row[name]) for name in table.key)] = what
        return found

    def _overwrite(self, table: LedgerTable, rows: pa.Table) -> None:
        """Write in a commit that looks like one of the mirror: others would stop the table."""
        application = known_identity(self.settings.checkpoint).application
        session = SparkMerges(self.spark, application)
        target = Lake(self.settings, application, self.spark).target(table.name)
        number, end = target.number(), target.end()
        assert number is not None
        session.number(number, CommitText(end))
        session.session.conf.unset("spark.databricks.delta.write.txnAppId")
        session.session.conf.unset("spark.databricks.delta.write.txnVersion")
        session.session.createDataFrame(rows).createOrReplaceTempView("tampered")
        session.session.sql(f"INSERT OVERWRITE {self.name_of(table.name)} SELECT * FROM tampered")

    def alter(self, table: LedgerTable, what: str) -> None:
        """Alter a table while the mirror runs."""
        statement = f"ALTER TABLE informix.{table.name} {what}"
        with self._writing():
            self._command("alter", statement, "--yes", *self._connection())
        writer = InProcessConnection(self.made.server, LOGIN, DATABASE)
        count = writer.rows(f"SELECT count(*) FROM informix.{table.name}")
        live = self.live(table, self._rows(table).to_pylist())
        assert str(len(live)) == count[0][0].strip()

    def _connection(self) -> list[str]:
        return [
            "--host=127.0.0.1", f"--port={self.port}", "--server=informix", "--transport=sqli",
            f"--database={DATABASE}",
        ]  # fmt: skip

    def _command(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "informix_cdc.commands.cli", name, *arguments]
        command += ["--checkpoint", self.settings.checkpoint]
        environment = {**os.environ, PASSWORD_VARIABLE: PASSWORD}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


def _other(kind: pa.DataType) -> Any:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return datetime(2001, 2, 3) if pa.types.is_timestamp(kind) else date(2001, 2, 3)
    return True if pa.types.is_boolean(kind) else pa.scalar("0", pa.string()).cast(kind).as_py()
