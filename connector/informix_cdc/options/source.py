"""The parsed and checked options of the source, with properties derived from them.

Rule: `declared.py` declares the options and `checks.py` refuses combinations; this module has what
other rooms need.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Self

from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm
from informix_capture_client.dialects import DIALECTS, Dialect
from informix_capture_client.sql_names import NamePath, TableName, TablePattern
from informix_capture_client.transport import ConnectionSettings, addresses
from informix_cdc.options.declared import CONNECTION, DeclaredOptions
from informix_cdc.options.declaring import flag_of, option_name, size_text
from informix_cdc.options.mask_keys import mask_key
from informix_cdc.options.parsing import read_options
from informix_cdc.options.table_options import (
    TableChoice,
    heartbeat_table,
    matching,
    snapshot_choice,
    snapshot_conditions_by_table,
    snapshot_key_names,
    table_choice,
)
from informix_checkpoints.limits import BatchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(DeclaredOptions):
    """The options that a user has set, with derived properties."""

    @classmethod
    def parse(
        cls,
        given: Mapping[str, str],
        environment: Mapping[str, str] = os.environ,
        *,
        is_stream: bool = True,
    ) -> Self:
        """Parse and check the options in Spark's map of strings.

        Args:
            given: texts by option name, in any case.
            environment: variables that may contain the password, or forbid an option.
            is_stream: whether the options are for a stream. Other commands deliver no rows and need no
                spool.

        Raises:
            BadOption: an option is unknown, missing or invalid; the message names it.
        """
        return cls(**read_options(given, environment, is_stream=is_stream))

    def without_secrets(self) -> Self:
        """Return the same options for executors, which open no connection to the server.

        They contain neither the password nor its location, nor the location of the client certificate's
        key.
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
            reader_file="",
        )

    # where to connect

    @property
    def dialect(self) -> Dialect:
        """The dialect of the server's product."""
        return DIALECTS[self.dialect_name]

    def addresses(self) -> list[tuple[str, int]]:
        """Return the hosts and ports to try, in order."""
        return addresses(self.host, self.port)

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses())

    def connection(self, database: str, db_locale: str = "") -> ConnectionSettings:
        """Return the connection settings for one of the server's databases, without the password.

        The password is fetched when the connection is opened: `fetch_password`.
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
        """Return the names and patterns of option `table`."""
        return table_choice(self)

    def table_names(self) -> tuple[TableName, ...]:
        """Return the tables that are listed by name."""
        return self.table_choice().names

    def of_tables(self, names: Iterable[TableName]) -> Self:
        """Return the same options with these tables, listed by name.

        `columns` and `mask` keep their entries for these tables; a name that fits no table is refused
        with the options as they were given.
        """
        names = tuple(names)
        return replace(
            self,
            tables=tuple(str(name).partition(":")[2] for name in names),
            table_exclude=(),
            columns=tuple(path for path in self.columns if _is_of(path, names)),
            masks=tuple(entry for entry in self.masks if _is_of(entry.path, names)),
        )

    def without_tables(self, released: Collection[str]) -> Self:
        """Return the same options without some of the tables, which are given as owner.table."""
        names = self.table_names()
        gone = [name for name in names if str(name).partition(":")[2] in released]
        left = [name for name in names if name not in gone]
        pairs = zip(self.initial_snapshot, self.snapshot_choice(), strict=False)
        only_gone = {text for text, each in pairs if matching(each, gone) and not matching(each, left)}
        chosen = tuple(text for text in self.initial_snapshot if text not in only_gone)
        return replace(self.of_tables(left), initial_snapshot=chosen)

    def heartbeat(self) -> TableName | None:
        """Return the heartbeat table, whose changes only advance the stream."""
        return heartbeat_table(self)

    def snapshot_choice(self) -> tuple[TableName | TablePattern, ...]:
        """Return the names and patterns of option initialSnapshot; an empty tuple means all."""
        return snapshot_choice(self)

    def snapshot_key_names(self) -> Mapping[TableName, tuple[str, ...]]:
        """Return the keys set with option snapshotKey, by table."""
        return snapshot_key_names(self)

    def snapshot_conditions(self) -> Mapping[TableName, str]:
        """Return the conditions of option snapshotWhere, by table."""
        return snapshot_conditions_by_table(self)

    # columns and the form of rows

    def column_choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.columns,
            unsupported=self.unsupported_columns,
            lobs=self.lobs,
            simple_lobs=self.simple_lobs,
            masks=self.masks,
            mask_key=mask_key(self.mask_key_file) if self.mask_key_file else None,
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
        """Return the conversion rules for types with a choice."""
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
            table_events=self.table_events,
        )

    # delivery of rows

    @property
    def has_flight_server(self) -> bool:
        """Whether rows can be delivered by Flight: it is the only way, or its address is set."""
        return self.deliver_by == "flight" or (self.deliver_by == "auto" and self.flight_host != "")

    @property
    def bounds_restart(self) -> bool:
        """Whether the server's list of open transactions limits the restart position."""
        return self.restart_bound == "server"

    def batch_limits(self) -> BatchLimits:
        """Return the limits of a micro-batch."""
        return BatchLimits(
            self.max_rows_per_trigger or None,
            self.max_bytes_per_trigger or None,
            self.max_transactions_per_trigger or None,
            until_truncate=self.truncate == "fail",
        )


def _is_of(path: NamePath, names: Iterable[TableName]) -> bool:
    """Return whether a column's path may belong to one of the tables."""
    *qualifiers, _ = path
    return not qualifiers or any(
        [name.owner, name.table][-len(qualifiers) :] == qualifiers for name in names
    )


# A password command may contain a password. Tables are separate arguments.
_PRINTED = {*CONNECTION, "database"} - {"passwordCommand"}


def connection_arguments(options: SourceOptions) -> tuple[str, ...]:
    """Return flags that name the server, the database and the connection; defaults are omitted.

    They are for printed commands and contain no secret; the command obtains the password by itself.
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
    """Yield (name, default, description) of every option, for the manual and for help texts."""
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
