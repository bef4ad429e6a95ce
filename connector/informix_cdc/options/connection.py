"""The options that say where to connect, as whom, and which tables to look at.

Rule: declared here once, inherited by all options of the source (`source.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from informix_capture_client.dialects import DIALECTS, INFORMIX, Dialect
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, TablePattern
from informix_capture_client.transport import (
    NO_ENCRYPTION,
    PASSWORD,
    TLS,
    TRUSTED,
    ConnectionSettings,
    addresses,
)
from informix_cdc.options.authentication import PASSWORD_VARIABLE
from informix_cdc.options.connection_string import for_the_driver
from informix_cdc.options.declaring import (
    flag,
    host_name,
    locale,
    names,
    one_of,
    option,
    whole_number,
)
from informix_cdc.options.transports import AUTO, transport_name


class TableChoice(NamedTuple):
    """What option `table` names, matches, and leaves out."""

    names: tuple[TableName, ...]
    patterns: tuple[TablePattern, ...]
    excluded: tuple[TableName | TablePattern, ...]


def table_choice(tables: tuple[str, ...], exclude: tuple[str, ...], database: str) -> TableChoice:
    """Read the options `table` and `tableExclude`: what is in double quotes is a name, not a pattern.

    Raises:
        BadOption: one of them is neither name nor pattern, or stands there twice.
    """
    read = [name_or_pattern(text, database) for text in tables]
    names = tuple(each for each in read if isinstance(each, TableName))
    patterns = tuple(each for each in read if isinstance(each, TablePattern))
    if len(set(names)) != len(names):
        raise BadOption("option 'table' names a table twice.", option="table")
    excluded = tuple(name_or_pattern(text, database) for text in exclude)
    if excluded and not patterns:
        raise BadOption(
            "option 'tableExclude' leaves out what patterns of option table match, and there is none.",
            "Write a pattern such as informix.ord*, or leave tableExclude out.",
            option="tableExclude",
        )
    return TableChoice(names, patterns, excluded)


def name_or_pattern(text: str, database: str) -> TableName | TablePattern:
    """Read one of them; a `*` outside of double quotes makes it a pattern.

    Raises:
        BadOption: it is neither.
    """
    if "*" in text and '"' not in text:
        return TablePattern.parse(text, database)
    return TableName.parse(text, database)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """Where to connect, as whom, and which tables to look at."""

    host: str = option(
        "Host name or IP address of the Informix server; with transport=sqli also a list, such as"
        " db1:9088,db2:9088, tried in its order.",
        host_name,
    )
    port: int = option("TCP port of the server's SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = option("Name of the Informix server (its DBSERVERNAME).")
    database: str = option("Database to capture; it must be logged.")
    tables: tuple[str, ...] = option(
        "Tables to capture: owner.table, or several separated by commas; * in a name stands for any"
        " characters, such as informix.ord*, and is looked up when a query starts (see"
        " discoverySeconds).",
        names,
        name="table",
    )
    table_exclude: tuple[str, ...] = option(
        "Tables to leave out of what patterns of option table match: names or patterns, separated by"
        " commas.",
        names,
        default=(),
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
    authentication: str = option(
        "How the server knows the user: password, or trusted (no password: the server trusts this host,"
        " and the user is that of the operating system).",
        one_of(PASSWORD, TRUSTED),
        default=PASSWORD,
    )
    password: str = option(
        "Password of the user; passwordFile, passwordCommand and the environment variable"
        f" {PASSWORD_VARIABLE} keep it out of programs and plans. Refused over Spark Connect.",
        default="",
        secret=True,
    )
    password_file: str = option(
        "File that holds the user's password, read whenever a connection opens; under Spark, a path on"
        " the driver.",
        default="",
    )
    password_command: str = option(
        "Command that prints the user's password, run without a shell whenever a connection opens;"
        " under Spark, on the driver.",
        default="",
    )
    allow_password_option: bool = option(
        "Whether option password is taken over Spark Connect, although its event log and UI show it.",
        flag,
        default=False,
    )
    encryption: str = option(
        "How the connection is kept from being read on its way: tls (the port is of a listener with"
        " protocol onsocssl), or none.",
        one_of(TLS, NO_ENCRYPTION),
        default=NO_ENCRYPTION,
    )
    tls_ca_file: str = option(
        "PEM file of the authorities whose certificates are trusted, for encryption=tls with"
        " transport=sqli; default: the system's. Under Spark, a path on the driver, like the next two.",
        default="",
    )
    tls_certificate_file: str = option(
        "PEM file of the certificate that this client shows a server that asks for one.", default=""
    )
    tls_key_file: str = option(
        "PEM file of that certificate's key, without a passphrase; default: it is in the same file.",
        default="",
    )
    transport: str = option(
        "How to connect: odbc (Informix's ODBC driver, of a client kit), sqli (Informix's own"
        " protocol, without a driver), or auto: odbc where a driver is found, else sqli.",
        transport_name,
        default=AUTO,
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
        "Additional keywords for the ODBC driver, KEY=value;KEY=value; a secret in it is refused.",
        default="",
    )

    @property
    def dialect(self) -> Dialect:
        """Which product the server is, with all that this decides."""
        return DIALECTS[self.dialect_name]

    def addresses(self) -> list[tuple[str, int]]:
        """Return the hosts and ports to try, in their order."""
        return addresses(self.host, self.port)

    @property
    def address(self) -> str:
        """Where the server is, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses())

    def table_choice(self) -> TableChoice:
        """Return what option table names and matches."""
        return table_choice(self.tables, self.table_exclude, self.database)

    def table_names(self) -> tuple[TableName, ...]:
        """Return the tables that are named one by one."""
        return self.table_choice().names

    def of_tables(self, names: Iterable[TableName]) -> Self:
        """Return the same options with these tables, named one by one."""
        shown = tuple(str(name).partition(":")[2] for name in names)
        return replace(self, tables=shown, table_exclude=())

    def connection(self, database: str, db_locale: str = "") -> ConnectionSettings:
        """Return where to connect for one of the server's databases, without the password.

        Who opens a connection fetches that, at that moment: `fetch_password`.
        """
        return ConnectionSettings(
            host=self.host,
            port=self.port,
            server=self.server,
            database=database,
            user=self.user,
            password="",
            driver=self.driver,
            db_locale=db_locale,
            client_locale=self.client_locale,
            extra=for_the_driver(self.connection_string),
            dialect=self.dialect,
            encryption=self.encryption,
            authentication=self.authentication,
            tls_ca_file=self.tls_ca_file,
            tls_certificate_file=self.tls_certificate_file,
            tls_key_file=self.tls_key_file,
        )
