"""Settings of a mirror, and of single tables.

Rule: the same names in Python and in a TOML file; all errors are reported at once.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import string
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import TableName, read_paths
from informix_cdc.options import metrics_place
from informix_cdc.postgresql import Place

CURRENT, HISTORY, CHANGES = "current", "history", "changes"
HARD, SOFT = "hard", "soft"
ADD, FAIL = "add", "fail"
DELTA, ICEBERG, POSTGRESQL = "delta", "iceberg", "postgresql"
AUTO, EMBEDDED, SPARK = "auto", "embedded", "spark"
ON_WRITE, ON_READ = "on-write", "on-read"
ALL, OFF = "all", "off"
_MOST_WRITERS = 8  # unless set: a MERGE on write may take gigabytes
_DURATION = re.compile(r"(\d{1,9})\s+(week|day|hour|minute|second|millisecond)s?")
# Of Delta tables: for how long programs keep files that were removed, and entries of the log.
KEPT_FOR, LOG_KEPT_FOR = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_SET_BY_US = "informix-cdc.retain"  # what the mirror has set them to
MOST_TOMBSTONES = 1_000_000  # removed files that a log lists: its checkpoint has 60 MB
_CONTROL_RETAINED = timedelta(hours=1)
_LEAST_RETAINED = timedelta(minutes=1)
_LARGE_TABLE_ROWS = 1_000_000  # from which `auto` merges on read
_WORDS = {
    "keep": (CURRENT, HISTORY, CHANGES),
    "deletes": (HARD, SOFT),
    "schema_change": (ADD, FAIL),
    "format": (DELTA, ICEBERG, POSTGRESQL),
    "engine": (AUTO, EMBEDDED, SPARK),
    "merge": (AUTO, ON_WRITE, ON_READ),
    "maintain": (AUTO, ALL, OFF),
}
_IN_A_NAME = {"owner", "table"}
_MOST_THREADS = 64
CONTROL = "_informix_cdc_"  # prefix of control tables
# Names that Delta, Spark and people give to folders beside tables.
_RESERVED = ("_delta_log", "_spark_metadata", "checkpoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """Settings of one table; None: the same as for the mirror.

    Attributes:
        key: columns that identify a row, if the catalog has no key.
        keep: current, history or changes.
        deletes: hard or soft.
        merge: auto, on-write or on-read.
        name: of the target.
    """

    key: tuple[str, ...] = ()
    keep: str | None = None
    deletes: str | None = None
    merge: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """Settings of a mirror.

    Attributes:
        into: for Delta tables, the folder or URL that has a folder for each of them; for Iceberg
            tables, catalog.schema; for PostgreSQL, postgresql://user@host:port/database/schema.
        checkpoint: Spark's checkpoint of the query.
        keep: current: the current rows; history: every state; changes: every change, appended.
        deletes: for current tables: hard removes rows, soft keeps them with the time in _deleted_at.
        schema_change: add: columns are added and widened; fail: any change stops the table.
        table_name: name of targets, with {owner} and {table}.
        format: delta, iceberg or postgresql.
        engine: for Delta tables: embedded writes them in the driver's process, spark runs each MERGE in
            Spark with Delta Lake, auto only the large ones, if the session has Delta Lake.
        merge: how changes get into tables that are created, of current rows or of a history: on-write
            rewrites files, on-read marks rows as deleted and appends; auto: on-read for large tables.
        maintain: of Delta tables: auto compacts them and removes what no version of `retain` needs, but
            no data files of tables that other programs write, too; all: also those; off: neither.
        retain: for how long earlier versions of tables are kept, such as "7 days".
        parallelism: number of tables written at a time; 0: the number of processors, 2 to 8.
        metrics_address: HOST:PORT, or a port of 127.0.0.1, for Prometheus; empty: none.
        catalog: schema of a Spark catalog in which Delta tables are registered; empty: none.
        storage_options: of the object store, as in delta-rs; for PostgreSQL, parameters of libpq.
        tables: settings of single tables, by owner.table.
    """

    into: str
    checkpoint: str
    keep: str = CURRENT
    deletes: str = HARD
    schema_change: str = ADD
    format: str = DELTA
    engine: str = AUTO
    merge: str = AUTO
    maintain: str = AUTO
    retain: str = "7 days"
    table_name: str = "{table}"
    parallelism: int = 0
    metrics_address: str = ""
    catalog: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    tables: Mapping[str, TableSettings] = field(default_factory=dict)

    @classmethod
    def of(cls, /, **given: object) -> MirrorSettings:
        """Return the settings with these names and values.

        Raises:
            BadOption: lists every unknown, missing or invalid value.
        """
        problems = _unknown(given, cls, "the mirror") + _wrong(given, "the mirror")
        known = {name: value for name, value in given.items() if name in _names(cls)}
        of_tables = known.pop("tables", None) or {}
        for name in ("into", "checkpoint"):
            if not known.get(name):
                problems.append(f"{name} is missing.")
            elif not isinstance(known[name], str):
                problems.append(f"{name} must be a folder or a URL, not {known[name]!r}.")
        if isinstance(known.get("into"), str):
            problems += _wrong_place(str(known["into"]), str(known.get("format", DELTA)))
        problems += _wrong_catalog(known.get("catalog", ""), str(known.get("format", DELTA)))
        problems += overlapping(str(known.get("into", "")), str(known.get("checkpoint", "")))
        if not isinstance(of_tables, Mapping):
            problems.append("tables must have a table for each owner.table.")
            of_tables = {}
        tables = dict(_of_table(table, values, problems) for table, values in of_tables.items())
        problems += _not_of_postgresql(known, tables)
        if problems:
            what = "it" if len(problems) == 1 else "them"
            raise BadOption(" ".join(problems), f"Correct {what}; nothing was written.")
        return replace(cls(**known), tables=tables)  # type: ignore[arg-type]

    def retained(self, name: str = "") -> timedelta:
        """Return for how long earlier versions of a target are kept; shorter for control tables."""
        kept = duration(self.retain)
        return min(kept, _CONTROL_RETAINED) if name.startswith(CONTROL) else kept

    def spacing(self, files: float, name: str = "") -> float:
        """Return the seconds between commits that each remove some files, at the bound of a target."""
        return files * self.retained(name).total_seconds() / MOST_TOMBSTONES

    def properties_of(
        self, name: str, known: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """Return the properties of a target to be set, so that other programs keep what is kept here.

        A longer time is left as it is, unless an earlier `retain` has set it.

        Args:
            name: of the target.
            known: the properties that it has.

        Raises:
            ValueError: a property is no duration.
        """
        if self.maintain == OFF:
            return {}
        retain, ours = self.retained(name), known.get(_SET_BY_US)
        wanted = f"interval {round(retain.total_seconds())} seconds"
        found = {
            each: wanted
            for each in (KEPT_FOR, LOG_KEPT_FOR)
            if (there := known.get(each)) != wanted
            if there in (None, ours) or duration(there) < retain
        }
        return found | ({_SET_BY_US: wanted} if ours != wanted else {})

    @property
    def is_in_store(self) -> bool:
        """Whether the tables are in an object store."""
        return is_url(self.into)

    @property
    def threads(self) -> int:
        """The number of tables written at a time; writers of an object store mostly wait.

        A transaction of PostgreSQL has one connection, for which several threads would only wait.
        """
        if self.format == POSTGRESQL:
            return 1
        usual = _MOST_WRITERS if is_url(self.into) else min(max(os.cpu_count() or 2, 2), _MOST_WRITERS)
        return self.parallelism or usual

    @property
    def folder(self) -> Path:
        """The folder for what does not fit in memory, on a local disk."""
        place = self.checkpoint.removeprefix("file://")
        return Path(tempfile.gettempdir() if "://" in place else f"{place}/mirror/index")

    def of_table(self, table: str) -> TableSettings:
        """Return the settings of a table, given as owner.table."""
        special = self.tables.get(table, TableSettings())
        return replace(
            special,
            keep=special.keep or self.keep,
            deletes=special.deletes or self.deletes,
            merge=special.merge or self.merge,
        )

    def may_merge_on_read(self, table: str) -> bool:
        """Return whether a table is kept in a form that can be merged on read."""
        is_possible = self.format == ICEBERG or (self.format == DELTA and self.engine != SPARK)
        return self.of_table(table).keep != CHANGES and is_possible  # of Iceberg, Spark's MERGE does it

    def merges_on_read(self, table: str, rows: int) -> bool:
        """Return whether the target of a table is created to be merged on read.

        Args:
            table: as owner.table.
            rows: approximate number of its rows; 0 if unknown.
        """
        wanted = self.of_table(table).merge
        is_large = wanted == AUTO and rows >= _LARGE_TABLE_ROWS
        return self.may_merge_on_read(table) and (wanted == ON_READ or is_large)

    def name_of(self, table: str) -> str:
        """Return the name of a table's target."""
        (path,) = read_paths(table)
        name = self.of_table(table).name
        return name or self.table_name.format(owner=path[0], table=path[-1])

    def snapshot_keys(self) -> str:
        """Return the keys in the settings of tables, in the syntax of option snapshotKey."""
        named = {table: special.key for table, special in self.tables.items() if special.key}
        return ",".join(
            f"{table}({','.join(_as_written(column) for column in key)})"
            for table, key in named.items()
        )


