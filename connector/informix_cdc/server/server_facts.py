"""Facts about a server, its CDC database and tables, for `doctor`, `prove` and the live tests.

Rule: plain SQL, and one function that changes nothing. A question that the server does not answer
yields `Unanswered` and does not affect the others; after a lost connection no more questions are asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from informix_capture_client import statements
from informix_capture_client.catalog import (
    Catalog,
    DatabaseLogging,
    FoundTable,
    HaRole,
    LogSpace,
    read_log_space,
)
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import ConnectionLost, InformixCdcError, ServerRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.session import OpenSession, read_api_version, read_open_sessions
from informix_capture_client.sql_names import TableName
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport import Transport, checked_rows, integer

_Fact = TypeVar("_Fact")
Subject = TypeVar("Subject")

LONG_TRANSACTIONS = ("DYNAMIC_LOGS", "LTXHWM", "LTXEHWM")  # parameters that limit long transactions
_HARMLESS_NAME = "CDC_E_OK"
_HARMLESS_LOCALE = "en_us.819"  # according to the guide, all message texts exist in it


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """The driver's library, and the name and version that it reports when connected."""

    path: str
    name: str = ""
    version: str = ""
    server_version: str = ""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Facts about the whole server, from sysmaster."""

    name: str | Unanswered
    version: str | Unanswered
    clock: int | Unanswered
    has_cdc_database: bool | Unanswered
    database_logging: DatabaseLogging | Unanswered | None
    database_locale: str | Unanswered
    cdc_locale: str | Unanswered
    log_space: LogSpace | Unanswered
    parameters: Mapping[str, int] | Unanswered
    ha_role: HaRole | Unanswered


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts about one table, from its database; a missing table has no other facts."""

    name: TableName
    found: FoundTable | Unanswered
    has_primary_key: bool | Unanswered
    logs_full_rows: bool | Unanswered
    has_pending_alter: bool | Unanswered


@dataclass(frozen=True, slots=True)
class CdcFacts:
    """Facts from the CDC database.

    `user_type` is the user's type in its `sysusers`: D, R or C, or empty if not listed;
    `runs_routines`: a `cdc_` function could be called.
    """

    api_version: tuple[int, ...] | Unanswered
    user_type: str | Unanswered
    runs_routines: bool | Unanswered
    sessions: tuple[OpenSession, ...] | Unanswered


class Questions:
    """Runs queries one after another on one connection."""

    def __init__(self) -> None:
        self._lost: Unanswered | None = None

    def ask(self, question: Callable[[], _Fact]) -> _Fact | Unanswered:
        """Return the answer, or why there is none."""
        if self._lost is not None:
            return self._lost
        try:
            return question()
        except ConnectionLost as reason:
            self._lost = Unanswered("the connection was lost", was_asked=False)
            return Unanswered.of(reason)
        except InformixCdcError as reason:
            return Unanswered.of(reason)

    def ask_each(
        self, question: Callable[[Sequence[Subject]], Sequence[_Fact]], subjects: Sequence[Subject]
    ) -> list[_Fact | Unanswered]:
        """Ask about all at once; if that fails, one by one, so that one failure affects no other."""
        if not subjects:
            return []
        answer = self.ask(lambda: question(subjects))
        if not isinstance(answer, Unanswered):
            return list(answer)
        if len(subjects) == 1:
            return [answer]
        return [self.ask_each(question, [subject])[0] for subject in subjects]


def read_server_facts(transport: Transport, database: str) -> ServerFacts:
    """Query sysmaster about the server and one of its databases."""
    catalog, ask = Catalog(transport, database), Questions().ask
    return ServerFacts(
        name=ask(catalog.server_name),
        version=ask(catalog.server_version),
        clock=ask(catalog.clock),
        has_cdc_database=ask(lambda: catalog.database_logging(CDC_DATABASE) is not None),
        database_logging=ask(catalog.database_logging),
        database_locale=ask(catalog.database_locale),
        cdc_locale=ask(lambda: catalog.database_locale(CDC_DATABASE)),
        log_space=ask(lambda: read_log_space(transport)),
        parameters=ask(lambda: _parameters(transport)),
        ha_role=ask(catalog.ha_role),
    )


def _parameters(transport: Transport) -> Mapping[str, int]:
    """Return the current values of the parameters for long transactions."""
    answers = {name: checked_rows(transport, statements.PARAMETER, name) for name in LONG_TRANSACTIONS}
    return {
        name: integer(rows[0][0], statements.PARAMETER, "cf_effective")
        for name, rows in answers.items()
        if rows
    }


def read_table_facts(
    transport: Transport, database: str, names: Sequence[TableName]
) -> tuple[TableFacts, ...]:
    """Query the database about its tables."""
    catalog, questions = Catalog(transport, database), Questions()
    found = questions.ask_each(catalog.find_tables, names)
    tables = [f.table if isinstance(f, FoundTable) else None for f in found]
    there = [table for table in tables if table is not None]
    answers = zip(
        questions.ask_each(catalog.primary_keys, there),
        questions.ask_each(catalog.log_full_rows, there),
        questions.ask_each(catalog.pending_alters, there),
        strict=True,
    )
    return tuple(
        TableFacts(name, one, *(next(answers) if table else [why_no_table(one)] * 3))
        for name, one, table in zip(names, found, tables, strict=True)
    )


def why_no_table(found: FoundTable | Unanswered) -> Unanswered:
    """Return why a table that was not found, or may not exist, is not inspected further."""
    if isinstance(found, Unanswered):
        return Unanswered("it could not be checked whether the table exists", was_asked=False)
    return Unanswered("the table does not exist", was_asked=False)


def read_cdc_facts(transport: Transport, user: str, dialect: Dialect = INFORMIX) -> CdcFacts:
    """Query the CDC database over a connection like a capture's."""
    ask = Questions().ask
    return CdcFacts(
        api_version=ask(lambda: read_api_version(transport)),
        user_type=ask(lambda: _user_type(transport, user)),
        runs_routines=ask(lambda: _runs_routines(transport)),
        sessions=ask(lambda: read_open_sessions(transport, dialect)),
    )


def _user_type(transport: Transport, user: str) -> str:
    rows = checked_rows(transport, statements.CDC_USER_TYPE, user)
    return (rows[0][0] or "").strip() if rows else ""


def _runs_routines(transport: Transport) -> bool:
    """Call the one `cdc_` function that only returns a text.

    Raises:
        AccessRefused: the user may not call it (-674, -272 and similar). Other errors, such as a code
            without a text (-1824), have other causes.
    """
    with contextlib.suppress(ServerRefused):
        transport.rows(statements.ERROR_TEXT, _HARMLESS_NAME, _HARMLESS_LOCALE)
    return True
