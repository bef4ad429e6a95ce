"""All checks of the doctor, in the order in which they are printed.

Rule: pure functions: facts in, findings out. A check whose facts are unknown reports why; no check is
dropped. Checks that the source makes too are in `catalog/set_up.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from informix_capture_client.catalog import (
    API_VERSION,
    FoundTable,
    HaRole,
    LogSpace,
    Table,
    check_api_version,
    check_cdc_database,
    check_cdc_locale,
    check_database_logging,
    check_ha_role,
    check_locale,
    choose_columns,
    columns_behind_a_collection,
    unqualified,
)
from informix_capture_client.choices import ColumnChoice
from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import BadOption, UnsupportedColumn
from informix_capture_client.findings import (
    Finding,
    State,
    Unanswered,
    failure,
    ok,
    warning,
)
from informix_capture_client.session import OpenSession, finish_alter
from informix_capture_client.shell_commands import (
    command_granting_capture,
    table_argument,
    with_tables,
)
from informix_capture_client.sql_names import TableName, quoted
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.values import Column, is_simple_object
from informix_cdc.doctor.large_objects import ObjectColumn, check_objects
from informix_cdc.doctor.log_checks import check_log_space, check_long_transactions
from informix_cdc.doctor.security import SecurityFacts, check_security
from informix_cdc.doctor.snapshots import SnapshotFacts, check_snapshots
from informix_cdc.server import (
    CdcFacts,
    DriverFacts,
    ServerFacts,
    TableFacts,
    why_no_table,
)

_Part = TypeVar("_Part")
_Fact = TypeVar("_Fact")

_NOT_ASKED = Unanswered("nothing was asked", was_asked=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """The input of all checks: what the user wants, and what is known about the server.

    `driver` is None if the transport needs none; `snapshots` and `objects` are None if none are
    requested. `connection_arguments` are the flags that name the server in printed commands.
    """

    database: str
    user: str
    address: str
    db_locale: str = ""
    choice: ColumnChoice = field(default_factory=ColumnChoice)
    dialect: Dialect = INFORMIX
    driver: DriverFacts | Unanswered | None = None
    server: ServerFacts | Unanswered = _NOT_ASKED
    tables: tuple[TableFacts, ...] | Unanswered = _NOT_ASKED
    cdc: CdcFacts | Unanswered = _NOT_ASKED
    security: SecurityFacts | Unanswered = _NOT_ASKED
    snapshots: SnapshotFacts | Unanswered | None = None
    objects: tuple[ObjectColumn, ...] | Unanswered | None = None
    connection_arguments: tuple[str, ...] = ()


def _driver(set_up: SetUp) -> Iterator[Finding]:
    driver = set_up.driver
    if driver is None:
        yield ok("driver", "transport=sqli needs no driver.")
    elif isinstance(driver, Unanswered):
        yield failure("driver", driver.reason, driver.remedy)
    else:
        version = f", version {driver.version}" if driver.version else ""
        reported = f" It is {driver.name}{version}." if driver.name else ""
        yield ok("driver", f"{driver.path} is loaded.{reported}")


def _connection(set_up: SetUp) -> Iterator[Finding]:
    server = set_up.server
    if isinstance(server, Unanswered):
        yield _unknown("connection", server, State.FAILURE)
        return
    reported = _reported(_known(server.name), _known(server.version))
    yield ok("connection", f"connected to {set_up.address} as {set_up.user}; {reported}.")


def _known(fact: str | Unanswered) -> str:
    return "" if isinstance(fact, Unanswered) else fact.strip()


def _reported(name: str, version: str) -> str:
    """Return what a server reported about itself, as text."""
    if name and version:
        return f"the server is {name}, {version}"
    if name:
        return f"the server is {name}; it did not report its version"
    if version:
        return f"the server is {version}; it did not report its name"
    return "the server did not report its name and version"


def _database(set_up: SetUp) -> Iterator[Finding]:
    logging = _of_server(set_up, lambda server: server.database_logging)
    owner = set_up.dialect.owner
    yield _checked("database", logging, lambda it: check_database_logging(set_up.database, it, owner))


def _locale(set_up: SetUp) -> Iterator[Finding]:
    locale = _of_server(set_up, lambda server: server.database_locale)
    if _of_server(set_up, lambda server: server.database_logging) is None:
        locale = Unanswered("the database does not exist", was_asked=False)
    yield _checked("locale", locale, lambda it: check_locale(set_up.database, it, set_up.db_locale))


def _cdc_database(set_up: SetUp) -> Iterator[Finding]:
    is_there = _of_server(set_up, lambda server: server.has_cdc_database)
    yield _checked("syscdcv1", is_there, lambda it: check_cdc_database(it, set_up.dialect))


def _api_version(set_up: SetUp) -> Iterator[Finding]:
    version = _of_cdc(set_up, lambda cdc: cdc.api_version)
    yield _checked("api version", version, lambda it: check_api_version(it, set_up.dialect))


def _rights(set_up: SetUp) -> Iterator[Finding]:
    found = f"user {set_up.user} can connect to database {set_up.database!r}."
    yield _checked("rights", set_up.tables, lambda _: ok("rights", found), State.FAILURE)
    runs = set_up.cdc if isinstance(set_up.cdc, Unanswered) else set_up.cdc.runs_routines
    yield _checked("rights", runs, lambda _: _right_to_capture(set_up), State.FAILURE)


def _right_to_capture(set_up: SetUp) -> Finding:
    """Check a user who can call the `cdc_` functions; by chapter 1 of the guide only the owner can."""
    owner, user = set_up.dialect.owner, set_up.user
    if user == owner:
        return ok("rights", f"user {user} may call the cdc_ functions, as the guide requires.")
    user_type = _of_cdc(set_up, lambda cdc: cdc.user_type)
    grant = f"; or, as {owner}: {command_granting_capture(user)}"
    if isinstance(user_type, Unanswered):
        found = f"may call the cdc_ functions; its DBA right on {CDC_DATABASE} could not be checked"
    elif user_type == "D":
        found, grant = f"is a DBA of {CDC_DATABASE} and may call the cdc_ functions", ""
    else:
        found = f"may call the cdc_ functions, but is not a DBA of {CDC_DATABASE}"
    return warning(
        "rights",
        f"user {user} {found}. The guide requires user {owner}; other users are reported to work.",
        f"If a cdc_ function is refused: --user={owner} (option user){grant}",
    )


def _cdc_locale(set_up: SetUp) -> Iterator[Finding]:
    locale = _of_server(set_up, lambda server: server.database_locale)
    if isinstance(locale, Unanswered):
        why = _in_the_way(locale, "the locale of the database is unknown")
        yield _not_checked("locale of syscdcv1", why.reason)
        return
    cdc_locale = _of_server(set_up, lambda server: server.cdc_locale)
    if _of_server(set_up, lambda server: server.has_cdc_database) is False:
        cdc_locale = Unanswered(f"database {CDC_DATABASE} does not exist", was_asked=False)
    yield _checked(
        "locale of syscdcv1",
        cdc_locale,
        lambda it: check_cdc_locale(it, set_up.database, locale, set_up.dialect),
    )


def _tables(set_up: SetUp) -> Iterator[Finding]:
    def check_table(table: TableFacts) -> Finding:
        return _checked("table", table.found, FoundTable.finding, table=str(table.name))

    yield from _each_table(set_up, "table", check_table)


def _primary_keys(set_up: SetUp) -> Iterator[Finding]:
    def check_table(table: TableFacts) -> Finding:
        name = str(table.name)
        has_key = table.has_primary_key
        return _checked("primary key", has_key, lambda it: _primary_key(name, it), table=name)

    yield from _each_table(set_up, "primary key", check_table)


def _primary_key(table: str, has_key: bool) -> Finding:
    if has_key:
        return ok("primary key", "has a primary key.", table=table)
    return warning(
        "primary key",
        "has no primary key: a target cannot tell which row an update or delete applies to.",
        f"While full row logging is off: ALTER TABLE {unqualified(table)} ADD CONSTRAINT PRIMARY"
        " KEY (<columns>);",
        table=table,
    )


def _columns(set_up: SetUp) -> Iterator[Finding]:
    if isinstance(set_up.tables, Unanswered):
        reason = _in_the_way(set_up.tables, "the database cannot be opened").reason
        yield _not_checked("columns", reason)
        return
    known, unknown = [], []
    for table in set_up.tables:
        if not isinstance(table.found, Unanswered) and table.found.table:
            known.append(table.found.table)
        else:
            unknown.append(table)
    for table in unknown:
        yield _not_checked("columns", why_no_table(table.found).reason, table=str(table.name))
    if unknown and set_up.choice.names:
        yield _not_checked("columns", "option columns is checked only when all tables are found")
    elif known:
        yield from check_columns(known, set_up.choice)


def _in_place_alters(set_up: SetUp) -> Iterator[Finding]:
    check = "in-place alter"

    def check_table(table: TableFacts) -> Finding:
        name = str(table.name)
        pending = table.has_pending_alter
        return _checked(check, pending, lambda it: _in_place_alter(check, name, it), table=name)

    yield from _each_table(set_up, check, check_table)


def _in_place_alter(check: str, table: str, is_pending: bool) -> Finding:
    """Check the row layouts listed in the table's header; it does not show whether old rows remain."""
    if not is_pending:
        return ok(check, "has only rows of the current layout.", table=table)
    return warning(
        check,
        "may have rows in a layout from before an ALTER TABLE; if it has, the server refuses to"
        " capture it (-83793).",
        f"As a DBA, while full row logging is off: {finish_alter(table)}",
        table=table,
    )