def is_reserved(name: str) -> bool:
    """Return whether a target may not have a name, in any case: catalogs are not case-sensitive."""
    return name.lower() in _RESERVED or name.lower().startswith(CONTROL)


def _of_table(table: str, values: object, problems: list[str]) -> tuple[str, TableSettings]:
    """Return the settings of one table under its name in SQL syntax."""
    if not isinstance(values, Mapping):
        problems.append(f"{table} must have settings, such as keep.")
        return table, TableSettings()
    if values and all(isinstance(each, Mapping) for each in values.values()):
        name = f"{table}.{next(iter(values))}"  # TOML has parsed owner.table as two names
        problems.append(f'the name of a table must be quoted: [tables."{name}"].')
        return table, TableSettings()
    problems += _unknown(values, TableSettings, table) + _wrong(values, table)
    special = {name: value for name, value in values.items() if name in _names(TableSettings)}
    try:
        table = str(TableName.parse(table, "")).lstrip(":")
        special["key"] = _columns(special.get("key", ""))
    except (BadOption, ValueError) as reason:
        problems.append(f"{table}: {getattr(reason, 'message', reason)}")
    return table, TableSettings(**special)


def _names(kind: type[Any]) -> list[str]:
    return [declared.name for declared in fields(kind)]


def _unknown(given: Mapping[str, object], kind: type[Any], where: str) -> list[str]:
    found = []
    for name in given.keys() - set(_names(kind)):
        near = difflib.get_close_matches(name, _names(kind), 1)
        found.append(f"{where} has no {name!r}{f'; did you mean {near[0]}?' if near else '.'}")
    return sorted(found)


