"""Read all tables of a mirror as they were at one commit of Informix.

Rule: a batch of a mirror has whole transactions, so the tables at its end are a state that Informix
had. The latest such end at or before the requested commit is looked up in the control table
`_informix_cdc_batches`; of each table the newest version is read whose batches are not later, because
OPTIMIZE makes new versions with the same rows, and VACUUM removes the files of old ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import parse, show
from informix_cdc.lake.control_tables import MIRRORED, ControlTables, states_of
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.identity import number_of
from informix_cdc.lake.lakes import open_lake
from informix_cdc.lake.mirrored_table import Target
from informix_cdc.lake.settings import DELTA, ICEBERG, MirrorSettings, is_url
from informix_cdc.lake.spark_tables import NO_SNAPSHOT
from informix_cdc.lake.table_changes import INTERNAL
from informix_cdc.merge_on_read import TablePlace, files_at, rows_left

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class TablesAsOf(Mapping[str, "DataFrame"]):
    """The targets at one commit, as data frames by name.

    Attributes:
        commit: sequence number of the commit.
        committed_at: its time.
        missing: targets that are not a copy of Informix at that commit, with reasons.
    """

    commit: int
    committed_at: datetime | None
    missing: Mapping[str, str]
    _spark: SparkSession = field(repr=False)
    _settings: MirrorSettings = field(repr=False)
    _versions: Mapping[str, int] = field(repr=False)

    def __getitem__(self, name: str) -> DataFrame:
        """Return a target's rows."""
        into, version = self._settings.into, self._versions[name]
        if self._settings.format == ICEBERG:
            table = f"{into}.{quoted(name)}"
            if version == NO_SNAPSHOT:
                return self._spark.table(table).limit(0)
            return self._spark.read.option("versionAsOf", str(version)).table(table)
        place = f"{into.rstrip('/')}/{name}"
        return _delta_rows(self._spark, place, version, self._settings.storage_options)

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def as_of(
    spark: SparkSession,
    into: str,
    at: int | str | datetime,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> TablesAsOf:
    """Return the tables of a mirror as they were at one commit of Informix.

    Args:
        spark: the session.
        into: as passed to `mirror`.
        at: a commit, as in `_commit_version` or in the form `log:0xposition`, or a time (naive: in the
            time zone of this process): the last batch that ends at or before it is read.
        storage_options: of delta-rs, for object stores.

    Raises:
        BadOption: there is no mirror, or none of its batches ends at or before that.
    """
    _require_versions(into)
    settings = MirrorSettings.of(
        into=into,
        checkpoint="-",
        format=DELTA if "/" in into else ICEBERG,
        storage_options=dict(storage_options or {}),
    )
    mirrors = ControlTables("", open_lake(settings, "", spark).target).epochs()
    if not mirrors:
        raise BadOption(
            f"there is no mirror in {into}.", "Use the value of into that was passed to mirror."
        )
    identity = mirrors[-1].identity
    lake = open_lake(settings, identity.application, spark)
    control = ControlTables(identity.id, lake.target)
    ends = states_of(control.batches())
    place = _last_at(ends, at)
    last = ends[place]
    missing = _missing(control.records(), last)
    there: dict[str, int] = {}
    for name, (since, before) in _versions(ends, place).items():
        if name not in missing:
            found, why = _version(
                lake.target(name), number_of(last["epoch"], last["batch"]), since, before
            )
            if why:
                missing[name] = why
            else:
                there[name] = found
    return TablesAsOf(last["commit"], last["commit_timestamp"], missing, spark, settings, there)


def _require_versions(into: str) -> None:
    """Refuse tables of which there is only the present."""
    if into.startswith("postgres"):
        raise BadOption(
            "PostgreSQL keeps no earlier states.",
            "To see all tables at one commit, read them in one transaction with REPEATABLE READ;"
            " the commit is in _informix_cdc_position.",
        )


def _last_at(ends: list[dict[str, Any]], at: int | str | datetime) -> int:
    """Return the index of the last end at or before a commit or time.

    Raises:
        BadOption: there is none.
    """
    column, wanted = _place(at)
    known = [
        place
        for place, row in enumerate(ends)
        if row[column] is not None and row[column] <= wanted  # a batch may have no time
    ]
    if known:
        return known[-1]
    first = min((row["commit"] for row in ends), default=None)
    raise BadOption(
        f"no batch of the mirror ends at or before {at}.",
        f"The first one ends at {show(first)}." if first is not None else "It has no batch yet.",
    )


_Recorded = tuple[int, str]  # a version, and the id of the table


def _versions(ends: list[dict[str, Any]], last: int) -> dict[str, tuple[_Recorded, _Recorded | None]]:
    """Return for each target what it had at the end of a batch, and what the next one made of it."""
    found: dict[str, tuple[_Recorded, _Recorded | None]] = {}
    for place, row in enumerate(ends):
        for each in row["versions"]:
            name, recorded = each["target"], (each["version"], each["table_id"])
            if place <= last:
                found[name] = (recorded, None)
            elif name in found and found[name][1] is None:
                found[name] = (found[name][0], recorded)
    return found


def _version(
    target: Target, number: int, since: _Recorded, before: _Recorded | None
) -> tuple[int, str]:
    """Return the version of a target at the end of a batch, or why there is none."""
    version, table_id = since
    if not target.is_there():
        return 0, "it no longer exists"
    if target.table_id() != table_id:
        return 0, "it was made anew since"
    found = target.version_at(number, version, None if before is None else before[0])
    return (0, "its log was cleaned up") if found is None else (found, "")


def _place(at: int | str | datetime) -> tuple[str, Any]:
    if isinstance(at, date) and not isinstance(at, datetime):
        raise BadOption(f"{at} is a date, not a time.", "Use a datetime.")
    if isinstance(at, datetime):
        return "commit_timestamp", at.astimezone(UTC)
    return "commit", parse(at) if isinstance(at, str) else at


def _missing(records: list[dict[str, Any]], last: Mapping[str, Any]) -> dict[str, str]:
    """Return the targets that are not a copy at the end of a batch."""
    found: dict[str, str] = {}
    end = (last["epoch"], last["batch"])
    for row in (each for each in records if (each["epoch"], each["batch"]) <= end):
        found[row["target"]] = {
            MIRRORED: "its rows were still being read" if row["table"] in last["loading"] else ""
        }.get(row["status"], f"it had {row['status']}: {row['reason']}".rstrip(": "))
    return {name: why for name, why in found.items() if why}


# Features of readers; a table of ours has no column of type VARIANT.
_READ = {"timestampNtz", "deletionVectors", "variantType"}
_FILE, _ROW = f"{INTERNAL}file", f"{INTERNAL}row"


def _delta_rows(
    spark: SparkSession, place: str, version: int, storage_options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of a version of a Delta table, with or without Delta Lake in the session.

    Without it, the Parquet files of that version are read, without the rows that are deleted in them; a
    table that needs other reader features is refused.

    Raises:
        BadOption: the table needs Delta Lake.
    """
    from pyspark.sql.types import StructType

    table = DeltaTable(place, version, dict(storage_options))
    needs = set(table.protocol().reader_features or []) - _READ
    if needs:
        raise BadOption(
            f"the table {place} requires a reader with {', '.join(sorted(needs))}.",
            f"Read it with Delta Lake: option versionAsOf {version}.",
        )
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    found = list(files_at(TablePlace(place, storage_options), version))
    if not found:
        return spark.createDataFrame([], schema)
    if is_url(place):
        return _rows_of_store(spark, place, found, schema, storage_options)
    frame = spark.read.schema(schema).parquet(*(_plain(place, path) for path, _ in found))
    gone = pa.table(
        {
            _FILE: [unquote(path).rpartition("/")[2] for path, rows in found for _ in rows],
            _ROW: pa.array([row for _, rows in found for row in rows], pa.int64()),
        }
    )
    if not len(gone):
        return frame
    places = frame.selectExpr("*", f"_metadata.file_name {_FILE}", f"_metadata.row_index {_ROW}")
    return places.join(spark.createDataFrame(gone), [_FILE, _ROW], "left_anti").drop(_FILE, _ROW)


def _rows_of_store(
    spark: SparkSession,
    place: str,
    files: Sequence[tuple[str, Any]],
    schema: StructType,
    storage_options: Mapping[str, str],
) -> DataFrame:
    """Return the rows of files in an object store, read with its options in a task for each.

    Spark itself would need a file system of Hadoop's for the scheme, with credentials of its own.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    options, wanted = dict(storage_options), to_arrow_schema(schema)

    def rows_in(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = TablePlace(place, options)
        for each in (row for batch in batches for row in batch.to_pylist()):
            yield from rows_left(store, each["path"], each["gone"], wanted)

    listed = pa.table(
        {"path": [path for path, _ in files], "gone": [rows.serialize() for _, rows in files]}
    )
    return spark.createDataFrame(listed).repartition(len(files)).mapInArrow(rows_in, schema)


def _plain(place: str, path: str) -> str:
    """Return the path of a file as Spark takes it: not encoded, without meaning as a pattern."""
    whole = unquote(path) if "://" in path else f"{place.rstrip('/')}/{unquote(path)}"
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", whole)
