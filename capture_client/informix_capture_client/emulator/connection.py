"""One client's connection: who it is, where it is connected, its capture session.

Rule: statements come in as text and parameters, answers go out as values; how they travel is the
business of `sqli`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from . import cdc_functions
from .answers import Check, Prepared, SqlSession
from .cdc_calls import Call, WithCalls, prepare_call
from .cdc_functions import error_text
from .column_list import split_at_commas
from .locales import code_set_of, codec_of
from .poses import DEFAULT_LOCALE
from .result_sets import ResultSet, answer
from .server import CDC_DATABASE, EmulatedServer
from .sessions import CaptureSession
from .sql import open_session
from .sql_errors import SqlError, sql_error

MIN_READ_BYTES = 128  # CDC guide, read buffer size
_LOGGED, _ANSI, _INFORMIX, _SECONDARY = 0x01, 0x02, 0x14, 0x20
_EXECUTE = re.compile(
    r"(?:execute function|\{ ?\? ?= ?call|\{ ?call) (?P<cdc>syscdcv1 ?: ?)?(?:(?P<owner>\w+)\.)?"
    r"(?P<name>cdc_\w+) ?\((?P<arguments>.*)\)(?: ?\})?",
    re.IGNORECASE,
)
_CDC_NAME = re.compile(r"\bsyscdcv1 ?:", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'")
_LO_READ = re.compile(r"\{ ?call ifx_lo_read ?\( ?\? ?, ?\? ?\) ?\}", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a statement: a value, or room for what comes out."""

    value: str | None = None
    room: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement returns."""

    result: ResultSet = field(default_factory=lambda: ResultSet((), []))
    row_count: int = -1
    out: bytes = b""


class Connection:
    """A connection that has been admitted."""

    def __init__(self, server: EmulatedServer, attributes: Mapping[str, str]) -> None:
        self.server = server
        self.user = attributes.get("UID", server.trusted_user)
        self.database = attributes.get("DATABASE", "").lower()
        self.db_locale = _locale(server, attributes)
        self.delimits_names = attributes.get("DELIMIDENT", "").lower() == "y"
        self.capture_session: CaptureSession | None = None
        self._statements: SqlSession | None = None
        self._admit(attributes)
        self._sql = open_session(server, self.user, self.database, self.delimits_names, self.db_locale)

    def execute(
        self, statement: str, parameters: Sequence[Parameter], check: Callable[[], None]
    ) -> Answer:
        """Run a statement. `check` is called while it waits and may raise to end it."""
        text = " ".join(statement.split()).rstrip("; ")
        if is_lo_read(text):
            return self._lo_read(parameters, check)
        names_cdc = _CDC_NAME.search(text) is not None
        if names_cdc and CDC_DATABASE not in self.server.databases:
            raise sql_error(-329)
        values = [parameter.value for parameter in parameters]
        if match := _EXECUTE.fullmatch(text):
            value = self._call(match, iter(values))
            return Answer(ResultSet(("(expression)",), [(value,)]))
        if "cdc_errortext" in text.lower():
            self._must_be_granted("cdc_errortext", names_cdc)
        if names_cdc and self.user not in self.server.cdc_users:
            raise sql_error(-387)
        return Answer(answer(self._sql, statement, values, check))

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
        engine = open_session(self.server, self.user, database, self.delimits_names, self.db_locale)
        self._statements = WithCalls(self.prepare_call, self.may_use, engine)
        return _properties(self.server, database)

    def close_database(self) -> None:
        """Roll back what is open and close the database; a capture session stays open."""
        if self._statements is not None:
            self._statements.close()
        self._statements, self.database = None, ""

    def session(self) -> SqlSession:
        """Return the statements' side of the open database."""
        if self._statements is None:
            raise sql_error(-349)
        return self._statements

    def database_names(self) -> list[str]:
        """Return the names of the server's databases."""
        return sorted(self.server.databases)

    def lo_read(self, descriptor: int, max_bytes: int, check: Check) -> bytes:
        """Read the capture session; its number is a descriptor of 16 bits on the wire."""
        session = self.capture_session
        if session is None or session.id & 0xFFFF != descriptor or session.is_over:
            raise sql_error(-12008, descriptor)
        if max_bytes < MIN_READ_BYTES:
            raise sql_error(-11071)
        return session.read(max_bytes, check)

    def prepare_call(self, call: Call) -> Prepared:
        """Check a function's call as far as that goes without its arguments' values."""
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
        if "cdc_errortext" in named.lower():
            self._must_be_granted("cdc_errortext", is_qualified)
        if is_qualified and self.user not in self.server.cdc_users:
            raise sql_error(-387)

    def _run(self, call: Call, values: Parameters) -> int | str:
        arguments = call.given(values)
        if call.name == "cdc_errortext" and len(arguments) == 2:
            return error_text(*arguments)
        with self.server.log.changed:
            return cdc_functions.call(self, call.name, arguments)

    def close(self) -> None:
        """Free the session, as a server does when a connection ends."""
        self._sql.close()
        self.close_database()
        if self.capture_session is not None:
            self.server.close_session(self.capture_session.id)
            self.capture_session = None

    def _call(self, match: re.Match[str], parameters: Parameters) -> int | str:
        name = match["name"].lower()
        if match["owner"] not in (None, self.server.owner):
            raise sql_error(-674, f"{match['owner']}.{name}")
        self._must_be_granted(name, match["cdc"] is not None)
        items = [item.strip() for item in split_at_commas(match["arguments"])]
        arguments = [literal(item, parameters) for item in items if item]
        if name == "cdc_errortext" and len(arguments) == 2:
            return error_text(*arguments)
        with self.server.log.changed:
            return cdc_functions.call(self, name, arguments)

    def _must_be_granted(self, routine: str, is_qualified: bool) -> None:
        in_reach = is_qualified or self.database == CDC_DATABASE
        if not in_reach or self.user not in self.server.cdc_users:
            raise sql_error(-674, routine)

    def _lo_read(self, parameters: Sequence[Parameter], check: Callable[[], None]) -> Answer:
        if len(parameters) != 2 or parameters[1].room is None:
            raise sql_error(-11013)
        session, wanted, room = self.capture_session, parameters[0].value, parameters[1].room
        if session is None or str(session.id) != wanted or session.is_over:
            raise sql_error(-12008, wanted)
        if room < MIN_READ_BYTES:
            raise sql_error(-11071)
        return Answer(row_count=0, out=session.read(room, check))

    def _admit(self, attributes: Mapping[str, str]) -> None:
        server, user = self.server, self.user
        # Debezium's URL names no server: an empty name is taken for whichever listens
        if attributes.get("SERVER") not in (server.name, ""):
            raise sql_error(-25596, attributes.get("SERVER"))
        if not attributes.keys() & {"UID", "PWD"}:  # then the server trusts the client's host, or not
            if not user:
                raise sql_error(-956, user)
        elif user not in server.users or server.users[user] != attributes.get("PWD"):
            raise sql_error(-951, user)
        if self.database:
            self._may_open(self.database)

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


Parameters = Iterator[str | None]


def literal(text: str, parameters: Parameters) -> str | None:
    """Return what a literal or a `?` stands for, as text."""
    if text != "?":
        return None if text.lower() == "null" else text.strip("'\"")
    try:
        return next(parameters)
    except StopIteration:
        raise SqlError("07002", -11031, "A parameter has no value.") from None


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


def is_lo_read(text: str) -> bool:
    """Tell whether a statement, its blanks single ones, reads a capture session."""
    return _LO_READ.fullmatch(text) is not None


def parse_attributes(text: str) -> dict[str, str]:
    """Read a connection string; keys in upper case, braces around a value are taken off."""
    attributes = {}
    for key, value in _ATTRIBUTE.findall(text):
        is_braced = value.startswith("{") and value.endswith("}")
        attributes[key.upper()] = value[1:-1].replace("}}", "}") if is_braced else value.strip()
    return attributes