def _wrong(given: Mapping[str, object], where: str) -> list[str]:
    found = []
    for name, words in _WORDS.items():
        if given.get(name) is not None and given[name] not in words:
            found.append(f"{where}: {name} must be {' or '.join(words)}, not {given[name]!r}.")
    for name, (usual, is_right, wanted) in _RULES.items():
        value: object = given.get(name, usual)
        if not is_right(value):
            found.append(f"{where}: {name} must be {wanted}, not {value!r}.")
    template: object = given.get("table_name", "{table}")
    if not isinstance(template, str) or not _is_template(template):
        found.append(f"{where}: table_name must have {{table}}, and may have {{owner}}.")
    target: object = given.get("name", "x")
    if not isinstance(target, str) or not target or is_reserved(target):
        reserved = ", ".join(_RESERVED)
        found.append(f"{where}: name must not begin with {CONTROL}, or be one of {reserved}.")
    return found


def _is_template(text: str) -> bool:
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError:
        return False
    return "table" in found and found <= _IN_A_NAME


def duration(text: str) -> timedelta:
    """Return a duration as in a table property, such as `interval 1 week`.

    Raises:
        ValueError: it is none.
    """
    plain = text.strip().lower().removeprefix("interval").strip()
    parts = _DURATION.findall(plain)
    with contextlib.suppress(OverflowError):
        if parts and not _DURATION.sub("", plain).strip():
            return sum((timedelta(**{f"{unit}s": int(count)}) for count, unit in parts), timedelta())
    raise ValueError(f"{text!r} is not a duration such as 'interval 7 days'")


def _is_kept(given: object) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(given, str) and duration(given) >= _LEAST_RETAINED
    return False


def _is_address(given: object) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(given, str) and bool(metrics_place(given))
    return False


def _is_between(most: int) -> Callable[[object], bool]:
    return lambda given: isinstance(given, int) and 0 <= given <= most


_RULES: Mapping[str, tuple[object, Callable[[object], bool], str]] = {
    "parallelism": (1, _is_between(_MOST_THREADS), f"0 to {_MOST_THREADS}"),
    "metrics_address": ("9187", _is_address, "HOST:PORT or a port, such as '9187'"),
    "retain": ("1 day", _is_kept, "at least a minute, such as '7 days'"),
}