def _row_logging(set_up: SetUp) -> Iterator[Finding]:
    check, role = "full row logging", _of_server(set_up, lambda server: server.ha_role)

    def check_table(table: TableFacts) -> Finding:
        user, owner, flags = set_up.user, set_up.dialect.owner, set_up.connection_arguments
        return _checked(
            check,
            table.logs_full_rows,
            lambda is_on: check_row_logging(table.name, is_on, user, owner, role, flags),
            table=str(table.name),
        )

    yield from _each_table(set_up, check, check_table)


def _log_space(set_up: SetUp) -> Iterator[Finding]:
    space = _of_server(set_up, lambda server: server.log_space)
    clock = _of_server(set_up, lambda server: server.clock)
    now = None if isinstance(clock, Unanswered) else clock
    yield _checked("log space", space, lambda it: check_log_space(it, now, set_up.dialect.owner))


def _long_transactions(set_up: SetUp) -> Iterator[Finding]:
    parameters = _of_server(set_up, lambda server: server.parameters)
    space = _of_server(set_up, lambda server: server.log_space)
    total = space.total_bytes if isinstance(space, LogSpace) else None
    yield _checked("long transactions", parameters, lambda it: check_long_transactions(it, total))


def _sessions(set_up: SetUp) -> Iterator[Finding]:
    sessions = _of_cdc(set_up, lambda cdc: cdc.sessions)
    if isinstance(sessions, Unanswered):
        yield _unknown("open sessions", sessions, State.WARNING)
    elif not sessions:
        yield ok("open sessions", "no capture session is open.")
    else:
        yield from map(_session, sessions)


