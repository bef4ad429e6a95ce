"""Statements that change no row: SET, LOCK TABLE, GRANT, administration.

Sources: Guide to SQL: Syntax; Administrator's Reference, "SQL administration API".
"""

from __future__ import annotations

from collections.abc import Callable

from ...answers import ResultColumn, StatementOutcome, StatementType
from ...server import CDC_DATABASE, EmulatedServer
from ...sql_errors import sql_error
from ..language.families import text_type
from ..language.tokens import NUMBER, StatementTokens
from ..storage import Storage
from ..transactions import FOREVER, NO_WAIT, SessionTransaction
from ..work import Work
from .plans import BoundValues, Plan
from .queries import Queries

_PRIVILEGES = ("select", "insert", "update", "delete", "index", "alter", "references")
_DATABASE_PRIVILEGES = {"connect": "C", "resource": "R", "dba": "D"}


class Settings:
    """Reads the statements that change how a session, or the server, behaves."""

    def __init__(self, tokens: StatementTokens, transactions: SessionTransaction) -> None:
        self.tokens = tokens
        self.transactions = transactions
        self.reading = transactions.reading
        self.queries = Queries(tokens, self.reading)

    def _plan(self, run: Callable[[], object]) -> Plan:
        self.tokens.expect_end()

        def query(_given: BoundValues) -> StatementOutcome:
            run()
            return StatementOutcome()

        return Plan(StatementType.OTHER, query=query)

    # --- SET ------------------------------------------------------------------------------------

    def set_something(self) -> Plan:
        """Read SET, behind that word."""
        tokens = self.tokens
        for words, read in _SETTINGS.items():
            if tokens.accept(*words):
                return read(self)
        raise sql_error(-201)

    def _isolation(self) -> Plan:
        self.tokens.accept("to")
        for words, isolation in _ISOLATIONS.items():
            if self.tokens.accept(*words):
                return self._isolated(isolation)
        raise sql_error(-201)

    def _isolated(self, isolation: str) -> Plan:
        def run() -> None:
            database = self.reading.server.databases.get(self.reading.database)
            if isolation != "dirty read" and database is not None and not database.is_logged:
                raise sql_error(-256)
            self.reading.isolation = isolation

        return self._plan(run)

    def _uses_last_committed(self) -> Plan:
        """Read its value, which holds for the session (Guide to SQL: Syntax, "SET ENVIRONMENT")."""
        value = self.tokens.text().lower()
        if value not in ("committed read", "dirty read", "all", "none"):
            raise sql_error(-201)
        return self._plan(lambda: setattr(self.reading, "uses_last_committed", value))

    def _lock_mode(self) -> Plan:
        tokens = self.tokens
        tokens.accept("to")
        seconds = FOREVER
        if tokens.accept("not"):
            seconds = NO_WAIT
        tokens.expect("wait")
        if seconds and tokens.next.kind == NUMBER:
            seconds = float(tokens.whole_number())
        return self._plan(lambda: setattr(self.transactions, "patience", seconds))

    # --- LOCK -----------------------------------------------------------------------------------

    def _table(self) -> Storage:
        found = self.reading.table(*self.queries.table_name())
        if not isinstance(found, Storage):
            raise sql_error(-201)
        return found

    def lock(self) -> Plan:
        """Read LOCK TABLE name IN SHARE | EXCLUSIVE MODE."""
        self.tokens.expect("table")
        storage = self._table()
        self.tokens.expect("in")
        mode = self.tokens.one_of("share", "exclusive")
        self.tokens.expect("mode")
        if not mode:
            raise sql_error(-201)
        self.tokens.expect_end()
        held = {"share": "shared"}.get(mode, mode)

        def change(work: Work, _given: BoundValues) -> StatementOutcome:
            if not work.is_explicit:
                raise sql_error(-255)
            work.lock_table(storage, held)
            return StatementOutcome()

        return Plan(StatementType.OTHER, change=change)

    # --- GRANT ----------------------------------------------------------------------------------

    def grant(self) -> Plan:
        """Read GRANT privileges [ON table] TO users."""
        privileges, storage, users = self._privileges("to")
        if storage == "syscdcsess":
            return self._plan(lambda: self.reading.server.session_readers.update(users))
        if isinstance(storage, Storage):
            return self._plan(lambda: storage.revoked.difference_update(privileges))
        return self._plan(lambda: self._admit(users, True) if not storage else None)

    def revoke(self) -> Plan:
        """Read REVOKE privileges [ON table] FROM users."""
        privileges, storage, users = self._privileges("from")
        if storage == "syscdcsess":
            return self._plan(lambda: self.reading.server.session_readers.difference_update(users))
        if isinstance(storage, Storage):
            if users != {"public"}:  # who was granted what is not kept user by user
                raise sql_error(-201)
            return self._plan(lambda: storage.revoked.update(privileges))
        return self._plan(lambda: self._admit(users, False) if not storage else None)

    def _privileges(self, before_users: str) -> tuple[set[str], Storage | str, set[str]]:
        tokens = self.tokens
        if word := tokens.one_of(*_DATABASE_PRIVILEGES):
            tokens.expect(before_users)
            return {word}, "", self._users()
        found: set[str] = set()
        while True:
            word = tokens.one_of("all", *_PRIVILEGES)
            if not word:
                raise sql_error(-201)
            tokens.accept("privileges")
            found |= set(_PRIVILEGES) if word == "all" else {word}
            if not tokens.accept(","):
                break
        tokens.expect("on")
        tokens.accept("table")
        database, owner, name = self.queries.table_name()
        is_sessions = name == "syscdcsess" and (database or self.reading.database) == CDC_DATABASE
        table = self.reading.table(database, owner, name)
        tokens.expect(before_users)
        users = self._users()
        storage = table if isinstance(table, Storage) else "a system table"
        return found, name if is_sessions else storage, users

    def _users(self) -> set[str]:
        users = {self._user()}
        while self.tokens.accept(","):
            users.add(self._user())
        self.tokens.accept("with", "grant", "option")
        self.tokens.accept("as")
        return users

    def _user(self) -> str:
        return self.tokens.text() if self.tokens.next.kind == "text" else self.tokens.name()

    def _admit(self, users: set[str], is_granted: bool) -> None:
        server = self.reading.server
        if self.reading.database == CDC_DATABASE:
            known = server.cdc_users
            server.cdc_users = known | users if is_granted else known - users

    # --- administration -------------------------------------------------------------------------

    def task(self) -> Plan:
        """Read a task of sysadmin, behind EXECUTE FUNCTION."""
        if not (self.tokens.accept("sysadmin", ":", "task") or self.tokens.accept("task")):
            raise sql_error(-674, self.tokens.name())  # there are no other routines
        self.tokens.expect("(")
        words = [self.tokens.text()]
        while self.tokens.accept(","):
            words.append(self.tokens.text())
        self.tokens.expect(")")
        run = _TASKS.get(words[0])
        self.tokens.expect_end()
        if run is None:
            raise sql_error(-201)

        def query(_given: BoundValues) -> StatementOutcome:
            try:
                run(self.reading.server, words[1:])
            except ValueError:
                raise sql_error(-201) from None
            return StatementOutcome(rows=[("OK",)], row_count=1)

        column = ResultColumn("(expression)", text_type(255))
        return Plan(StatementType.EXECUTE, columns=[column], query=query)


