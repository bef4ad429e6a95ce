"""Every option of the source, declared once: name, type, default, meaning and secrecy.

Rule: parsing, validation, the README's table and `--help` derive from this declaration. Spark hands
option names over in lower case; an unknown one is refused with the nearest name that exists.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

from informix_cdc.capture_client.catalog import TableName
from informix_cdc.capture_client.decode_rules import DecodeRules
from informix_cdc.capture_client.delivery import Delivery
from informix_cdc.capture_client.errors import BadOption
from informix_cdc.capture_client.identifiers import Path as NamePath
from informix_cdc.capture_client.include_list import ColumnChoice, parse_names
from informix_cdc.capture_client.transport import ConnectionSettings
from informix_cdc.connector.option_readers import (
    flag,
    floating_decimal,
    names,
    one_of,
    starting_position,
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


def _option(
    doc: str,
    read: Callable[[str], Any] = str,
    *,
    default: Any = MISSING,  # noqa: ANN401 - a default is of its option's own type
    name: str = "",
    secret: bool = False,
) -> Any:  # noqa: ANN401 - dataclasses.field is typed the same way
    metadata = {"doc": doc, "read": read, "name": name}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a user may set; each field is an option of the same name in camel case."""

    host: str = _option("Host name or address of the server.")
    port: int = _option("Port of its SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = _option("The server's name (DBSERVERNAME).")
    database: str = _option("The database to capture; it must be logged.")
    tables: tuple[str, ...] = _option("owner.table, or several with commas.", names, name="table")
    user: str = _option("Who connects; the guide demands informix.", default="informix")
    password: str = _option(
        f"Its password; also from passwordFile or the environment variable {PASSWORD_VARIABLE}.",
        default="",
        secret=True,
    )
    password_file: str = _option(
        "A file that holds the password; with Spark, on the driver.", default=""
    )
    transport: str = _option(
        "odbc, or emulator for the embedded one.", one_of("odbc", "emulator"), default="odbc"
    )
    driver: str = _option(
        "Path of the ODBC driver library; else libthcli.so or iclit09b.so under INFORMIXDIR.",
        default="",
    )
    starting_position: str = _option(
        "Where a new stream begins: latest, earliest (oldest log), or a sequence number (`log:0xpos`).",
        starting_position,
        default="latest",
    )
    read_timeout_seconds: int = _option(
        "How long the server waits for data before it says that there is none; a stop waits as long.",
        whole_number(1, 60),
        default=1,
    )
    max_records_per_read: int = _option(
        "Upper limit of records in one read; servers take 1 to 256.", whole_number(1, 256), default=256
    )
    read_buffer_bytes: int = _option(
        "Size of the read buffer.", whole_number(128, 1 << 30), default=256 * 1024
    )
    spool_path: str = _option(
        "Folder that keeps captured rows until Spark has committed them; else a private one.",
        default="",
    )
    db_locale: str = _option("Locale of the database; else asked of the server.", default="")
    client_locale: str = _option("Locale of the connection.", default="en_us.utf8")
    connection_string: str = _option(
        "More keywords for the driver, KEY=value;KEY=value; never a password.", default=""
    )
    truncate: str = _option(
        "What TRUNCATE does: fail the query, emit a row, or ignore (counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    floating_decimal: str | int = _option(
        "What DECIMAL(p) without a scale becomes: string (exact), double, or decimal(38,n).",
        floating_decimal,
        default="string",
    )
    intervals: str = _option(
        "typed (months as INT, else INTERVAL DAY TO SECOND), or string as Informix prints them.",
        one_of("typed", "string"),
        default="typed",
    )
    trailing_blanks: str = _option(
        "cut or keep those of CHAR and NCHAR.", one_of("cut", "keep"), default="cut"
    )
    bad_characters: str = _option(
        "What bytes do that are not valid in the database's code set: fail, or replace by U+FFFD.",
        one_of("fail", "replace"),
        default="fail",
    )

    columns: tuple[NamePath, ...] = _option(
        "Include list: names of columns, with several tables as table.column, with commas; odd names in"
        " double quotes.",
        parse_names,
        default=(),
    )
    unsupported_columns: str = _option(
        "What TEXT, BYTE, collections, ROW and user-defined types do: fail, or omit the column.",
        one_of("fail", "omit"),
        default="fail",
    )
    lobs: str = _option(
        "BLOB and CLOB: handle (its 76 bytes as BINARY), or omit the column.",
        one_of("handle", "omit"),
        default="handle",
    )
    shape: str = _option(
        "Form of a row: rows, envelope (Debezium's before/after/op/source), or raw (one row per CDC"
        " record).",
        one_of("rows", "envelope", "raw"),
        default="rows",
    )
    before_image: bool = _option(
        "Whether an update also gives its update_preimage row.", flag, default=True
    )

    @classmethod
    def parse(
        cls, given: Mapping[str, str], environment: Mapping[str, str] = os.environ
    ) -> SourceOptions:
        """Build the options from Spark's map of strings.

        Raises:
            BadOption: an option is unknown, missing or malformed; the message names it.
        """
        lowered = {key.lower(): value for key, value in given.items()}
        _refuse_unknown(lowered)
        merged = _with_connection_string(lowered)
        values: dict[str, Any] = {f.name: _read(f, merged) for f in fields(cls)}
        options = cls(**values)
        options.table_names()
        return _with_password(options, environment)

    def without_secrets(self) -> SourceOptions:
        """Return the same options without the password, for a journey to the executors."""
        return replace(self, password="")

    def table_names(self) -> tuple[TableName, ...]:
        """Return the captured tables."""
        names = tuple(TableName.parse(text, self.database) for text in self.tables)
        if len(set(names)) != len(names):
            raise BadOption("option 'table' names a table twice.", option="table")
        return names

    def column_choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.columns,
            unsupported=cast("Any", self.unsupported_columns),
            lobs=cast("Any", self.lobs),
        )

    def decode_rules(self, codec: str) -> DecodeRules:
        """Return what columns become where there is a choice."""
        return DecodeRules(
            codec=codec,
            keep_blanks=self.trailing_blanks == "keep",
            bad_characters=cast("Any", self.bad_characters),
            floating_decimal=cast("Any", self.floating_decimal),
            intervals=cast("Any", self.intervals),
        )

    def delivery(self) -> Delivery:
        """Return how changes are delivered."""
        return Delivery(
            shape=cast("Any", self.shape),
            truncate=cast("Any", self.truncate),
            before_image=self.before_image,
            server=self.server,
        )

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
        )