def is_url(place: str) -> bool:
    """Return whether a place is in an object store."""
    return "://" in place and not place.startswith("file://")


_NAME = r"(?:\w+|`(?:[^`\x00-\x1f\x7f]|``)+`)"  # as Spark SQL reads it
_SCHEMA = re.compile(rf"{_NAME}(?:\.{_NAME})?", re.ASCII)
# delta-rs 1.6.6 decodes paths twice, and takes brackets for an address of IPv6.
_NOT_OPENED = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]\\]")


def _wrong_place(into: str, format_: str) -> list[str]:
    """Return the problem of `into`, if there is one."""
    if format_ == POSTGRESQL:
        try:
            Place.of(into)
        except BadOption as reason:
            return [f"{reason.message} {reason.remedy}"]
        return []
    if "@" in into.partition("://")[2].partition("/")[0]:
        return ["into contains a user or a key: set it in storage_options or the environment."]
    return _wrong_folder(into) if format_ == DELTA else _wrong_schema(into)


def _wrong_folder(into: str) -> list[str]:
    if "/" not in into:
        return [
            f"into is {into!r}: for Delta tables it must be a folder or URL, such as"
            " /lake/stores; set catalog to register the tables in a schema of a catalog.",
        ]
    if found := _NOT_OPENED.search(into):
        return [
            f"into is {into!r}: delta-rs cannot open a folder with {found[0]} in its path.",
        ]
    return []


def _wrong_schema(into: str) -> list[str]:
    if "/" in into or len(into.split(".")) < 2:
        return [f"into is {into!r}: for Iceberg tables it must be catalog.schema, such as lake.stores."]
    return []


# What PostgreSQL has no need of, or does not keep, and the values that say nothing.
_NOT_OF_POSTGRESQL: Mapping[str, tuple[object, ...]] = {
    "keep": (None, CURRENT, CHANGES),
    "deletes": (None, HARD),
    "engine": (None, AUTO),
    "merge": (None, AUTO),
    "maintain": (None, AUTO),
    "parallelism": (None, 0),
    "catalog": (None, ""),
}


def _not_of_postgresql(mirror: Mapping[str, object], tables: Mapping[str, TableSettings]) -> list[str]:
    """Return the settings that tables of PostgreSQL do not have."""
    if mirror.get("format") != POSTGRESQL:
        return []
    given = {"the mirror": mirror}
    given |= {
        table: {n: getattr(each, n) for n in _names(TableSettings)} for table, each in tables.items()
    }
    return [
        f"{where}: {name} is {values[name]!r}, which tables of PostgreSQL do not have."
        for where, values in given.items()
        for name, known in _NOT_OF_POSTGRESQL.items()
        if name in values and values[name] not in known
    ]


def _wrong_catalog(catalog: object, format_: str) -> list[str]:
    """Return the problem of `catalog`, if there is one."""
    if not isinstance(catalog, str) or (catalog and not _SCHEMA.fullmatch(catalog)):
        return [
            f"catalog is {catalog!r}: it must be a schema, such as stores or main.stores, with names"
            " quoted as in Spark SQL.",
        ]
    if catalog and format_ == ICEBERG:
        return [f"catalog is {catalog!r}: for Iceberg tables, into is the schema; remove catalog."]
    return []


def overlapping(into: str, folder: str, name: str = "checkpoint") -> list[str]:
    """Return the problem if one of two folders lies in the other: VACUUM removes files of both."""
    if "/" not in into or "/" not in folder:
        return []
    places = [_absolute(each) for each in (into, folder)]
    lake, other = ([*PurePosixPath(place).parts] for place in places)
    if lake[: len(other)] != other and other[: len(lake)] != lake:
        return []
    return [f"{name} {folder} and into {into} lie in each other: use two folders side by side."]


def _absolute(place: str) -> str:
    plain = place.removeprefix("file://").replace("s3a://", "s3://")
    return plain if "://" in plain else str(Path(plain).expanduser().resolve())


def _columns(given: object) -> tuple[str, ...]:
    text = ",".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)
    return tuple(path[-1] for path in read_paths(text)) if text else ()


def _as_written(column: str) -> str:
    return column if column.isidentifier() else '"' + column.replace('"', '""') + '"'
