"""One client's use of the SQL engine: statements, and the transaction they are in.

A statement succeeds or fails as a whole. One that meets another's lock is undone; it then waits and is
tried again, or fails. Outside of BEGIN WORK each statement is a transaction; a database without a log
has no transactions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..answers import CheckStatement, Prepared, SqlValue, StatementOutcome, StatementType
from ..column_types.locales import canonical_locale
from ..locks import LockWait
from ..poses import DEFAULT_LOCALE
from ..sql_errors import SqlError, sql_error
from .language.tokens import StatementTokens
from .language.values import store
from .statements import driver_columns
from .statements.alterations import Alterations
from .statements.changes import ChangeStatements
from .statements.definitions import Definitions
from .statements.plans import BoundValues, Plan
from .statements.selects import Selects
from .statements.settings import Settings
from .storage import Storage
from .transactions import NO_WAIT, SessionTransaction
from .work import Blocked, Work

T = TypeVar("T")
logger = logging.getLogger("informix_cdc.emulator")
_LOOK_AGAIN_SECONDS = 0.05
_LONGEST_LOGGED = 2000
LOCK_TIMED_OUT, DEADLOCK = -154, -143


class Session:
    """A session of the SQL engine; `answers.SqlSession`."""

    def __init__(self, transactions: SessionTransaction, locale: str = DEFAULT_LOCALE) -> None:
        self.transactions = transactions
        self.reading = transactions.reading
        self.server = self.reading.server
        self.locale = locale
        self._check: CheckStatement = lambda: None
        self._met: Blocked | None = None
        self.reading.waits = self._patiently
        self.reading.cursor_work = self._cursor_work
        self.reading.forget_cursor = transactions.settle
        self.begin = transactions.begin
        self.rollback, self.rollback_to = transactions.rollback, transactions.rollback_to
        self.savepoint, self.release = transactions.savepoint, transactions.release
        self.close = transactions.close

    def _cursor_work(self) -> Work:
        """Return who locks what is read outside of a transaction; in ANSI mode one begins so."""
        work = self.transactions.begun(is_explicit=self.transactions.is_ansi())
        if work.is_explicit:
            self.reading.work = work
        return work

    def commit(self) -> None:
        """Commit; returns when that is to be answered."""
        self.transactions.commit()
        self.transactions.wait_for_release()

    # --- statements -----------------------------------------------------------------------------

    def prepare(self, text: str) -> Prepared:
        """Understand a statement; SqlError if it is none of ours, with the text in the log."""
        with self.server.log.changed:
            plan = self._planned(text)

        def run(values: Sequence[SqlValue], check: CheckStatement) -> StatementOutcome:
            outcome = self._run(text, plan, values, check)
            self.transactions.wait_for_release()
            return outcome

        ends = plan.ends_transaction
        return Prepared(plan.kind, plan.parameters, plan.columns, run, ends, plan.declare)

    def _planned(self, text: str) -> Plan:
        try:
            tokens = StatementTokens(text, delimits_names=self.reading.delimits_names)
            if driver_columns.is_asked(tokens):
                return driver_columns.plan(tokens, self.reading)
            for words, read in _STATEMENTS.items():
                if tokens.accept(*words):
                    return read(self, tokens)
            raise sql_error(-201)
        except (RecursionError, UnicodeError):
            raise self._refused(text, sql_error(-201)) from None
        except SqlError as error:
            raise self._refused(text, error) from None

    def _refused(self, text: str, error: SqlError) -> SqlError:
        if error.native == -201:
            logger.warning("statement_not_understood text=%r", text[:_LONGEST_LOGGED])
        return error

    def _run(
        self, text: str, plan: Plan, values: Sequence[SqlValue], check: CheckStatement
    ) -> StatementOutcome:
        if len(values) != len(plan.parameters):
            raise sql_error(-254)
        self._check = check

        def step() -> StatementOutcome:
            current = self._current(text, plan)
            pairs = zip(current.parameters, values, strict=True)
            return self._once(
                current, [store(self.reading.dated(kind), value) for kind, value in pairs]
            )

        return self._patiently(step)

    def _patiently(self, step: Callable[[], T]) -> T:
        """Do what may meet locks of others, again and again if the session waits for them."""
        deadline = time.monotonic() + self.transactions.patience
        self._met, check = None, self._check
        with self.server.log.changed:
            while True:
                try:
                    with self.reading.store.watched_by(check):
                        return step()
                except Blocked as blocked:
                    self._wait(blocked, deadline, check)
                except RecursionError:
                    raise sql_error(-201) from None

    def _current(self, text: str, plan: Plan) -> Plan:
        """Return the plan, or one of the tables as they are now."""
        if plan.is_volatile:
            return self._planned(text)
        for table in plan.tables:
            if isinstance(table, Storage) and not self.reading.is_there(table):
                fresh = self._planned(text)
                if [c.type.spelling for c in fresh.columns] != [c.type.spelling for c in plan.columns]:
                    raise sql_error(-710, table.table.name.table)
                return fresh
        return plan

    def _once(self, plan: Plan, given: BoundValues) -> StatementOutcome:
        if plan.change is None:
            assert plan.query is not None
            return plan.query(given)
        work = self.reading.work or self.transactions.begun(is_explicit=self.transactions.is_ansi())
        if work.is_explicit:
            self.reading.work = work
        mark = work.mark()
        try:
            self.reading.work, previous = work, self.reading.work
            try:
                outcome = plan.change(work, given)
            finally:
                self.reading.work = previous
            if not work.is_explicit:
                work.commit()
        except BaseException:
            if work.is_explicit and not work.is_over:
                work.undo_to(mark)
            elif not work.is_over:
                work.rollback()
            raise
        finally:
            self.transactions.settle(work)
        return outcome

    def _wait(self, blocked: Blocked, deadline: float, check: CheckStatement) -> None:
        """Wait for another transaction to end, as SET LOCK MODE says; SqlError if that is in vain."""
        error = blocked.error
        self._count(blocked)
        if self.transactions.patience == NO_WAIT:
            raise error
        if self.reading.work is not None:
            self.reading.work.waits_for = blocked.owners
            if self._is_in_a_circle(self.reading.work):
                self.reading.work.waits_for = set()
                raise sql_error(error.native, error.argument, isam=DEADLOCK)
        if time.monotonic() >= deadline:
            raise sql_error(error.native, error.argument, isam=LOCK_TIMED_OUT)
        waiting, number = self.reading.store.waiting, self.reading.session
        waiting.begin(number, blocked.table, blocked.owners)
        try:
            check()
            self.server.log.changed.wait(_LOOK_AGAIN_SECONDS)
        finally:
            waiting.end(number)
            if self.reading.work is not None:
                self.reading.work.waits_for = set()

    def _count(self, blocked: Blocked) -> None:
        """Let it be known whose locks a statement has met, once."""
        if self._met is not None and self._met.owners == blocked.owners:
            return
        self._met = blocked
        owners = frozenset(self.transactions.session_of(work) for work in blocked.owners)
        is_refused = self.transactions.patience == NO_WAIT
        wait = LockWait(self.reading.session, owners, blocked.table, is_refused)
        self.server.lock_waits.seen.append(wait)

    def _is_in_a_circle(self, work: Work) -> bool:
        seen: set[int] = set()
        ahead = set(work.waits_for)
        while ahead - seen:
            number = (ahead - seen).pop()
            seen.add(number)
            other = self.transactions.works.get(number)
            ahead |= other.waits_for if other else set()
        return work.number in seen

    # --- statements that are sessions' own ------------------------------------------------------

    def _plain(
        self,
        tokens: StatementTokens,
        run: Callable[[], None],
        kind: StatementType = StatementType.OTHER,
    ) -> Plan:
        tokens.expect_end()
        ends = kind in (StatementType.COMMIT, StatementType.ROLLBACK)

        def query(_given: BoundValues) -> StatementOutcome:
            run()
            return StatementOutcome()

        return Plan(kind, query=query, ends_transaction=ends)

    def _begin_statement(self, tokens: StatementTokens) -> Plan:
        tokens.accept("work")
        return self._plain(tokens, self.begin, StatementType.BEGIN)

    def _commit_statement(self, tokens: StatementTokens) -> Plan:
        tokens.accept("work")
        return self._plain(tokens, self.transactions.commit, StatementType.COMMIT)

    def _rollback_statement(self, tokens: StatementTokens) -> Plan:
        tokens.accept("work")
        if not tokens.accept("to", "savepoint"):
            return self._plain(tokens, self.rollback, StatementType.ROLLBACK)
        if tokens.is_at_end():  # the last one
            raise sql_error(-201)
        name = tokens.name()
        return self._plain(tokens, lambda: self.rollback_to(name))

    def _savepoint_statement(self, tokens: StatementTokens) -> Plan:
        name = tokens.name()
        is_unique = tokens.accept("unique")
        return self._plain(tokens, lambda: self.savepoint(name, is_unique=is_unique))

    def _create_database(self, tokens: StatementTokens) -> Plan:
        return Definitions(tokens, self.reading).create_database(canonical_locale(self.locale))


def _defined(
    read: Callable[[Definitions], Plan],
) -> Callable[[Session, StatementTokens], Plan]:
    return lambda session, tokens: read(Definitions(tokens, session.reading))


def _altered(
    read: Callable[[Alterations], Plan],
) -> Callable[[Session, StatementTokens], Plan]:
    return lambda session, tokens: read(Alterations(tokens, session.reading))


def _changed(read: Callable[[ChangeStatements], Plan]) -> Callable[[Session, StatementTokens], Plan]:
    return lambda session, tokens: read(ChangeStatements(tokens, session.reading))


def _set(read: Callable[[Settings], Plan]) -> Callable[[Session, StatementTokens], Plan]:
    return lambda session, tokens: read(Settings(tokens, session.transactions))


def _table(kind: str) -> Callable[[Session, StatementTokens], Plan]:
    return _defined(lambda definitions: definitions.create_table(kind))


def _index(kind: str) -> Callable[[Session, StatementTokens], Plan]:
    return _altered(lambda alterations: alterations.create_index(kind))


_STATEMENTS: dict[tuple[str, ...], Callable[[Session, StatementTokens], Plan]] = {
    ("select",): lambda session, tokens: Selects(tokens, session.reading).select(),
    ("insert",): _changed(ChangeStatements.insert),
    ("update",): _changed(ChangeStatements.update),
    ("delete",): _changed(ChangeStatements.delete),
    ("truncate",): _changed(ChangeStatements.truncate),
    ("begin",): Session._begin_statement,
    ("commit",): Session._commit_statement,
    ("rollback",): Session._rollback_statement,
    ("savepoint",): Session._savepoint_statement,
    ("create", "table"): _table("table"),
    ("create", "standard", "table"): _table("table"),
    ("create", "raw", "table"): _table("raw"),
    ("create", "temp", "table"): _table("temp"),
    ("create", "temporary", "table"): _table("temp"),
    ("create", "index"): _index("D"),
    ("create", "unique", "index"): _index("I"),
    ("create", "distinct", "index"): _index("I"),
    ("create", "view"): _defined(Definitions.create_view),
    ("create", "database"): Session._create_database,
    ("drop", "table"): _defined(Definitions.drop_table),
    ("drop", "view"): _defined(Definitions.drop_table),
    ("drop", "database"): _defined(Definitions.drop_database),
    ("alter", "table"): _altered(Alterations.alter_table),
    ("rename",): _altered(Alterations.rename),
    ("set",): _set(Settings.set_something),
    ("lock",): _set(Settings.lock),
    ("grant",): _set(Settings.grant),
    ("revoke",): _set(Settings.revoke),
    ("execute", "function"): _set(Settings.task),
}
