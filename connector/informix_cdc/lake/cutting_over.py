"""Cut a mirror over: PostgreSQL becomes the primary, at a state that is proven to be Informix's.

Rule: nothing is changed before the last step, which is one transaction of PostgreSQL: it sets the
sequences, lets other programs write the tables, and lets the mirror write them no more. Without it, the
steps are a rehearsal.

    require_ready     no table is stopped, loading, or to be compared
    wait_until_idle   no table has changed for some time
    require_closed    no transaction that has written a table is open in Informix
    verify_all        every row equals Informix, and no table has changed meanwhile
    open_tables       the last step
    undo              the mirror may go on: it compares every table first
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial

from informix_capture_client.catalog import Catalog, SerialCounters
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName
from informix_cdc.lake.control_tables import LEFT, MIRRORED, ControlTables, TableRecord
from informix_cdc.lake.epochs import Beginning
from informix_cdc.lake.identity import known_identity
from informix_cdc.lake.postgres_batches import GUARD, POSITION, PostgresBatches
from informix_cdc.lake.postgres_tables import PostgresTarget
from informix_cdc.lake.settings import CONTROL, POSTGRESQL, MirrorSettings
from informix_cdc.lake.verifying import Verification, verify
from informix_cdc.options import SourceOptions
from informix_cdc.postgresql import PostgresDatabase, quoted
from informix_cdc.server import open_catalog

CUTOVERS = f"{CONTROL}cutovers"
_POLL_SECONDS = 0.2
_COUNTER = {"SERIAL": "serial", "SERIAL8": "serial8", "BIGSERIAL": "bigserial"}
_SERIAL = re.compile(r"((?:BIG)?SERIAL8?)(?:\(\d+\))?")


class NotCutOver(Exception):
    """The mirror cannot be cut over now: `reasons`, each with what to do; nothing was changed."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class CutOverTable:
    """A table at the cut-over.

    Attributes:
        table: owner.table.
        target: in PostgreSQL.
        rows: their number.
        digest: sum of hashtextextended(t::text, 0) over the rows, which does not depend on their order.
    """

    table: str
    target: str
    rows: int
    digest: int


