"""The emulated server: databases, tables, users, one logical log, transactions, sessions.

Tests and workload generators call this module; requests from the network come through `connection.py`.
The log's condition protects all state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count

from .column_types.column_list import primary_key
from .column_types.locales import canonical_locale
from .large_objects.sbspace import Sbspace
from .locks import LockWaits
from .log.late_release import LateRelease
from .log.logical_log import EmulatedLogFile, LogicalLog
from .log.sessions import EmulatedSession, ReadingManner
from .log.transactions import EmulatedTransaction, RowKeeper
from .poses import DEFAULT_LOCALE, pose_named
from .server_faults import Faults
from .sql_errors import sql_error
from .sqli import Prompt
from .tables.tables import Database, EmulatedTable, EmulatedTableName, make_table

CDC_DATABASE = "syscdcv1"
SYSTEM_DATABASE = "sysmaster"
# onconfig.std (Administrator's Reference); TEMPTAB_NOLOG is off by default
_CONFIGURATION = {
    "LTXHWM": "70",
    "LTXEHWM": "80",
    "DYNAMIC_LOGS": "2",
    "TEMPTAB_NOLOG": "0",
    "USELASTCOMMITTED": "NONE",
    "DEF_TABLE_LOCKMODE": "row",  # onconfig.std says page; the emulator's tables lock rows unless told
}
_FIRST_TRANSACTION_ID = 20
_FIRST_PARTNUM = 0x00100200
_TEN_YEARS = 10 * 365 * 86400.0


class EmulatedServer(Faults):
    """An Informix server with change data capture, in this process.

    Args:
        name: DBSERVERNAME.
        users: passwords by user name; by default the owner's alone, in4mix.
        clock: the seconds since 1970 that transactions are stamped with.
        wait_to_fill: False: a read answers with what is there; True: it waits for `max_recs`.
        foreign_transactions: whether sessions see begin and end of transactions on other tables.
        late_begin: whether a BEGINTX comes only with the transaction's first captured row, or its end.
        hides_headless: whether a session is shown nothing of transactions that began before it.
        log_pages: pages of a log file.
        page_bytes: bytes of a page.
        log_count: log files that are kept; then the oldest is overwritten.
        first_log: number of the first log file.
        timeout_seconds: how long a second of a session's timeout lasts; tests have no time to lose.
        latency_seconds: the least time between the arrival of a request and its answer.
        next_session_id: number of the first capture session.
        cdc_users: who may use the CDC database; by default the owner alone.
        cdc_locale: the locale of syscdcv1; by default what it is in where its script is run plainly.
        unset_locale: the locale of a connection that names no DB_LOCALE, as measured of JDBC; None:
            its CLIENT_LOCALE, as the GLS User's Guide (ids_gug_043) has it.
        poses_as: a row of `poses.POSES`; "informix" is 14.10. As GBase 8s its owner is gbasedbt;
            records are laid out as Informix's, which docs/assumptions.md lists as not proven.

    Attributes:
        version: what DBINFO('version', 'full') says; it does not pretend to be the real thing.
        ha_role: ha_type and ha_primary of `sysha_type`.
        configuration: values of onconfig by name, at first those of onconfig.std.
        hidden_tables: system tables on which no user has a right.
        used_pages: what `used` of syslogs counts: pages that hold something ("begun", measured on
            Informix 15), full ones ("full"), or all, since asking ends the page ("flushed").
        reuses_partition_numbers: whether the next table gets the partition number of one that was
            dropped, as on real servers; its records are in the log still.
        table_age_seconds: how long ago a new partition claims to be created; workloads begin at once.
        trusted_user: whom a connection without user and password is taken for; empty: it is refused.
        session_readers: who may read `syscdcsess`; bootcdc.sql revokes that from public.
        redirect_to: `server=host|port` that clients are sent to when they log in; empty: nowhere.
        prompts: what PAM asks of clients that log in; empty: there is no PAM.
        names_refusals: whether a refused login carries an error number, or 0.
        late_release: which transactions have committed and keep their locks.
        lock_waits: who has met locks of others.
        sbspace: the smart large objects.
        rows_per_scan_step: how many rows a query of one table reads before others may write again.
        between_scan_steps: called before each step but the first, without a lock.
        cdc_user_type: the privilege of `cdc_users` on the CDC database: D, R or C.
    """

    used_pages = "flushed"
    reuses_partition_numbers = False
    table_age_seconds = _TEN_YEARS
    cdc_user_type = "D"
    row_logging_refusals = 0
    ha_role: tuple[int, str | None] = (0, None)
    trusted_user = ""
    keeps_rows = False
    row_keeper: RowKeeper | None = None  # `sql.keep_rows`: what is written is visible to SELECT
    redirect_to = ""
    prompts: tuple[Prompt, ...] = ()
    names_refusals = True
    _is_silent = False
    rows_per_scan_step = 1000
    between_scan_steps: Callable[[], None] | None = None

    def __init__(
        self,
        name: str = "informix",
        users: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        *,
        wait_to_fill: bool = False,
        foreign_transactions: bool = True,
        late_begin: bool = False,
        hides_headless: bool = False,
        log_pages: int = 0x10000,
        page_bytes: int = 2048,
        log_count: int = 16,
        first_log: int = 1,
        timeout_seconds: float = 1.0,
        latency_seconds: float = 0.0,
        next_session_id: int = 1,
        cdc_users: frozenset[str] | None = None,
        cdc_locale: str = "",
        unset_locale: str | None = DEFAULT_LOCALE,
        poses_as: str = "informix",
    ) -> None:
        self.name = name
        self.pose = pose_named(poses_as)
        self.owner = self.pose.owner
        self.users = dict(users or {self.owner: "in4mix"})
        self.clock = clock
        self.latency_seconds = latency_seconds
        self.cdc_users = frozenset({self.owner}) if cdc_users is None else cdc_users
        self.version = self.pose.version
        self.configuration = dict(_CONFIGURATION)
        self.hidden_tables: set[str] = set()
        self.session_readers = {self.owner}
        self.unset_locale = unset_locale
        self.log = LogicalLog(first_log, log_pages, page_bytes, log_count, lambda: self.clock())
        self.log.may_drop = self._is_unneeded
        self._begin_empty()
        self._manner = ReadingManner(
            wait_to_fill,
            foreign_transactions,
            late_begin,
            hides_headless,
            lambda: self._is_silent,
            timeout_seconds,
        )
        self._session_ids = count(next_session_id)
        self.create_database(CDC_DATABASE, logged=True, locale=cdc_locale or self.pose.cdc_locale)
        self.create_database(SYSTEM_DATABASE, logged=True, locale=DEFAULT_LOCALE)

    def _begin_empty(self) -> None:
        """Hold nothing yet: no database, table, object, session or transaction."""
        self.databases: dict[str, Database] = {}
        self.late_release = LateRelease(self.log.changed)
        self.lock_waits = LockWaits()
        self.sbspace = Sbspace()
        self.open_transactions: dict[int, EmulatedTransaction] = {}
        self._sessions: dict[int, EmulatedSession] = {}
        self._partnums: Iterator[int] = count(_FIRST_PARTNUM)
        self._tables: dict[str, EmulatedTable] = {}

    def may_select(self, user: str, table: str) -> bool:
        """Whether a user may read a system table."""
        is_revoked = table == "syscdcsess" and user not in self.session_readers
        return table not in self.hidden_tables and not is_revoked

    def create_database(
        self,
        name: str,
        logged: bool = True,
        locale: str = "en_US.utf8",
        *,
        buffered: bool = False,
        ansi: bool = False,
    ) -> None:
        """Create a database; its log is unbuffered by default."""
        with self.log.changed:
            if name.lower() in self.databases:
                raise ValueError(f"there is a database {name} already")
            database = Database(name.lower(), logged, canonical_locale(locale), buffered, ansi)
            self.databases[database.name] = database

    def create_table(
        self, name: str, columns: str, full_row_logging: bool = False, kind: str = "table"
    ) -> None:
        """Create `database:owner.table` from a column list; kind: table, view, synonym or raw."""
        if kind not in ("table", "view", "synonym", "raw"):
            raise ValueError(f"{kind!r} is not a kind of table")
        with self.log.changed:
            database = self._database_of(name)
            table = make_table(name, columns, database.locale, database.next_tabid, kind)
            if self._tables.setdefault(str(table.name), table) is not table:
                raise ValueError(f"there is a table {name} already")
            database.next_tabid += 1
            database.tables[table.name.owner, table.name.table] = table
            self._give_partition(table)
            mode = self.configuration.get("DEF_TABLE_LOCKMODE", "row")
            table.locks_pages = mode.lower() == "page"
            table.full_row_logging = full_row_logging
            table.primary_key = primary_key(columns)

    def drop_table(self, name: str) -> None:
        """Drop a table; its records stay in the log."""
        with self.log.changed:
            table = self._tables.pop(str(EmulatedTableName.parse(name)))
            if self.reuses_partition_numbers:
                self._partnums = chain([table.partnum], self._partnums)
            del self.databases[table.name.database].tables[table.name.owner, table.name.table]

    def put_table(self, table: EmulatedTable) -> None:
        """Put a table back as it was, when the SQL that dropped or altered it is rolled back."""
        self._tables[str(table.name)] = table
        self.databases[table.name.database].tables[table.name.owner, table.name.table] = table

    def rename_table(self, table: EmulatedTable, name: str) -> None:
        """Give a table another name in its database; its partition, its rows and captures stay.

        IBM's support names RENAME beside ALTER and DROP as refused with -19816 where a table is
        replicated (81623); that full row logging counts as that is our choice, as for ALTER.
        """
        with self.log.changed:
            if table.full_row_logging:
                raise sql_error(-19816)
            previous, fresh = table.name, replace(table.name, table=name)
            del self._tables[str(previous)]
            del self.databases[previous.database].tables[previous.owner, previous.table]
            table.name = fresh
            self.put_table(table)
            self.sbspace.renamed(str(previous), str(fresh))

    def alter_table(self, name: str, columns: str, in_place: bool = False) -> None:
        """Give a table other columns, in a new partition, as an ALTER that rebuilds the table does.

        One in place keeps the partition and the rows, which have two layouts until `finish_alter`.
        Clients report that DDL is refused under full row logging; that it is -19816 is our choice.
        """
        with self.log.changed:
            previous = self.table(name)
            if previous.full_row_logging:
                raise sql_error(-19816)
            database = self.databases[previous.name.database]
            name = previous.name.quoted
            altered = make_table(name, columns, database.locale, previous.tabid, previous.kind)
            altered.locks_pages = previous.locks_pages
            if in_place:
                altered.partnum, altered.created = previous.partnum, previous.created
                altered.created_at = previous.created_at
                altered.versions = (previous.versions[0], previous.versions[1] + 1)
            else:
                self._give_partition(altered)
            self.put_table(altered)

    def finish_alter(self, name: str) -> None:
        """Give all rows of a table its present layout, as the task `table update_ipa` does."""
        with self.log.changed:
            table = self.table(name)
            table.versions = (table.versions[1], table.versions[1])

    def table(self, name: str) -> EmulatedTable:
        """Return the table `database:owner.table`; ValueError if there is none."""
        table = self._tables.get(name) or self._tables.get(str(EmulatedTableName.parse(name)))
        if table is None:
            raise ValueError(f"there is no table {name}")
        return table

    def set_full_row_logging(self, table: str, on: bool) -> None:
        """Switch full row logging, even if sessions capture the table.

        The function that clients call refuses to switch it off while a session captures the table
        (-19816, HCL 14.10 guide); this is how it comes off all the same. What is written until it is
        on again no session ever sees: an open client measured that on Informix 15 for updates of
        tables without variable-length columns; that inserts and deletes go the same way, and the
        other tables too, is our choice, the worst that may be.
        """
        with self.log.changed:
            self.table(table).full_row_logging = on

    def begin(self, user_id: int = 0, transaction_id: int | None = None) -> EmulatedTransaction:
        """Open a transaction, in the lowest free slot unless its number is given."""
        with self.log.changed:
            taken = self.open_transactions
            free = (n for n in count(_FIRST_TRANSACTION_ID) if n not in taken)
            number = next(free) if transaction_id is None else transaction_id
            if number in taken:
                raise ValueError(f"transaction {number} is open already")
            taken[number] = EmulatedTransaction(
                self.log,
                self._logged_table,
                self.clock,
                self._forget,
                number,
                user_id,
                self.row_keeper,
                self.late_release,
                lambda name: self.databases[name].is_buffered,
                self.sbspace,
            )
            return taken[number]

    @contextmanager
    def transaction(
        self, user_id: int = 0, transaction_id: int | None = None
    ) -> Iterator[EmulatedTransaction]:
        """Open a transaction that is committed at the end of the block, or rolled back."""
        transaction = self.begin(user_id, transaction_id)
        try:
            yield transaction
        except BaseException:
            transaction.rollback()
            raise
        transaction.commit()

    def buffer_log(self, size: int = 64 * 1024, seconds: float = float("inf")) -> None:
        """Give the log a buffer: readers see a record when it has left that.

        It is flushed when it is full, by the COMMIT of a transaction in a database without buffered
        logging, by a checkpoint or a new log file, at the end of a session in a buffered database
        (Guide to SQL: Syntax, "CREATE DATABASE"), and after so many seconds, as by a checkpoint. A
        size of 0 takes the buffer away.
        """
        with self.log.changed:
            self.log.flush()
            self.log.buffer.size, self.log.buffer.seconds = size, seconds

    def flush_log(self) -> None:
        """Do what a checkpoint does to the log's buffer."""
        with self.log.changed:
            self.log.flush()

    def position(self) -> int:
        """Return the end of the log as a sequence number."""
        with self.log.changed:
            return self.log.end()

    def move_to(self, position: int) -> None:
        """Let the next record lie at a position."""
        with self.log.changed:
            self.log.move_to(position)

    def switch_log(self) -> int:
        """Begin the next log file; returns its number."""
        with self.log.changed:
            return self.log.switch().number

    def oldest_log(self) -> int:
        """Return the number of the oldest log file that is still there."""
        with self.log.changed:
            return self.log.files[0].number

    def sessions(self) -> dict[int, EmulatedSession]:
        """Return the open capture sessions by number."""
        with self.log.changed:
            return dict(self._sessions)

    def open_session(self, timeout: int, max_recs: int) -> EmulatedSession:
        """Open a capture session."""
        with self.log.changed:
            number = next(self._session_ids)
            session = EmulatedSession(number, self.log, self._manner, timeout, max_recs)
            session.created = int(self.clock())
            self._sessions[number] = session
            return session

    def close_session(self, session_id: int) -> None:
        """Forget a capture session."""
        with self.log.changed:
            self._sessions.pop(session_id, None)

    def recover(self, lost_from: int | None = None) -> None:
        """Do what a crash and the start after it do: sessions gone, open transactions rolled back.

        With `lost_from` the log comes back without what lay there and above, as after a restore to an
        earlier time, or a crash under buffered logging; its positions are used again.

        Fast recovery (administrator's guide) rolls back what was not committed; all else is kept,
        and sequence numbers go on. Numbers of sessions go on too, our choice.
        """
        with self.log.changed:
            self.log.flush()
            self._sessions.clear()
            if lost_from is not None:
                self.log.cut(lost_from)
                begun = self.open_transactions.items()
                self.open_transactions = {n: t for n, t in begun if t.begin_sequence < lost_from}
            for file in self.log.files:
                file.unreadable = None
            self.late_release.release()
            for transaction in list(self.open_transactions.values()):
                transaction.rollback()

    def _database_of(self, name: str) -> Database:
        if (database := self.databases.get(EmulatedTableName.parse(name).database)) is None:
            raise ValueError(f"there is no database for {name}")
        return database

    def _give_partition(self, table: EmulatedTable) -> None:
        table.partnum = next(self._partnums)
        table.created_at = self.clock() - self.table_age_seconds
        table.created = time.strftime("%m/%d/%Y", time.gmtime(self.clock()))

    def _logged_table(self, name: str) -> EmulatedTable:
        table = self.table(name)
        if not self.databases[table.name.database].is_logged:
            raise ValueError(f"the database of {table.name} is not logged")
        return table

    def _forget(self, transaction: EmulatedTransaction) -> None:
        del self.open_transactions[transaction.id]

    def _is_unneeded(self, file: EmulatedLogFile) -> bool:
        return all(tx.first_file is not file for tx in self.open_transactions.values())
