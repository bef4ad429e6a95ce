"""The parsed and checked options of the source, with properties derived from them.

Rule: `declared.py` declares the options and `checks.py` refuses combinations; this module has what
other rooms need.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, replace
from typing import Self

from informix_capture_client.choices import RowForm
from informix_capture_client.sql_names import NamePath, TableName, TablePattern
from informix_cdc.options.declared import CONNECTION, DECLARED, GROUPS, DeclaredOptions
from informix_cdc.options.declaring import flag_of, option_name, size_text
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
        values = read_options(given, environment, is_stream=is_stream)
        return cls(**{name: GROUPS[name](**fields) for name, fields in values.items()})

    def without_secrets(self) -> Self:
        """Return the same options for executors, which open no connection to the server.

        They contain neither the password nor its location, nor the location of the client certificate's
        key.
        """
        connection = replace(
            self.connection,
            password="",
            password_file="",
            password_command="",
            connection_string="",
            tls_ca_file="",
            tls_certificate_file="",
        )
        return replace(self, connection=connection, shared=replace(self.shared, reader_file=""))

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
        columns = replace(
            self.columns,
            chosen=tuple(path for path in self.columns.chosen if _is_of(path, names)),
            masks=tuple(entry for entry in self.columns.masks if _is_of(entry.path, names)),
        )
        listed = tuple(str(name).partition(":")[2] for name in names)
        return replace(self, tables=replace(self.tables, listed=listed), columns=columns)

    def without_tables(self, released: Collection[str]) -> Self:
        """Return the same options without some of the tables, which are given as owner.table."""
        names = self.table_names()
        gone = [name for name in names if str(name).partition(":")[2] in released]
        left = [name for name in names if name not in gone]
        pairs = zip(self.snapshots.tables, self.snapshot_choice(), strict=False)
        only_gone = {text for text, each in pairs if matching(each, gone) and not matching(each, left)}
        chosen = tuple(text for text in self.snapshots.tables if text not in only_gone)
        return replace(self.of_tables(left), snapshots=replace(self.snapshots, tables=chosen))

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

    def row_form(self) -> RowForm:
        """Return the form of a delivered row."""
        return self.rows.form(self.connection.server)

    @property
    def discovers_tables(self) -> bool:
        """Whether patterns are resolved again while a query runs, whose columns cannot change."""
        return bool(self.table_choice().patterns) and self.row_form().has_fixed_schema

    def batch_limits(self) -> BatchLimits:
        """Return the limits of a micro-batch."""
        return BatchLimits(
            self.batches.max_rows_per_trigger or None,
            self.batches.max_bytes_per_trigger or None,
            until_truncate=self.rows.truncate == "fail",
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
    for group, declared in DECLARED:
        name, value = option_name(declared), getattr(getattr(options, group), declared.name)
        if name not in _PRINTED or value == declared.default:
            continue
        if name == "user" and value == options.connection.dialect.owner:
            continue
        given += (flag_of(name), str(value))
    return tuple(given)


def option_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, default, description) of every option, for the manual and for help texts."""
    for _, declared in DECLARED:
        default = "required" if declared.default is MISSING else _shown(declared.default)
        yield option_name(declared), default, str(declared.metadata["doc"])


def _shown(default: object) -> str:
    """Return a default as a user would write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return size_text(default)
    return "" if default in (None, ()) else str(default)
