"""Read all tables of a mirror as they were at one commit of Informix.

Rule: a batch of a mirror has whole transactions, so the tables at its end are a state that Informix
had. The latest such end at or before the requested commit is read, with the versions stored in the
control table `_informix_cdc_batches`. VACUUM removes the files of old versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from informix_capture_client.errors import BadOption
from informix_capture_client.positions import parse, show
from informix_cdc.lake.control_tables import BATCHES, MIRRORED, TABLES
from informix_cdc.lake.definitions import quoted
from informix_cdc.lake.places import Lake
from informix_cdc.lake.settings import DELTA, ICEBERG, MirrorSettings
from informix_cdc.lake.spark_tables import NO_SNAPSHOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    settings = MirrorSettings.of(
        into=into,
        checkpoint="-",
        format=DELTA if "/" in into else ICEBERG,
        storage_options=dict(storage_options or {}),
    )
    lake = Lake(settings, "", spark)
    if not all(lake.target(name).is_there() for name in (BATCHES, TABLES)):
        raise BadOption(
            f"there is no mirror in {into}.", "Use the value of into that was passed to mirror."
        )
    batches, tables = _of_newest_query(*(lake.target(name).rows() for name in (BATCHES, TABLES)))
    column, wanted = _place(at)
    ends = batches.filter(pc.less_equal(batches.column(column), wanted)).sort_by(
        [("commit", "ascending"), ("batch", "ascending")]
    )
    if not len(ends):
        first = pc.min(batches.column("commit")).as_py()
        raise BadOption(
            f"no batch of the mirror ends at or before {at}.",
            f"The first one ends at {show(first)}." if first is not None else "It has no batch yet.",
        )
    last = ends.slice(len(ends) - 1).to_pylist()[0]
    versions = {
        each["target"]: each["version"] for row in ends.column("versions").to_pylist() for each in row
    }
    missing = _missing(tables, last)
    there = {name: version for name, version in versions.items() if name not in missing}
    return TablesAsOf(last["commit"], last["commit_timestamp"], missing, spark, settings, there)


def _of_newest_query(batches: pa.Table, tables: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of the latest query: a mirror that was started anew has another id."""
    newest = batches.sort_by([("commit_timestamp", "descending")]).column("query")[0]
    return (
        batches.filter(pc.equal(batches.column("query"), newest)),
        tables.filter(pc.equal(tables.column("query"), newest)),
    )


def _place(at: int | str | datetime) -> tuple[str, Any]:
    if isinstance(at, date) and not isinstance(at, datetime):
        raise BadOption(f"{at} is a date, not a time.", "Use a datetime.")
    if isinstance(at, datetime):
        return "commit_timestamp", pa.scalar(at.astimezone(), pa.timestamp("us", "UTC"))
    return "commit", parse(at) if isinstance(at, str) else at


def _missing(tables: pa.Table, last: Mapping[str, Any]) -> dict[str, str]:
    """Return the targets that are not a copy at the end of a batch."""
    found: dict[str, str] = {}
    rows = [row for row in tables.to_pylist() if row["batch"] <= last["batch"]]
    for row in sorted(rows, key=lambda row: row["batch"]):
        found[row["target"]] = {
            MIRRORED: "its snapshot was not finished" if row["table"] in last["loading"] else ""
        }.get(row["status"], f"it had {row['status']}: {row['reason']}".rstrip(": "))
    return {name: why for name, why in found.items() if why}


def _delta_rows(
    spark: SparkSession, place: str, version: int, storage_options: Mapping[str, str]
) -> DataFrame:
    """Return the rows of a version of a Delta table, with or without Delta Lake in the session.

    Without it, the Parquet files of that version are read; a table that needs reader features, such as
    deletion vectors, is refused.

    Raises:
        BadOption: the table needs Delta Lake.
    """
    from pyspark.sql.types import StructType

    table = DeltaTable(place, version, dict(storage_options))
    needs = set(table.protocol().reader_features or []) - {"timestampNtz"}
    if needs:
        raise BadOption(
            f"the table {place} requires a reader with {', '.join(sorted(needs))}.",
            f"Read it with Delta Lake: option versionAsOf {version}.",
        )
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    files = table.file_uris()
    return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