def _onmode(server: EmulatedServer, words: list[str]) -> None:
    if words != ["l"]:
        raise sql_error(-201)
    server.switch_log()


def _finish_alter(server: EmulatedServer, words: list[str]) -> None:
    table, database = words
    found = [t for t in server.databases[database].tables.values() if t.name.table == table]
    if not found:
        raise sql_error(-206, table)
    server.finish_alter(str(found[0].name))


_TASKS: dict[str, Callable[[EmulatedServer, list[str]], None]] = {
    "onmode": _onmode,
    "checkpoint": lambda server, _words: server.flush_log(),
    "table update_ipa": _finish_alter,
    # the emulator's own, so that a client of any make can bring about what a server does now and then
    "emulator hold locks": lambda server, _words: server.late_release.hold(),
    "emulator release locks": lambda server, _words: server.late_release.let_go(),
}
_SETTINGS: dict[tuple[str, ...], Callable[[Settings], Plan]] = {
    ("isolation",): Settings._isolation,
    ("lock", "mode"): Settings._lock_mode,
    ("environment", "uselastcommitted"): Settings._uses_last_committed,
}
_ISOLATIONS = {
    ("dirty", "read"): "dirty read",
    ("committed", "read", "last", "committed"): "last committed",
    ("committed", "read"): "committed read",
    ("repeatable", "read"): "repeatable read",
}
