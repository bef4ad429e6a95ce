"""The options that say where to connect, as whom, and which tables to look at.

Rule: declared here once, inherited by all options of the source (`source.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.dialects import DIALECTS, INFORMIX, Dialect
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport import ConnectionSettings
from informix_cdc.options.declaring import (
    host_name,
    keywords,
    locale,
    names,
    one_of,
    option,
    whole_number,
)

PASSWORD_VARIABLE = "INFORMIX_CDC_PASSWORD"

_CONNECTION_KEYS = {
    "host": "host",
    "service": "port",
    "server": "server",
    "database": "database",
    "uid": "user",
    "db_locale": "dbLocale",
    "client_locale": "clientLocale",
}
_PASSWORD_KEYS = ("pwd", "password")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """Where to connect, as whom, and which tables to look at."""

    host: str = option("Host name or IP address of the Informix server.", host_name)
    port: int = option("TCP port of the server's SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = option("Name of the Informix server (its DBSERVERNAME).")
    database: str = option("Database to capture; it must be logged.")
    tables: tuple[str, ...] = option(
        "Tables to capture: owner.table, or several separated by commas.", names, name="table"
    )
    dialect_name: str = option(
        "Product that the server is: informix, or gbase8s for GBase 8s.",
        one_of(*DIALECTS),
        default=INFORMIX.name,
        name="dialect",
    )
    user: str = option(
        "Database user to connect as; default: informix, or gbasedbt on GBase 8s, as the CDC guides"
        " demand.",
        default="",
    )
    password: str = option(
        "Password of the user; may also come from passwordFile or the environment variable"
        f" {PASSWORD_VARIABLE}.",
        default="",
        secret=True,
    )
    password_file: str = option(
        "File that holds the user's password; under Spark, a path on the driver.", default=""
    )
    transport: str = option(
        "How to connect: odbc (Informix's ODBC driver) or emulator (the protocol of the embedded"
        " emulator).",
        one_of("odbc", "emulator"),
        default="odbc",
    )
    driver: str = option(
        "Path of the ODBC driver library; default: libthcli.so or iclit09b.so under INFORMIXDIR"
        " (iclit09b.so under GBASEDBTDIR).",
        default="",
    )
    db_locale: str = option(
        "Locale of the captured database (DB_LOCALE), of its own code set; default: the one that the"
        " server reports.",
        default="",
    )
    client_locale: str = option(
        "Locale of the connection (CLIENT_LOCALE).", locale, default="en_us.utf8"
    )
    connection_string: str = option(
        "Additional keywords for the ODBC driver, KEY=value;KEY=value; a password in it is refused.",
        keywords,
        default="",
    )

    @property
    def dialect(self) -> Dialect:
        """Which product the server is, with all that this decides."""
        return DIALECTS[self.dialect_name]

    def table_names(self) -> tuple[TableName, ...]:
        """Return the captured tables."""
        names = tuple(TableName.parse(text, self.database) for text in self.tables)
        if len(set(names)) != len(names):
            raise BadOption("option 'table' names a table twice.", option="table")
        return names

    def connection(self, database: str, db_locale: str = "") -> ConnectionSettings:
        """Return where to connect for one of the server's databases."""
        return ConnectionSettings(
            host=self.host,
            port=self.port,
            server=self.server,
            database=database,
            user=self.user,
            password=self.password,
            driver=self.driver,
            db_locale=db_locale,
            client_locale=self.client_locale,
            extra=_extra(self.connection_string),
            dialect=self.dialect,
        )


def _pieces(connection_string: str) -> list[tuple[str, str]]:
    pieces = [piece for piece in connection_string.split(";") if piece.strip()]
    return [(key.strip(), value) for key, _, value in (piece.partition("=") for piece in pieces)]


def with_connection_string(given: dict[str, str]) -> dict[str, str]:
    """Set the options that a connection string names."""
    merged = dict(given)
    for key, value in _pieces(given.get("connectionstring", "")):
        if key.lower() in _PASSWORD_KEYS:
            raise BadOption(
                "option 'connectionString' holds a password, which would show in query plans.",
                "Take it out; use option passwordFile or the environment variable"
                f" {PASSWORD_VARIABLE}.",
                option="connectionString",
            )
        name = _CONNECTION_KEYS.get(key.lower())
        if name and merged.setdefault(name.lower(), value) != value:
            raise BadOption(
                f"option 'connectionString' says {key}={value}, but option {name!r} says otherwise.",
                "Keep one of them.",
                option="connectionString",
            )
    return merged


def _extra(connection_string: str) -> str:
    return ";".join(
        f"{key}={value}"
        for key, value in _pieces(connection_string)
        if key.lower() not in _CONNECTION_KEYS
    )


def password_from(options: ConnectionOptions, environment: Mapping[str, str]) -> str:
    """Return the password: of its option, of the file, or of the environment."""
    if options.password:
        return options.password
    if options.password_file:
        return _password_in(Path(options.password_file))
    if password := environment.get(PASSWORD_VARIABLE, ""):
        return password
    raise BadOption(
        "no password is given.",
        f"Set option passwordFile, or password, or the environment variable {PASSWORD_VARIABLE}.",
        option="password",
    )


def _password_in(path: Path) -> str:
    what = ""
    try:
        if password := path.read_text(encoding="utf-8").strip():
            return password
        what = "is empty"
    except OSError as reason:
        what = f"cannot be read: {reason.strerror}"
    except UnicodeDecodeError:  # it would carry the file's content
        what = "is not UTF-8 text"
    raise BadOption(f"option 'passwordFile': {path} {what}.", option="passwordFile")
