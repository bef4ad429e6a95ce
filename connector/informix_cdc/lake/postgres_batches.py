"""A schema of PostgreSQL as the place of a mirror's tables: a batch is one transaction over all.

Rule: the place of the mirror in the stream is a row of `_informix_cdc_position`, which each batch moves
in its transaction, from where this process knows it to be. So a batch is in all tables or in none, and
of two drivers one finds the row moved. A trigger on each table refuses writes of other programs until
the mirror is cut over.

    begin       reads the position and the tables, outside of a transaction
    writing     begins the transaction, if it is the first to write, and moves the position
    end         commits, also if no table has changed
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from informix_capture_client.errors import BadOption, DataLoss
from informix_capture_client.failpoints import failpoint
from informix_capture_client.shell_commands import command
from informix_cdc.lake.commit_text import RESUME, CommitText, has_batch
from informix_cdc.lake.identity import BatchEnd, number_of
from informix_cdc.lake.mirrored_table import RELOAD, BatchUndone, TableStopped
from informix_cdc.lake.settings import CONTROL, MirrorSettings
from informix_cdc.postgresql import (
    BRIEF_SECONDS,
    PATIENT_SECONDS,
    Place,
    PostgresDatabase,
    Refused,
    arrow_type,
    quoted,
)

POSITION = f"{CONTROL}position"
GUARD = f"{CONTROL}guard"
_TABLES = """
SELECT c.relname, c.oid::bigint, c.xmin::text::bigint, c.reltuples::bigint,
       coalesce(encode(t.tgargs, 'escape'), ''), coalesce(t.tgenabled <> 'D', false)
FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND t.tgname = %s
WHERE c.relnamespace = to_regnamespace(quote_ident(%s)) AND c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT a.attname, NOT a.attnotnull,
       format_type(a.atttypid, a.atttypmod) || coalesce(' COLLATE "' || o.collname || '"', '')
FROM pg_attribute a LEFT JOIN pg_collation o ON o.oid = a.attcollation AND o.collname <> 'default'
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE = """
SELECT ARRAY(SELECT a.attname::text FROM pg_attribute a
             WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey))
FROM pg_index i WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indimmediate
  AND i.indisvalid AND NOT 0 = ANY (i.indkey)
"""  # fmt: skip


@dataclass(slots=True)
class StoredTable:
    """What is known of a table.

    Attributes:
        oid, row_version: of its row in pg_class: another one after most ALTERs.
        rows: approximate number of rows; -1 if it is not known.
        guard: the mirror whose trigger it has; empty: it has none.
        is_guarded: whether the trigger is enabled.
        columns: with their SQL types in metadata; None: not read yet.
        unique: the columns of each unique index.
        strangers: columns of types that a mirror does not make.
        has_rows: whether it had rows when somebody asked.
    """

    oid: int
    row_version: int
    rows: int
    guard: str
    is_guarded: bool
    columns: pa.Schema | None = None
    unique: list[frozenset[str]] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    has_rows: bool = False


@dataclass(frozen=True, slots=True)
class MirrorPosition:
    """Where a mirror stands.

    Attributes:
        number: of the last batch; an epoch that has no batch yet has the number before its first one.
        end: where that batch ends.
        cut_over: when the tables were opened to other programs; None: they were not in this epoch.
        undone: when they were closed again; None: they are open.
    """

    number: int
    end: BatchEnd
    cut_over: datetime | None = None
    undone: datetime | None = None