def _session(session: OpenSession) -> Finding:
    check, remedy = "open sessions", f"onstat -g cdc {session.session_id}"
    tables = ", ".join(map(str, session.tables)) or "no table"
    found = f"session {session.session_id} captures {tables}"
    if session.error_code:
        return warning(check, f"{found}; its latest error is {session.error_code}.", remedy)
    if session.api_version != API_VERSION:
        # GBase 8s guide, cdc_opensess: all applications of a server must use the same version
        major, minor = session.api_version
        found = (
            f"{found} with API version {major}.{minor}; all captures of a server must use"
            " the same version."
        )
        return warning(check, found, remedy)
    return ok(check, f"{found}.")


def _high_availability(set_up: SetUp) -> Iterator[Finding]:
    role = _of_server(set_up, lambda server: server.ha_role)
    version = _of_server(set_up, lambda server: server.version)
    known = "" if isinstance(version, Unanswered) else version
    yield _checked("high availability", role, lambda it: check_ha_role(it, known, set_up.dialect))


CHECKS: tuple[Callable[[SetUp], Iterator[Finding]], ...] = (
    _driver,
    lambda set_up: check_security(set_up.security),
    _connection,
    _cdc_database,
    _api_version,
    _rights,
    _database,
    _locale,
    _cdc_locale,
    _tables,
    _primary_keys,
    _columns,
    _in_place_alters,
    _row_logging,
    _log_space,
    _long_transactions,
    _sessions,
    _high_availability,
    lambda set_up: check_objects(set_up.objects),
    lambda set_up: check_snapshots(set_up.snapshots),
)


