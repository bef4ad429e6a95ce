"""The options of the source, read and checked, with what follows from them.

Rule: `declared.py` has the options, `checks.py` what is refused; here is what other rooms ask of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Self

from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm
from informix_capture_client.dialects import DIALECTS, Dialect
from informix_capture_client.sql_names import TableName, TablePattern
from informix_capture_client.transport import ConnectionSettings, addresses
from informix_cdc.options.declared import CONNECTION, DeclaredOptions
from informix_cdc.options.declaring import flag_of, option_name, size_text
from informix_cdc.options.parsing import read_options
from informix_cdc.options.table_options import (
    TableChoice,
    heartbeat_table,
    snapshot_choice,
    snapshot_key_names,
    table_choice,
)
from informix_checkpoints.limits import BatchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(DeclaredOptions):
    """What a user has set, and what follows from it."""

    @classmethod
    def parse(
        cls,
        given: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        *,
        is_stream: bool = True,
    ) -> Self:
        """Build the options from Spark's map of strings.

        Args:
            given: texts by the names of options, in any case.
            environment: variables that may hold the password, or forbid an option.
            is_stream: whether a stream is to run with them. A command that runs none delivers no
                rows, and needs no spool for them.

        Raises:
            BadOption: an option is unknown, missing or malformed; the message names it.
        """
        return cls(**read_options(given, environment, is_stream=is_stream))

    def without_secrets(self) -> Self:
        """Return the same options for executors, which open no connection to the server.

        Neither the password travels there nor a word of where it is, nor of where the key of the
        client's certificate is.
        """
        return replace(
            self,
            password="",
            password_file="",
            password_command="",
            connection_string="",
            tls_ca_file="",
            tls_certificate_file="",
            tls_key_file="",
        )

    # where to connect

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
            extra=self.connection_string,
            dialect=self.dialect,
            encryption=self.encryption,
            authentication=self.authentication,
            tls_ca_file=self.tls_ca_file,
            tls_certificate_file=self.tls_certificate_file,
            tls_key_file=self.tls_key_file,
        )

    # which tables

    def table_choice(self) -> TableChoice:
        """Return what option table names and matches."""
        return table_choice(self)

    def table_names(self) -> tuple[TableName, ...]:
        """Return the tables that are named one by one."""
        return self.table_choice().names

    def of_tables(self, names: Iterable[TableName]) -> Self:
        """Return the same options with these tables, named one by one."""
        shown = tuple(str(name).partition(":")[2] for name in names)
        return replace(self, tables=shown, table_exclude=())

    def heartbeat(self) -> TableName | None:
        """Return the table whose changes only move the stream."""
        return heartbeat_table(self)

    def snapshot_choice(self) -> tuple[TableName | TablePattern, ...]:
        """Return the names and patterns of option initialSnapshot; without those for all."""
        return snapshot_choice(self)

    def snapshot_key_names(self) -> Mapping[TableName, tuple[str, ...]]:
        """Return the key that option snapshotKey names for a table."""
        return snapshot_key_names(self)

    # what is read, and what rows become

    def column_choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.columns,
            unsupported=self.unsupported_columns,
            lobs=self.lobs,
            simple_lobs=self.simple_lobs,
        )

    @property
    def reads_objects(self) -> bool:
        """Whether smart large objects are read."""
        return self.lobs in ("content", "reselect")

    @property
    def reads_contents(self) -> bool:
        """Whether any large objects are read."""
        return self.reads_objects or self.simple_lobs == "reselect"

    def decode_rules(self, codec: str) -> DecodeRules:
        """Return what columns become where there is a choice."""
        return DecodeRules(
            codec=codec,
            keep_blanks=self.trailing_blanks == "keep",
            bad_characters=self.bad_characters,
            floating_decimal=self.floating_decimal,
            intervals=self.intervals,
            lobs="handle" if self.lobs == "omit" else self.lobs,
        )

    def row_form(self) -> RowForm:
        """Return the form of a delivered row."""
        return RowForm(
            shape=self.shape,
            truncate=self.truncate,
            before_image=self.before_image,
            server=self.server,
            metadata=self.metadata,
        )

    # how rows are delivered

    @property
    def has_flight_server(self) -> bool:
        """Whether rows may go by Flight: it is the only way, or its address was named."""
        return self.deliver_by == "flight" or (self.deliver_by == "auto" and self.flight_host != "")

    @property
    def bounds_restart(self) -> bool:
        """Whether the server's list of open transactions bounds the restart position."""
        return self.restart_bound == "server"

    def batch_limits(self) -> BatchLimits:
        """Return the most that a micro-batch takes."""
        return BatchLimits(
            self.max_rows_per_trigger or None,
            self.max_bytes_per_trigger or None,
            self.max_transactions_per_trigger or None,
        )


# A command that fetches a password may have one written into it. Tables are arguments of their own.
_PRINTED = {*CONNECTION, "database"} - {"passwordCommand"}


def connection_arguments(options: SourceOptions) -> tuple[str, ...]:
    """Return flags that name the server, the database and how to connect; defaults are left out.

    For commands that are printed: no secret is among them. The command asks for a password by itself.
    """
    given: list[str] = []
    for declared in fields(SourceOptions):
        name, value = option_name(declared), getattr(options, declared.name)
        if name not in _PRINTED or value == declared.default:
            continue
        if name == "user" and value == options.dialect.owner:
            continue
        given += (flag_of(name), str(value))
    return tuple(given)


def option_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, default, meaning) of every option, for the manual and for help texts."""
    for declared in fields(SourceOptions):
        default = "required" if declared.default is MISSING else _shown(declared.default)
        yield option_name(declared), default, str(declared.metadata["doc"])


def _shown(default: object) -> str:
    """Return a default as a user would write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return size_text(default)
    return "" if default in (None, ()) else str(default)
