"""One client's connection: its user, its database, its capture session.

Statements come in as text and parameters; answers go out as values. `sqli` converts them to messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .answers import CheckStatement, Prepared, SqlSession
from .cdc import functions as cdc_functions
from .cdc.calls import Call, WithCalls, prepare_call
from .cdc.functions import error_text
from .column_types.locales import code_set_of, codec_of
from .large_objects.calls import LoCalls, Returned
from .large_objects.sbspace import Descriptors
from .log.sessions import EmulatedSession
from .poses import DEFAULT_LOCALE
from .server import CDC_DATABASE, EmulatedServer
from .sql import open_session
from .sql_errors import sql_error

MIN_READ_BYTES = 128  # CDC guide, read buffer size
_LOGGED, _ANSI, _INFORMIX, _SECONDARY = 0x01, 0x02, 0x14, 0x20
_CDC_NAME = re.compile(r"\bsyscdcv1 ?:", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'")


class Connection:
    """A connection that has been admitted."""

    def __init__(self, server: EmulatedServer, attributes: Mapping[str, str]) -> None:
        self.server = server
        self.user = attributes.get("UID", server.trusted_user)
        self.database = ""
        self.db_locale = _locale(server, attributes)
        self.delimits_names = attributes.get("DELIMIDENT", "").lower() == "y"
        self.date_form = attributes.get("DBDATE", "")
        self.capture_session: EmulatedSession | None = None
        self._statements: SqlSession | None = None
        self._descriptors = Descriptors(server.sbspace)
        is_little_endian = attributes.get("FLOATS") == "IEEEI"
        self._lo_calls = LoCalls(
            self._descriptors, self._session_number, "<" if is_little_endian else ">"
        )
        self._admit(attributes)

    @property
    def codec(self) -> str:
        """The Python codec of the text of this connection; UTF-8 where it named no locale of ours."""
        try:
            return codec_of(self.db_locale)
        except ValueError:
            return "utf-8"

    def open_database(self, name: str) -> int:
        """Open a database, closing the one that is open; returns its properties."""
        self.close_database()
        database, _, server_name = name.lower().partition("@")
        if server_name not in ("", self.server.name.lower()):
            raise sql_error(-908, server_name)
        self._may_open(database)
        self.database = database
        self._statements = self._open(database)
        return _properties(self.server, database)

    def close_database(self) -> None:
        """Roll back what is open and close the database; a capture session stays open."""
        if self._statements is not None:
            self._statements.close()
        self._statements, self.database = None, ""

    def session(self) -> SqlSession:
        """Return the statements' side of the open database; without one a database can be created."""
        if self._statements is None:
            self._statements = self._open("")
        return self._statements

    def database_names(self) -> list[str]:
        """Return the names of the server's databases."""
        return sorted(self.server.databases)

    def lo_read(
        self, descriptor: int, max_bytes: int, check: CheckStatement, offset: int | None = None
    ) -> bytes:
        """Read the capture session, whose number is a descriptor of 16 bits, or an object."""
        session = self.capture_session
        if session is None or session.id & 0xFFFF != descriptor or session.is_over:
            with self.server.log.changed:
                if descriptor in self._descriptors:
                    return self._descriptors.read(descriptor, max_bytes, offset)
            raise sql_error(-12008, descriptor)
        if max_bytes < MIN_READ_BYTES:
            raise sql_error(-9810)
        return session.read(max_bytes, check)

    def routine(self, signature: str) -> tuple[str, int]:
        """Return the database and the number of a routine that the fast path may call."""
        if not self.database:
            raise sql_error(-349)
        return self.database, self._lo_calls.routine(signature)

    def call_routine(self, number: int, values: Sequence[bytes | None]) -> list[Returned]:
        """Call a routine by its number."""
        with self.server.log.changed:
            return self._lo_calls.call(number, values)

    def prepare_call(self, call: Call) -> Prepared:
        """Check a function's call as far as that goes without its arguments' values."""
        if not self.database:
            raise sql_error(-349)
        if call.is_qualified and CDC_DATABASE not in self.server.databases:
            raise sql_error(-329, CDC_DATABASE)
        if call.owner not in (None, self.server.owner):
            raise sql_error(-674, f"{call.owner}.{call.name}")
        self._must_be_granted(call.name, call.is_qualified)
        return prepare_call(call, self.codec, lambda values, _check: self._run(call, values))

    def may_use(self, text: str) -> None:
        """Refuse what names the CDC database where there is none, or the user has no right to it."""
        named = _QUOTED.sub("", text)
        is_qualified = _CDC_NAME.search(named) is not None
        if is_qualified and CDC_DATABASE not in self.server.databases:
            raise sql_error(-329, CDC_DATABASE)
        if is_qualified and self.user not in self.server.cdc_users:
            raise sql_error(-387)

    def _open(self, database: str) -> SqlSession:
        engine = open_session(
            self.server,
            self.user,
            database,
            self.delimits_names,
            self.db_locale,
            self.date_form,
        )
        return WithCalls(self.prepare_call, self.may_use, engine)

    def _run(self, call: Call, values: Iterator[str | None]) -> int | str:
        arguments = call.given(values)
        if call.name == "cdc_errortext" and len(arguments) == 2:
            return error_text(*arguments)
        with self.server.log.changed:
            return cdc_functions.call(self, call.name, arguments)

    def close(self) -> None:
        """Free the session, as a server does when a connection ends."""
        self.close_database()
        with self.server.log.changed:
            self._descriptors.close_all()
        if self.capture_session is not None:
            self.server.close_session(self.capture_session.id)
            self.capture_session = None

    def _session_number(self) -> int:
        return -1 if self.capture_session is None else self.capture_session.id & 0xFFFF

    def _must_be_granted(self, routine: str, is_qualified: bool) -> None:
        in_reach = is_qualified or self.database == CDC_DATABASE
        if not in_reach or self.user not in self.server.cdc_users:
            raise sql_error(-674, routine)

    def _admit(self, attributes: Mapping[str, str]) -> None:
        server, user = self.server, self.user
        # Debezium's URL names no server: an empty name is taken for whichever listens
        if attributes.get("SERVER") not in (server.name, ""):
            raise sql_error(-761)
        if not attributes.keys() & {"UID", "PWD"}:  # then the server trusts the client's host, or not
            if not user:
                raise sql_error(-956, user)
        elif user not in server.users or server.users[user] != attributes.get("PWD"):
            raise sql_error(-951, user)

    def _may_open(self, database: str) -> None:
        if database not in self.server.databases:
            raise sql_error(-329, database)
        if database == CDC_DATABASE and self.user not in self.server.cdc_users:
            raise sql_error(-387)
        self._must_be_of_code_set(self.server.databases[database].locale)

    def _must_be_of_code_set(self, locale: str) -> None:
        """Refuse a connection of another code set, as measured of live servers; nothing else counts."""
        try:
            is_same = code_set_of(self.db_locale) == code_set_of(locale)
        except ValueError:
            raise sql_error(-23101) from None
        if not is_same:
            raise sql_error(-23197)


def _properties(server: EmulatedServer, name: str) -> int:
    """Return a database's properties as IBM's JDBC driver reads them of the warnings: 0x15 is usual."""
    database, is_secondary = server.databases[name], server.ha_role[0] > 1
    chosen = (database.is_logged, _LOGGED), (database.is_ansi, _ANSI), (is_secondary, _SECONDARY)
    return _INFORMIX | sum(bit for is_so, bit in chosen if is_so)


def _locale(server: EmulatedServer, attributes: Mapping[str, str]) -> str:
    """Return what a connection is in, whether it says so or not."""
    if given := attributes.get("DB_LOCALE"):
        return given
    return server.unset_locale or attributes.get("CLIENT_LOCALE") or DEFAULT_LOCALE