class PostgresBatches:
    """The session of a mirror, or of a reader, in a schema of PostgreSQL.

    Args:
        settings: `into` and `storage_options`.
        application: the identifier of the mirror.
        is_writer: whether it writes, and waits for a server that restarts.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        application: str,
        *,
        is_writer: bool,
    ) -> None:
        self.application = application
        place = Place.of(settings.into, settings.storage_options)
        session = {"informix_cdc.mirror": application} if application else {}
        patience = PATIENT_SECONDS if is_writer else BRIEF_SECONDS
        self.database = PostgresDatabase(place, session, patience)
        self.text = CommitText()
        self._tables: dict[str, StoredTable] | None = None
        self._number = -1
        self._position: MirrorPosition | None = None
        self._is_undone = False
        self._stages: dict[str, tuple[int, Mapping[str, str]]] = {}  # that the session has
        self._filled: set[str] = set()  # of them, in this transaction
        self._queued: list[tuple[str, Sequence[Sequence[object]]]] = []
        self._sends_together = True  # not where it must be known which statement was refused

    # what there is

    @property
    def position(self) -> MirrorPosition | None:
        """Where the mirror stands, as last read or written; None if it has not begun."""
        self._known_tables()
        return self._position

    def refresh(self) -> None:
        """Read the position, and which tables there are; forget the columns of those that changed."""
        database, schema = self.database, self.database.place.schema
        database.connect()
        known = self._tables or {}
        self._tables = {}
        for name, oid, row_version, rows, mirror, is_enabled in database.rows(_TABLES, (GUARD, schema)):
            made = StoredTable(oid, row_version, rows, mirror.removesuffix("\\000"), is_enabled)
            same = known.get(name)
            if same is not None and (same.oid, same.row_version) == (oid, row_version):
                made = replace(same, rows=rows, guard=made.guard, is_guarded=is_enabled)
            self._tables[name] = made
        self._position = self._read_position()

    def _read_position(self) -> MirrorPosition | None:
        if POSITION not in self._known_tables():
            return None
        rows = self.database.rows(
            "SELECT epoch, batch, stream, commit, chunk, cut_over, undone"
            f" FROM {self.database.name(POSITION)} WHERE mirror = %s",
            (self.application,),
        )
        for epoch, batch, stream, commit, chunk, *opened in rows:
            end = BatchEnd(stream, commit, chunk)
            return MirrorPosition(number_of(epoch, batch), end, *opened)
        return None

    def _known_tables(self) -> dict[str, StoredTable]:
        if self._tables is None:
            self.refresh()
        assert self._tables is not None
        return self._tables

    def table(self, name: str) -> StoredTable | None:
        """Return what is known of a table, with its columns; None if it does not exist."""
        known = self._tables.get(name) if self._tables is not None else None
        if known is not None and known.columns is not None:
            return known
        with self.database.together():
            found = self._known_tables().get(name)
            if found is not None and found.columns is None:
                columns = self.database.rows(_COLUMNS, (found.oid,))
                found.unique = [
                    frozenset(names) for (names,) in self.database.rows(_UNIQUE, (found.oid,))
                ]
                found.columns = pa.schema(
                    pa.field(column, kind, is_nullable, {"sql": sql})
                    for column, is_nullable, sql in columns
                    if (kind := arrow_type(sql)) is not None
                )
                found.strangers = [
                    f"{column} of type {sql}" for column, _, sql in columns if arrow_type(sql) is None
                ]
            return found

    def changed(self, name: str) -> None:
        """Read a table again, after its definition was changed in this transaction."""
        with self.database.together():
            statement = f"{_TABLES} AND c.relname = %s"
            tables = self._known_tables()
            tables.pop(name, None)
            for _, oid, row_version, rows, mirror, is_enabled in self.database.rows(
                statement, (GUARD, self.database.place.schema, name)
            ):
                tables[name] = StoredTable(
                    oid, row_version, rows, mirror.removesuffix("\\000"), is_enabled
                )

    def forget(self) -> None:
        """Read what there is again when it is asked for."""
        self._tables = None

    # a batch

    def begin_epoch(self, epoch: int) -> None:
        """Let further writes belong to an epoch that begins: they come before its first batch."""
        self.begin(number_of(epoch, -1), BatchEnd("", 0))

    def begin(self, number: int, end: BatchEnd) -> None:
        """Set number and end of the batch of all further writes, and read what there is.

        Raises:
            BadOption: the mirror was cut over.
        """
        self.abandon()
        self.text.end, self._number = end, number
        self.refresh()
        self._require_closed()

    def _require_closed(self) -> None:
        known = self._position
        if known is not None and known.cut_over is not None and known.undone is None:
            raise BadOption(
                f"{self.database.place} was cut over at {known.cut_over:%Y-%m-%d %H:%M:%S} UTC: other"
                " programs write its tables.",
                "To mirror into them again, which compares every table with Informix and writes what"
                f" differs: {command('cutover', 'FILE.toml', '--undo')}",
            )

    def doubt(self) -> str:
        """Return why the tables may not be as the mirror left them, in words; "" if they are."""
        known = self.position
        if known is None or known.cut_over is None:
            return ""
        self._require_closed()
        return f"other programs could write {self.database.place} since it was cut over"

    def has(self, name: str, batch: int) -> bool:
        """Return whether the tables have a batch.

        Raises:
            DataLoss: they have another batch with this number, or a later one.
        """
        known = self.position
        return known is not None and has_batch(name, known.number, batch, lambda: known.end, self.text)

    @contextlib.contextmanager
    def writing(self) -> Iterator[PostgresDatabase]:
        """Give the connection, in the transaction of the batch, after what is queued.

        Raises:
            BatchUndone, TableStopped: as `reading`.
            DataLoss: another driver has moved the position.
        """
        with self.reading() as database:
            self._open()
            yield database

    @contextlib.contextmanager
    def reading(self) -> Iterator[PostgresDatabase]:
        """Give the connection, after what is queued.

        Raises:
            BatchUndone: a table was refused before, so that the transaction is to be undone.
            TableStopped: the server refuses a statement for good.
        """
        with self.database.together(), self._checked():
            self._send()
            yield self.database

    def queue(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Let the end of the batch run a statement for some rows, or whatever needs them before.

        Raises:
            BatchUndone, TableStopped, DataLoss: as `writing`.
        """
        with self.database.together(), self._checked():
            self._open()
            self._queued.append((statement, rows))
            if not self._sends_together:
                self._send()

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        if self._is_undone:
            raise BatchUndone
        try:
            yield
        except Refused as reason:
            self.undo()
            remedy = f"Correct the target. {RELOAD}"
            raise TableStopped(f"PostgreSQL refuses it: {reason}.", remedy) from None

    def _send(self) -> None:
        """Run what is queued.

        Raises:
            BatchUndone: the server has refused one of several: they will be sent one by one.
        """
        queued, self._queued = self._queued, []
        try:
            if queued:
                self.database.run_each(queued)
        except Refused:
            if not self._sends_together:
                raise
            self._sends_together = False
            self.undo()
            raise BatchUndone from None

    def undo(self) -> None:
        """Undo what was written since the batch began: a table has stopped in the middle of it."""
        self._is_undone = self.database.is_in_transaction()

    def begin_again(self) -> bool:
        """Return whether the writes of a batch were undone, so that they are to be done once more."""
        with contextlib.suppress(BatchUndone):
            self._send()
        if not self._is_undone:
            return False
        self.begin(self._number, self.text.end or BatchEnd("", 0))
        return True

    def _open(self) -> None:
        """Begin the transaction, and move the position: another driver waits here for its end."""
        database, known, end = self.database, self._position, self.text.end
        if database.is_in_transaction():
            return
        database.run("BEGIN")
        database.run("SET CONSTRAINTS ALL DEFERRED")
        if POSITION not in self._known_tables():
            database.run(_installed(database))
        assert end is not None
        epoch = (self._number + 1) // number_of(1, 0)  # the number before the first batch is of it, too
        place = (epoch, self._number - number_of(epoch, 0), end.stream, end.commit, end.chunk)
        name = database.name(POSITION)
        if known is None:
            moved = database.run(
                f"INSERT INTO {name} (mirror, epoch, batch, stream, commit, chunk, written_at)"
                " VALUES (%s, %s, %s, %s, %s, %s, now()) ON CONFLICT DO NOTHING",
                (self.application, *place),
            )
        else:
            begins = self._number == number_of(epoch, -1)  # an epoch, which compares all tables
            is_closed = "(cut_over IS NULL OR undone IS NOT NULL)" if begins else "cut_over IS NULL"
            moved = database.run(
                f"UPDATE {name} SET epoch = %s, batch = %s, stream = %s, commit = %s, chunk = %s,"
                " written_at = now(), cut_over = NULL, undone = NULL"
                f" WHERE mirror = %s AND epoch * {number_of(1, 0)} + batch = %s AND {is_closed}",
                (*place, self.application, known.number),
            )
        if not moved:
            database.roll_back()
            self.refresh()
            self._require_closed()
            raise DataLoss(
                f"another driver of this mirror has written the tables in {database.place}.", RESUME
            )

    def end(self) -> None:
        """Commit the batch, with the position, also if it has changed no table."""
        with self.database.together():
            known, end = self._position, self.text.end
            if known is not None and known.number == self._number:
                return  # it was there
            self._open()
            failpoint("mirror.before_commit")
            self._committed()
            failpoint("mirror.after_commit")
            self._filled.clear()
            self._sends_together = True
            assert end is not None
            self._position = MirrorPosition(self._number, end)

    def _committed(self) -> None:
        try:
            self.database.run_each(self._queued)
            self._queued = []
            self.database.run("COMMIT")
        except Refused as reason:  # of a deferred constraint: of which table is not known
            raise BadOption(
                f"PostgreSQL refuses the batch: {reason}.",
                "Correct or drop the constraint that refuses it. Nothing is lost: the next start"
                " repeats the batch.",
            ) from None

    def abandon(self) -> None:
        """Undo what was written since the last commit."""
        with self.database.together():
            if self.database.is_in_transaction():
                self.database.roll_back()
                self._tables = None
                self._stages.clear()
            self._filled.clear()
            self._queued, self._is_undone = [], False

    def stage(self, name: str, columns: Mapping[str, str]) -> str:
        """Return an empty temporary table, which the end of the transaction empties.

        Args:
            name: that no other table's has.
            columns: types by name.
        """
        place, made = f'pg_temp."{name}"', (self.database.connections, columns)
        if self._stages.get(place) != made:
            lines = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns.items())
            self.database.run(
                f"DROP TABLE IF EXISTS {place};"
                f" CREATE TEMPORARY TABLE {quoted(name)} ({lines}) ON COMMIT DELETE ROWS"
            )
            self._stages[place] = made
        elif place in self._filled:
            self.database.run(f"TRUNCATE {place}")
        self._filled.add(place)
        return place


def _installed(database: PostgresDatabase) -> str:
    """Return the statements that make the position and the guard."""
    name = database.name
    return f"""
CREATE TABLE {name(POSITION)} (
    mirror text PRIMARY KEY, epoch bigint NOT NULL, batch bigint NOT NULL, stream text NOT NULL,
    commit bigint NOT NULL, chunk bigint NOT NULL, written_at timestamptz NOT NULL,
    cut_over timestamptz, undone timestamptz
);
CREATE OR REPLACE FUNCTION {name(GUARD)}() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    IF current_setting('informix_cdc.mirror', true) IS DISTINCT FROM TG_ARGV[0] THEN
        RAISE EXCEPTION '%.% is a mirror of a table of Informix', TG_TABLE_SCHEMA, TG_TABLE_NAME
            USING ERRCODE = 'read_only_sql_transaction',
                  HINT = 'Write to Informix. To make this database the primary: informix-cdc cutover';
    END IF;
    RETURN NULL;
END
$guard$
"""
