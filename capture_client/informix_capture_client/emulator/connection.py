"""One client's connection: who it is, where it is connected, its capture session.

Rule: statements come in as text and parameters, answers go out as values; how they travel is the
business of `wire.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from . import cdc_functions
from .cdc_functions import error_text
from .column_list import split_at_commas
from .locales import code_set_of
from .result_sets import ResultSet, answer
from .server import CDC_DATABASE, DEFAULT_LOCALE, EmulatedServer
from .sessions import CaptureSession
from .sql import open_session
from .sql_errors import SqlError, sql_error

MIN_READ_BYTES = 128  # CDC guide, read buffer size
_EXECUTE = re.compile(
    r"(?:execute function|\{ ?\? ?= ?call|\{ ?call) (?P<cdc>syscdcv1 ?: ?)?(?:(?P<owner>\w+)\.)?"
    r"(?P<name>cdc_\w+) ?\((?P<arguments>.*)\)(?: ?\})?",
    re.IGNORECASE,
)
_CDC_NAME = re.compile(r"\bsyscdcv1 ?:", re.IGNORECASE)
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
        self.session: CaptureSession | None = None
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

    def close(self) -> None:
        """Free the session, as a server does when a connection ends."""
        self._sql.close()
        if self.session is not None:
            self.server.close_session(self.session.id)
            self.session = None

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
        session, wanted, room = self.session, parameters[0].value, parameters[1].room
        if session is None or str(session.id) != wanted or session.is_over:
            raise sql_error(-12008, wanted)
        if room < MIN_READ_BYTES:
            raise sql_error(-11071)
        return Answer(row_count=0, out=session.read(room, check))

    def _admit(self, attributes: Mapping[str, str]) -> None:
        server, user = self.server, self.user
        if attributes.get("SERVER") != server.name:
            raise sql_error(-25596, attributes.get("SERVER"))
        if not attributes.keys() & {"UID", "PWD"}:  # then the server trusts the client's host, or not
            if not user:
                raise sql_error(-956, user)
        elif user not in server.users or server.users[user] != attributes.get("PWD"):
            raise sql_error(-951, user)
        if self.database and self.database not in server.databases:
            raise sql_error(-329)
        if self.database == CDC_DATABASE and user not in server.cdc_users:
            raise sql_error(-387)
        if self.database:
            self._must_be_of_code_set(server.databases[self.database].locale)

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
