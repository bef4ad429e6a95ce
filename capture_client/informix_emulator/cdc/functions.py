"""The `cdc_*` functions: their checks, in order, and their effects.

Source: chapter 2 of the CDC guide. A function returns one integer. An error is a negative code, raised
here as `_Refusal` and returned by `call`. Arguments arrive as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..column_types.column_list import column_name, split_at_commas
from ..column_types.locales import canonical_locale
from ..log import codes
from ..log.codes import PENDING_ALTER, error_code
from ..log.sessions import EmulatedSession
from ..server import EmulatedServer
from ..sql_errors import sql_error
from ..tables.tables import Capture, EmulatedTable, EmulatedTableName

MAX_RECORDS = 256  # what a server accepts as max_recs, by one client's option check


class Caller(Protocol):
    """The connection a function is called on."""

    server: EmulatedServer
    db_locale: str
    delimits_names: bool
    capture_session: EmulatedSession | None


class _Refusal(Exception):
    """The symbolic name of the error a function returns."""


Arguments = list[str | None]


def call(caller: Caller, name: str, arguments: Arguments) -> int:
    """Run a function; SqlError if there is none of that name and number of arguments."""
    arity, function = _FUNCTIONS.get(name, (-1, _unknown))
    if arity != len(arguments):
        raise sql_error(-674, name)
    try:
        return function(caller, [_given(argument) for argument in arguments])
    except _Refusal as refusal:
        return error_code(str(refusal))


def error_text(name: str | None, locale: str | None) -> str:
    """Return the text of a symbolic error name, in English for every locale."""
    if locale:
        try:
            canonical_locale(locale)
        except ValueError:
            raise sql_error(-23109, locale) from None
    for full_name, (_number, text) in codes.ERRORS.items():
        if name in (full_name, full_name[: codes.NAME_LENGTH]):
            return text
    raise sql_error(-1824, name)


def _unknown(_caller: Caller, _arguments: list[str]) -> int:
    raise _Refusal("CDC_E_UNIMPL")


def _open_session(caller: Caller, arguments: list[str]) -> int:
    server = caller.server
    session_id, timeout, max_recs, major, minor = map(_integer, arguments[1:])
    _require(arguments[0].strip() == server.name, "CDC_E_ARG1")
    _require(session_id == 0, "CDC_E_ARG2")
    _require(1 <= max_recs <= MAX_RECORDS, "CDC_E_ARG4")
    _require(major == 1 and minor in (0, 1), "CDC_E_APIVERS")
    _require(caller.capture_session is None, "CDC_E_DUPLSESS")
    caller.capture_session = server.open_session(timeout, max_recs)
    return caller.capture_session.id


def _set_full_row_logging(caller: Caller, arguments: list[str]) -> int:
    table = _table(caller, arguments[0], "CDC_E_ARG1")
    logging = _integer(arguments[1])
    _require(logging in (0, 1), "CDC_E_ARG2")
    _require(table.is_logged, "CDC_E_TABPROPERTIES")
    if not logging and (_is_captured(caller.server, table) or _is_refused(caller.server)):
        raise sql_error(-19816)
    caller.server.set_full_row_logging(str(table.name), bool(logging))
    return 0


def _start_capture(caller: Caller, arguments: list[str]) -> int:
    session = _live_session(caller, arguments[0])
    _require(_integer(arguments[1]) == 0, "CDC_E_ARG2")
    table = _table(caller, arguments[2], "CDC_E_ARG3")
    _require(table.is_logged and table.full_row_logging, "CDC_E_TABPROPERTIES")
    _require(table.partnum not in session.captures, "CDC_E_TABCAPTURED")
    _require(caller.delimits_names or '"' not in arguments[3], "CDC_E_NOCOL")
    names = _column_names(table, arguments[3])
    if len(set(table.versions)) > 1:
        return PENDING_ALTER  # that this function answers so, and not another, is our choice
    now = int(caller.server.clock())
    session.capture(Capture(table, names, _integer(arguments[4]), now))
    return 0


def _activate(caller: Caller, arguments: list[str]) -> int:
    session = _live_session(caller, arguments[0])
    position = _integer(arguments[1])
    _require(not session.is_active, "CDC_E_BADSTATE")
    _require(position >= 0, "CDC_E_ARG2")
    _require(position == 0 or position >> 32 >= caller.server.oldest_log(), "CDC_E_LSN")
    session.activate(position)
    return 0


def _deactivate(caller: Caller, arguments: list[str]) -> int:
    session = _live_session(caller, arguments[0])
    _require(session.is_active, "CDC_E_BADSTATE")
    session.deactivate()
    return 0


def _end_capture(caller: Caller, arguments: list[str]) -> int:
    session = _live_session(caller, arguments[0])
    _require(_integer(arguments[1]) == 0, "CDC_E_ARG2")
    table = _table(caller, arguments[2], "CDC_E_ARG3")
    _require(table.partnum in session.captures, "CDC_E_TABNOTCAPTURED")
    session.end_capture(table.partnum)
    return 0


def _close_session(caller: Caller, arguments: list[str]) -> int:
    session = _session(caller, arguments[0])
    caller.server.close_session(session.id)
    caller.capture_session = None
    return 0


def _record_boundary(caller: Caller, arguments: list[str]) -> int:
    return _live_session(caller, arguments[0]).restart_record()


def _require(condition: bool, error: str) -> None:
    if not condition:
        raise _Refusal(error)


def _given(argument: str | None) -> str:
    if argument is None:
        raise _Refusal("CDC_E_ARGNULL")
    return argument


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise sql_error(-1213) from None


def _session(caller: Caller, text: str) -> EmulatedSession:
    session = caller.capture_session
    if session is None or session.id != _integer(text):
        raise _Refusal("CDC_E_NOSES")
    return session


def _live_session(caller: Caller, text: str) -> EmulatedSession:
    session = _session(caller, text)
    _require(not session.is_dead, "CDC_E_MUSTCLOSE")
    return session


def _table(caller: Caller, text: str, malformed: str) -> EmulatedTable:
    """Find a table and check what is common to all functions that name one."""
    # Debezium captures quoted names over a connection with DELIMIDENT; what a server says without it
    # is our choice, here and for columns
    _require(caller.delimits_names or '"' not in text, "CDC_E_NOTAB")
    try:
        name = EmulatedTableName.parse(text)
    except ValueError:
        raise _Refusal(malformed) from None
    database = caller.server.databases.get(name.database)
    if database is None:
        raise _Refusal("CDC_E_NODB")
    _require(database.is_logged, "CDC_E_DBNOTLOGGED")
    _require(_is_locale(caller.db_locale, database.locale), "CDC_E_LOCALEMISMATCH")
    table = database.tables.get((name.owner, name.table))
    if table is None:
        raise _Refusal("CDC_E_NOTAB")
    return table


def _is_locale(given: str, locale: str) -> bool:
    """Whether the connection is in the database's locale."""
    try:
        return canonical_locale(given) == locale
    except ValueError:  # only a connection without a database gets here with one
        return False