@dataclass(frozen=True, slots=True)
class CutOverSequence:
    """The sequence of a column: the last number that Informix may have given."""

    target: str
    column: str
    last: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was, or would be, cut over.

    Attributes:
        commit: of Informix, that all tables have reached.
        committed_at: its time by Informix's clock; None if no batch had changes.
        tables: all of them.
        sequences: of SERIAL columns.
        at: when the tables were opened; None in a rehearsal.
    """

    commit: int
    committed_at: datetime | None
    tables: tuple[CutOverTable, ...]
    sequences: tuple[CutOverSequence, ...]
    at: datetime | None = None


class CutOver:
    """The steps of a cut-over.

    Args:
        settings: of the mirror.
        options: of the connection to Informix.
        spool_path: option spoolPath of the mirror, if it sets one.

    Raises:
        BadOption: the mirror is not one into PostgreSQL, or has not begun.
    """

    def __init__(self, settings: MirrorSettings, options: SourceOptions, spool_path: str = "") -> None:
        if settings.format != POSTGRESQL:
            raise BadOption(
                f"format is {settings.format}, but only a mirror into PostgreSQL can be cut over.",
                "Set format to postgresql in a mirror of its own.",
            )
        self._settings, self._spool = settings, spool_path
        self._mirror = known_identity(settings.checkpoint)
        self._server = replace(options.connection, database=self._mirror.database)
        self._batches = PostgresBatches(settings, self._mirror.application, is_writer=False)
        self._verified_from: tuple[int, int] | None = None

    @property
    def database(self) -> PostgresDatabase:
        """The database."""
        return self._batches.database

    def require_ready(self) -> dict[str, TableRecord]:
        """Return the tables, if all of them are whole.

        Raises:
            NotCutOver: a table is stopped, loading or to be compared; or none is mirrored.
            BadOption: the mirror was cut over.
        """
        self._batches.forget()
        self._batches.doubt()  # refuses what was cut over
        records = {n: each for n, each in self._control.tables().items() if each.status != LEFT}
        last = self._control.batches()[-1:]
        loading = {name for row in last for name in row["loading"]}
        epoch = max((each.epoch for each in self._control.epochs()), default=0)
        reasons = [
            f"{name} is {each.status}: {each.reason or 'it is not mirrored'}"
            for name, each in records.items()
            if each.status != MIRRORED or each.reason
        ]
        reasons += [f"{name} is loading: wait until its rows are read." for name in sorted(loading)]
        reasons += [
            f"{name} is being compared with Informix: wait until it is."
            for name, each in records.items()
            if each.status == MIRRORED and each.compared < epoch and name not in loading
        ]
        if reasons or not records:
            raise NotCutOver(*(reasons or ["no table is mirrored yet: start the mirror."]))
        return records

    def wait_until_idle(self, seconds: float, on_wait: Callable[[str], None] = lambda _: None) -> None:
        """Return when no table has changed for some time."""
        last, since = self._last_change(), time.monotonic()
        while (quiet := time.monotonic() - since) < seconds:
            on_wait(f"no changes for {quiet:.0f} of {seconds:g} s")
            time.sleep(min(_POLL_SECONDS, seconds))
            if (now := self._last_change()) != last:
                last, since = now, time.monotonic()

    def require_closed(self) -> None:
        """Refuse while a transaction that has written a table is open in Informix.

        Raises:
            NotCutOver: names tables and sessions.
            InformixCdcError: the server cannot be asked.
        """
        reasons = []
        with open_catalog(self._server) as catalog:
            for name in self._names():
                if sessions := catalog.writers(name):
                    shown = ", ".join(map(str, sessions))
                    reasons.append(
                        f"{name} has locks of session {shown}, whose transaction is open: let it end,"
                        f" or end it: onmode -z {sessions[0]}"
                    )
        if reasons:
            raise NotCutOver(*reasons)

    def verify_all(self, timeout_seconds: float | None = None) -> Verification:
        """Compare all rows of all tables with Informix, while the mirror runs.

        What was committed before this began is in the tables when it ends: the rows of Informix are
        true at a place of the stream that the mirror has passed.

        Raises:
            NotCutOver: a table differs, was not compared, or has changed meanwhile.
        """
        self._verified_from = self._last_change()
        found = self._verified((), timeout_seconds)
        smallest = min(found.tables, key=lambda each: each.rows)
        self.require_closed()
        self._verified((smallest.table,), timeout_seconds)  # has passed what came after the others
        self._require_unchanged()
        return found

    def _verified(self, tables: Sequence[str], timeout_seconds: float | None) -> Verification:
        found = verify(self._settings, spool_path=self._spool, tables=tables, timeout=timeout_seconds)
        reasons = [f"{name} was not compared: {why}" for name, why in found.unverified.items()]
        reasons += [
            f"{each.table} differs from Informix: {each.missing} rows missing, {each.extra} extra,"
            f" {each.different} different. Repair it, and find out why:"
            " informix-cdc verify FILE.toml --repair"
            for each in found.tables
            if each.differences
        ]
        if reasons:
            raise NotCutOver(*reasons)
        return found

    def _require_unchanged(self) -> None:
        if (now := self._last_change()) != self._verified_from:
            row = self._control.batches()[-1]
            targets = ", ".join(sorted(each["target"] for each in row["versions"]))
            raise NotCutOver(
                f"{targets} changed while the tables were compared, in batch {now[1]}: stop the"
                " programs that write them, and begin again."
            )

    def receipt(self) -> Receipt:
        """Return what would be cut over: rows and digests of one transaction, and the sequences.

        Raises:
            InformixCdcError: a server cannot be asked.
        """
        records = self.require_ready()
        row = self._control.batches()[-1]
        database, tables = self.database, list[CutOverTable]()
        database.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            for name, each in sorted(records.items()):
                place = database.name(each.target)
                ((rows, digest),) = database.rows(
                    "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)"
                    f" FROM {place} t"
                )
                tables.append(CutOverTable(name, each.target, rows, int(digest)))
        finally:
            database.roll_back()
        return Receipt(
            row["commit"], row["commit_timestamp"], tuple(tables), tuple(self._sequences(records))
        )

    def _sequences(self, records: Mapping[str, TableRecord]) -> Iterator[CutOverSequence]:
        """Yield the sequence of each SERIAL column: from Informix's counter, or its highest value."""
        columns = {name: list(_serial_columns(each)) for name, each in records.items()}
        with open_catalog(self._server) as catalog:
            counters = self._counters(catalog, [name for name, found in columns.items() if found])
        for name, found in columns.items():
            for column, kind in found:
                target = records[name].target
                place = self.database.name(target)
                ((highest, sequence),) = self.database.rows(
                    f"SELECT coalesce(max({quoted(column)}), 0),"
                    f" pg_get_serial_sequence(%s, %s) FROM {place}",
                    (place, column),
                )
                if sequence:
                    last = max(highest, getattr(counters[name], _COUNTER[kind]))
                    yield CutOverSequence(target, column, last)

    def _counters(self, catalog: Catalog, names: Sequence[str]) -> dict[str, SerialCounters]:
        database = self._mirror.database
        found = catalog.find_tables([TableName.parse(name, database) for name in names])
        tables = [each.table for each in found if each.table is not None]
        if len(tables) != len(names):
            raise BadOption(
                f"a table of the mirror is not in {database}: its SERIAL counter is unknown.",
                "Exclude it with ! in option table, and run the mirror.",
            )
        return dict(zip(names, catalog.serials(tables), strict=True))

    def open_tables(self, receipt: Receipt) -> Receipt:
        """Set the sequences, and let other programs write the tables, and the mirror no more.

        Raises:
            NotCutOver: a table has changed since all were compared.
        """
        database, records = self.database, self.require_ready()
        where = f"WHERE mirror = '{self._mirror.application}'"
        database.run("BEGIN")
        try:
            database.rows(f"SELECT 1 FROM {database.name(POSITION)} {where} FOR UPDATE")
            self._require_unchanged()
            for each in receipt.sequences:
                name = database.name(each.target)
                database.rows(
                    "SELECT setval(pg_get_serial_sequence(%s, %s), greatest(%s, 1))",
                    (name, each.column, each.last),
                )
            for record in records.values():
                database.run(_guarded(database, record.target, "DISABLE"))
            ((at,),) = database.rows(
                f"UPDATE {database.name(POSITION)} SET cut_over = now(), undone = NULL {where}"
                " RETURNING cut_over"
            )
            done = Receipt(receipt.commit, receipt.committed_at, receipt.tables, receipt.sequences, at)
            database.run(_WRITTEN.format(database.name(CUTOVERS)))
            database.run(
                f"INSERT INTO {database.name(CUTOVERS)} VALUES (%s, %s, %s, %s, %s)",
                (self._mirror.id, at, done.commit, done.committed_at, json.dumps(_shown(done))),
            )
            database.run("COMMIT")
        finally:
            database.roll_back()
        return done

    def undo(self) -> None:
        """Let the mirror write the tables again, and no other program: it compares them first.

        Raises:
            BadOption: the mirror is not cut over.
        """
        self._batches.forget()
        position = self._batches.position
        if position is None or position.cut_over is None:  # what was interrupted is done again
            raise BadOption("the mirror is not cut over.", "Start it: informix-cdc mirror FILE.toml")
        database = self.database
        database.run("BEGIN")
        try:
            for record in self._control.tables().values():
                if self._batches.table(record.target) is not None:
                    database.run(_guarded(database, record.target, "ENABLE"))
            where = f"WHERE mirror = '{self._mirror.application}'"
            database.run(f"UPDATE {database.name(POSITION)} SET undone = now() {where}")
            database.run("COMMIT")
        finally:
            database.roll_back()
        mirror = self._mirror
        begun = Beginning(self._settings, mirror.server, mirror.database).begin(may_begin_epoch=True)
        begun.lake.close()

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    @property
    def _control(self) -> ControlTables:
        self._batches.forget()
        return ControlTables(self._mirror.id, partial(PostgresTarget, self._batches))

    def _last_change(self) -> tuple[int, int]:
        """Return epoch and number of the last batch that has changed a table."""
        rows = self._control.batches()
        return (rows[-1]["epoch"], rows[-1]["batch"]) if rows else (0, -1)

    def _names(self) -> list[TableName]:
        return [TableName.parse(name, self._mirror.database) for name in self.require_ready()]


_WRITTEN = (
    "CREATE TABLE IF NOT EXISTS {} (mirror text NOT NULL, at timestamptz NOT NULL,"
    " commit bigint NOT NULL, commit_timestamp timestamptz, receipt jsonb NOT NULL)"
)


def _serial_columns(record: TableRecord) -> Iterator[tuple[str, str]]:
    """Yield name and kind of each SERIAL column of a table."""
    for column, declared, *_ in json.loads(record.columns):
        if found := _SERIAL.fullmatch(declared):
            yield column, found[1]


def _guarded(database: PostgresDatabase, target: str, does: str) -> str:
    return f"ALTER TABLE {database.name(target)} {does} TRIGGER {quoted(GUARD)}"


def _shown(receipt: Receipt) -> dict[str, object]:
    """Return a receipt as it is stored: digests have more digits than a number of JSON keeps."""
    tables = [{**asdict(each), "digest": str(each.digest)} for each in receipt.tables]
    return {"tables": tables, "sequences": [asdict(each) for each in receipt.sequences]}