def _checked(
    check: str,
    fact: _Fact | Unanswered,
    check_fact: Callable[[_Fact], Finding],
    if_unanswered: State = State.WARNING,
    *,
    table: str = "",
) -> Finding:
    """Run a check if its fact is known."""
    if isinstance(fact, Unanswered):
        return _unknown(check, fact, if_unanswered, table=table)
    return check_fact(fact)


def _unknown(check: str, fact: Unanswered, state: State, *, table: str = "") -> Finding:
    if not fact.was_asked:
        return _not_checked(check, fact.reason, table=table)
    found = fact.reason if state is State.FAILURE else f"could not be checked: {fact.reason}"
    return Finding(check, state, found, fact.remedy, table)


def _not_checked(check: str, reason: str, *, table: str = "") -> Finding:
    return Finding(check, State.NOT_CHECKED, reason, table=table)


def _of_server(set_up: SetUp, get: Callable[[ServerFacts], _Fact]) -> _Fact | Unanswered:
    if isinstance(set_up.server, Unanswered):
        return _in_the_way(set_up.server, "there is no connection")
    return get(set_up.server)


def _of_cdc(set_up: SetUp, get: Callable[[CdcFacts], _Fact]) -> _Fact | Unanswered:
    if isinstance(set_up.cdc, Unanswered):
        return _in_the_way(set_up.cdc, "the CDC database cannot be opened")
    return get(set_up.cdc)


def _each_table(
    set_up: SetUp, check: str, check_table: Callable[[TableFacts], Finding]
) -> Iterator[Finding]:
    if isinstance(set_up.tables, Unanswered):
        reason = _in_the_way(set_up.tables, "the database cannot be opened").reason
        yield _not_checked(check, reason)
    else:
        yield from map(check_table, set_up.tables)


def _in_the_way(part: Unanswered, what: str) -> Unanswered:
    """Return why a fact is unknown: its own error, or an earlier failure."""
    return Unanswered(what if part.was_asked else part.reason, was_asked=False)


_ROW_LOGGING = "full row logging"
_OF_USER = ("--user", "--password-file", "--password-command")


def check_row_logging(
    name: TableName,
    is_on: bool,
    user: str,
    owner: str,
    role: HaRole | Unanswered,
    connection: Sequence[str] = (),
) -> Finding:
    """Check one table. By the guide only `owner` can switch row logging on, and only on a primary.

    `connection` has what names the server in printed commands: a file, and flags with their values.
    """
    table = str(name)
    if is_on:
        return ok(_ROW_LOGGING, "logs full rows.", table=table)
    acquire = ("acquire", *with_tables(connection, table_argument(name)))
    if isinstance(role, HaRole) and role.is_secondary:
        found = "does not log full rows, and a secondary cannot switch that on."
        return warning(_ROW_LOGGING, found, "Connect to the primary:", table=table, command=acquire)
    if user != owner:
        found = f"does not log full rows; by the guide only user {owner} can switch that on."
        acquire = ("acquire", *with_tables(_as_owner(connection, owner), table_argument(name)))
        return warning(_ROW_LOGGING, found, f"As user {owner}:", table=table, command=acquire)
    found = "does not log full rows; the first capture switches that on permanently"
    if isinstance(role, Unanswered):
        found += ", unless this server is a secondary (could not be checked)"
    return warning(
        _ROW_LOGGING,
        f"{found}. From then on the server refuses ALTER TABLE.",
        "Alter the table before that, or run this before each ALTER:",
        table=table,
        command=("release", *with_tables(connection, table_argument(name)), *_place(connection)),
    )