def option_name(declared: Field[Any]) -> str:
    """Return the name under which users set a field."""
    first, *rest = declared.name.split("_")
    return str(declared.metadata["name"]) or first + "".join(part.capitalize() for part in rest)


def option_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, default, meaning) of every option, for the README and for help texts."""
    for declared in fields(SourceOptions):
        default = "required" if declared.default is MISSING else _shown(declared.default)
        yield option_name(declared), default, str(declared.metadata["doc"])


def _shown(default: object) -> str:
    """Return a default as a user would write it."""
    return str(default).lower() if isinstance(default, bool) else str(default or "")


def _refuse_unknown(given: Mapping[str, str]) -> None:
    names = {option_name(declared).lower(): option_name(declared) for declared in fields(SourceOptions)}
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
            raise BadOption(
                f"option {key!r} is not known.", f"Did you mean {names[near[0]]!r}?", option=key
            )


def _read(declared: Field[Any], given: Mapping[str, str]) -> object:
    name = option_name(declared)
    text = given.get(name.lower())
    if not text:
        if declared.default is MISSING:
            raise BadOption(f"option {name!r} is missing.", declared.metadata["doc"], option=name)
        return declared.default
    try:
        return declared.metadata["read"](text)
    except ValueError as reason:
        raise BadOption(f"option {name!r} {reason}, not {text!r}.", option=name) from None


def _pieces(connection_string: str) -> list[tuple[str, str]]:
    pieces = [piece for piece in connection_string.split(";") if piece.strip()]
    return [(key.strip(), value) for key, _, value in (piece.partition("=") for piece in pieces)]


def _with_connection_string(given: dict[str, str]) -> dict[str, str]:
    """Let a connection string stand in for the options that it names."""
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


def _with_password(options: SourceOptions, environment: Mapping[str, str]) -> SourceOptions:
    if options.password:
        return options
    if options.password_file:
        return replace(options, password=_password_in(Path(options.password_file)))
    if password := environment.get(PASSWORD_VARIABLE, ""):
        return replace(options, password=password)
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