def _column_names(table: EmulatedTable, text: str) -> list[str]:
    try:
        names = [column_name(item) for item in split_at_commas(text)]
    except ValueError:
        raise _Refusal("CDC_E_NOCOL") from None
    kinds = {column.name: column.type for column in table.columns}
    _require(all(name in kinds for name in names), "CDC_E_NOCOL")
    # the guide forbids TEXT and BYTE here without naming the error: the code is our choice
    _require(all(kinds[name].is_capturable for name in names), "CDC_E_ARG4")
    reached = [name for name in names if name in table.reached]
    _require(bool(reached), "CDC_E_ARG4")
    return reached


def _is_captured(server: EmulatedServer, table: EmulatedTable) -> bool:
    return any(table.partnum in session.captures for session in server.sessions().values())


def _is_refused(server: EmulatedServer) -> bool:
    """Whether switching full row logging off fails this time, though nothing is captured."""
    server.row_logging_refusals -= 1
    return server.row_logging_refusals >= 0


_FUNCTIONS: dict[str, tuple[int, Callable[[Caller, list[str]], int]]] = {
    "cdc_opensess": (6, _open_session),
    "cdc_set_fullrowlogging": (2, _set_full_row_logging),
    "cdc_startcapture": (5, _start_capture),
    "cdc_activatesess": (2, _activate),
    "cdc_deactivatesess": (1, _deactivate),
    "cdc_endcapture": (3, _end_capture),
    "cdc_closesess": (1, _close_session),
    "cdc_recboundary": (1, _record_boundary),
}