def _as_owner(connection: Sequence[str], owner: str) -> tuple[str, ...]:
    """Return file and flags for the owner, without those of another user and password.

    The owner is named explicitly, because a file or the environment may name the other user.
    """
    kept = [*connection]
    for flag in _OF_USER:
        if flag in kept:
            at = kept.index(flag)
            del kept[at : at + 2]
    return (*kept, "--user", owner)


def _place(connection: Sequence[str]) -> tuple[str, ...]:
    """Return the flag with the checkpoint of a query, which a file has."""
    return () if connection and connection[0].endswith(".toml") else ("--checkpoint", "PLACE")


_COLUMNS = "columns"
_RESELECT = "--simple-lobs=reselect (option simpleLobs) reads the values of TEXT and BYTE columns; "


def check_columns(tables: Sequence[Table], choice: ColumnChoice) -> Iterator[Finding]:
    """Check all tables at once, because the include list names columns of any of them."""
    try:
        chosen = choose_columns(tables, choice)
    except UnsupportedColumn as refused:
        yield from _refused(tables, refused)
    except BadOption as mistake:
        yield failure(_COLUMNS, mistake.message, mistake.remedy)
    else:
        for table, kept in zip(tables, chosen, strict=True):
            yield _captured(table, kept.delivered)


def _refused(tables: Sequence[Table], reason: UnsupportedColumn) -> Iterator[Finding]:
    for table in tables:
        name = str(table.name)
        own = {column for of_table, column, _ in reason.columns if of_table == name}
        refused = _listed(table, [column for column in table.columns if column.name in own])
        if not refused:
            yield ok(_COLUMNS, "has only columns that can be captured.", table=name)
            continue
        value = "omit-following" if own & columns_behind_a_collection(table) else "omit"
        has_simple_objects = any(is_simple_object(c.type_text) for c in table.columns if c.name in own)
        yield failure(
            _COLUMNS,
            f"has {len(own)} that cannot be captured: {refused}.",
            (_RESELECT if has_simple_objects else "")
            + f"--unsupported-columns={value} (option unsupportedColumns) omits them; --columns"
            " (option columns) selects the others.",
            table=name,
            kind=UnsupportedColumn,
        )


def _captured(table: Table, kept: Sequence[Column]) -> Finding:
    names = {column.name for column in kept}
    left_out = _listed(table, [column for column in table.columns if column.name not in names])
    found = f"is captured with {len(kept)} of {len(table.columns)} columns"
    found += f"; omitted: {left_out}" if left_out else ""
    masked = ", ".join(f"{quoted(each.name)} ({each.mask.kind})" for each in kept if each.mask)
    found += f"; masked: {masked}" if masked else ""
    found += f"; hidden: {', '.join(map(quoted, table.hidden))}" if table.hidden else ""
    return ok(_COLUMNS, f"{found}.", table=str(table.name))


def _listed(table: Table, columns: Sequence[Column]) -> str:
    """Return columns with their types; those after a collection column are marked."""
    behind = columns_behind_a_collection(table)
    return ", ".join(
        f"{quoted(column.name)} ({column.type_text.upper()}"
        f"{', after a SET, MULTISET or LIST' if column.name in behind else ''})"
        for column in columns
    )
