"""Inspect a server and this host the way a capture uses them, and run the checks.

Rule: it changes nothing and never stops halfway: a failure is a fact like any other. It opens one
connection after another: sysmaster for the server, the database for its tables, then one like a
capture's. Each check runs as soon as its facts are known. No list says which check needs which fact: a
check that asks for an unknown fact is repeated when more facts are known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from informix_capture_client.catalog import Catalog, check_locale
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.findings import Finding, State, Unanswered
from informix_capture_client.statements import CDC_DATABASE, SYSTEM_DATABASE
from informix_capture_client.transport import Transport
from informix_cdc.doctor.checks import CHECKS, SetUp
from informix_cdc.doctor.large_objects import ObjectColumn, read_object_facts
from informix_cdc.doctor.security import read_security_facts
from informix_cdc.doctor.snapshots import SnapshotFacts, read_snapshot_facts
from informix_cdc.host import check_host
from informix_cdc.options import ConnectionOptions, SourceOptions, connection_arguments
from informix_cdc.server import (
    CdcFacts,
    DriverFacts,
    ServerFacts,
    named_tables,
    open_capture_connection,
    open_connection,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
)

_Fact = TypeVar("_Fact")


def diagnose(options: SourceOptions, arguments: Sequence[str] | None = None) -> Iterator[list[Finding]]:
    """Yield the findings of each check as soon as they are known: first the server's, then this host's.

    Args:
        options: the options of the capture.
        arguments: flags that name the server in printed commands; by default those of the options.

    Raises:
        BadOption: option `table` is invalid.
    """
    shown = connection_arguments(options) if arguments is None else tuple(arguments)
    yield from check_as_known(read_facts(options, shown))
    yield from check_host(options)


def read_facts(options: SourceOptions, arguments: tuple[str, ...] = ()) -> Iterator[KnownSoFar]:
    """Yield the known facts about driver, server, database and tables, each time there are more."""
    set_up = SetUp(
        database=options.connection.database,
        user=options.connection.user,
        address=options.connection.address,
        db_locale=options.connection.db_locale,
        choice=options.columns.choice(),
        dialect=options.connection.dialect,
        driver=_driver(options.connection),
        security=read_security_facts(options),
        connection_arguments=arguments,
    )
    if isinstance(set_up.driver, Unanswered):
        nothing = Unanswered("the driver cannot be loaded", was_asked=False)
        yield KnownSoFar(_without(replace(set_up, server=nothing), options, nothing))
        return
    if set_up.driver is None:  # the connection reports more about the driver, whose check is the first
        yield KnownSoFar(set_up, ("server", "tables", "cdc"))
    set_up = _ask_the_server(options.connection, set_up)
    if isinstance(set_up.server, Unanswered):
        nothing = Unanswered("there is no connection", was_asked=False)
        yield KnownSoFar(_without(set_up, options, nothing))
        return
    yield KnownSoFar(set_up, ("tables", "cdc"))
    options = _with_sound_locale(options, set_up.server)
    set_up = replace(set_up, cdc=_ask_the_cdc_database(options.connection, set_up.server))
    yield KnownSoFar(set_up, ("tables",))
    tables = _asked(
        lambda: open_connection(options.connection, options.connection.database),
        lambda it: read_table_facts(
            it,
            options.connection.database,
            named_tables(options, Catalog(it, options.connection.database)),
        ),
    )
    yield KnownSoFar(replace(set_up, tables=tables), ("objects", "snapshots"))
    set_up = replace(set_up, tables=tables, objects=_ask_for_objects(options))
    yield KnownSoFar(set_up, ("snapshots",))
    yield KnownSoFar(replace(set_up, snapshots=_ask_for_snapshots(options)))


def _without(set_up: SetUp, options: SourceOptions, nothing: Unanswered) -> SetUp:
    """Return the facts that are known without access to the tables."""
    snapshots = nothing if options.snapshots.tables else None
    objects = nothing if options.columns.reads_contents else None
    return replace(set_up, tables=nothing, cdc=nothing, snapshots=snapshots, objects=objects)


def _ask_for_objects(options: SourceOptions) -> tuple[ObjectColumn, ...] | Unanswered | None:
    if not options.columns.reads_contents:
        return None
    return _asked(
        lambda: open_connection(options.connection, options.connection.database),
        lambda it: read_object_facts(options, it),
    )


def _ask_for_snapshots(options: SourceOptions) -> SnapshotFacts | Unanswered | None:
    if not options.snapshots.tables:
        return None
    return _asked(
        lambda: open_connection(options.connection, options.connection.database),
        lambda it: read_snapshot_facts(options, it),
    )


def _driver(connection: ConnectionOptions) -> DriverFacts | Unanswered | None:
    """Load the driver before connecting; transport=sqli has none."""
    if connection.transport != "odbc":
        return None
    from informix_capture_client.transport import load_driver

    try:
        path, _ = load_driver(connection.settings(SYSTEM_DATABASE))
    except InformixCdcError as reason:
        return Unanswered.of(reason)
    return DriverFacts(path)


def _ask_the_server(connection: ConnectionOptions, set_up: SetUp) -> SetUp:
    def ask(transport: Transport) -> SetUp:
        server = read_server_facts(transport, connection.database)
        return replace(set_up, server=server, driver=_reported_by_driver(transport, set_up.driver))

    found = _asked(lambda: open_connection(connection, SYSTEM_DATABASE), ask)
    return replace(set_up, server=found) if isinstance(found, Unanswered) else found


def _reported_by_driver(
    transport: Transport, driver: DriverFacts | Unanswered | None
) -> DriverFacts | Unanswered | None:
    from informix_capture_client.transport import OdbcTransport

    if not isinstance(transport, OdbcTransport) or not isinstance(driver, DriverFacts):
        return driver
    with contextlib.suppress(InformixCdcError):  # not needed for a capture
        if info := transport.driver_info():
            return DriverFacts(driver.path, info.name, info.version, info.server_version)
    return driver


def _ask_the_cdc_database(connection: ConnectionOptions, server: ServerFacts) -> CdcFacts | Unanswered:
    """Query the CDC database as a capture would, or directly if the database cannot be opened."""
    if server.has_cdc_database is False:
        return Unanswered(f"database {CDC_DATABASE} does not exist", was_asked=False)
    known = server.database_locale
    locale = connection.db_locale or ("" if isinstance(known, Unanswered) else known)

    def connect() -> Transport:
        if locale:
            return open_capture_connection(connection, locale)
        return open_connection(connection, CDC_DATABASE)

    return _asked(connect, lambda it: read_cdc_facts(it, connection.user, connection.dialect))


def _with_sound_locale(options: SourceOptions, server: ServerFacts) -> SourceOptions:
    """Drop a wrong option dbLocale, which is a finding, so that the other checks can run."""
    known = server.database_locale
    if isinstance(known, Unanswered):
        return options
    finding = check_locale(options.connection.database, known, options.connection.db_locale)
    if finding.state is not State.FAILURE:
        return options
    return replace(options, connection=replace(options.connection, db_locale=""))


def _asked(connect: Callable[[], Transport], ask: Callable[[Transport], _Fact]) -> _Fact | Unanswered:
    """Ask over a new connection; if it cannot be opened, return why."""
    try:
        with contextlib.closing(connect()) as transport:
            return ask(transport)
    except InformixCdcError as reason:
        return Unanswered.of(reason)


class _NotYetKnownError(Exception):
    """A check asked for a fact that is not known yet."""


@dataclass(frozen=True, slots=True)
class KnownSoFar:
    """The facts known so far; `unknown` names the fields of the set-up that have not been read yet."""

    set_up: SetUp
    unknown: Collection[str] = ()


class _PartialSetUp:
    """A set-up that raises an error for unknown facts."""

    def __init__(self, known: KnownSoFar) -> None:
        self._known = known

    def __getattr__(self, name: str) -> object:
        if name in self._known.unknown:
            raise _NotYetKnownError(name)
        return getattr(self._known.set_up, name)


def check_as_known(stages: Iterable[KnownSoFar]) -> Iterator[list[Finding]]:
    """Yield the findings of each check in the order of `CHECKS`; the last stage must have all facts."""
    waiting = list(CHECKS)
    for known in stages:
        partial = cast("SetUp", _PartialSetUp(known))
        while waiting:
            try:
                findings = list(waiting[0](partial))
            except _NotYetKnownError:
                break
            del waiting[0]
            yield findings
