"""The public functions: from a DataFrame with a binary column to one of changes.

Rule: every option is checked here, on the driver, before Spark plans anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame

from informix_capture_client.errors import BadOption
from informix_cdc.db2.decoding import decoded, in_one_order
from informix_db2 import (
    LogicalLogSettings,
    LogSettings,
    QMessageSettings,
    log_records_decoder,
    logical_log_decoder,
    q_messages_decoder,
)

# Spark's schema of `binaryFile`, which a stream over a folder must specify.
FILES = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"

T = TypeVar("T")


def q_messages(
    frame: DataFrame,
    column: str = "value",
    *,
    tables: Mapping[str, str] | None = None,
    shape: str = "rows",
    bad: str = "fail",
    keep: Sequence[str] = (),
    **settings: object,
) -> DataFrame:
    r"""Decode delimited messages of Q Replication's event publishing.

    Args:
        frame: a batch or a stream.
        column: the column with messages, or with files of them.
        tables: columns of each table: {"OWNER.TABLE": "id INTEGER, name VARCHAR(20)"}; without it,
            fields are delivered as strings.
        shape: rows or envelope.
        bad: fail, or row: invalid bytes are returned as rows with `_bad` and `_error`.
        keep: columns of the frame to add to each row.
        **settings: column_delimiter, record_delimiter, string_delimiter, decimal_point, encoding,
            source_encoding, source_graphic_encoding, other_tables, max_value_bytes.

    Raises:
        BadOption: an option is invalid.
        UnsupportedColumn: a declared type is not supported.
    """
    found = _settings(QMessageSettings, settings)
    make = partial(q_messages_decoder, tables, found, shape=shape, bad=bad)
    return decoded(frame, column, make, keep)


def log_records(
    frame: DataFrame,
    column: str = "content",
    *,
    tables: Mapping[str, str] | None = None,
    shape: str = "rows",
    bad: str = "fail",
    keep: Sequence[str] = (),
    **settings: object,
) -> DataFrame:
    """Decode log records of Db2 for Linux, UNIX and Windows, as returned by db2ReadLog.

    Args:
        frame: a batch; or a stream, if each value has whole transactions.
        column: the column with log records.
        tables: as for `q_messages`; `ids` has the numbers of each.
        shape: rows or envelope.
        bad: fail or row.
        keep: columns of the frame to add to each row.
        **settings: byte_order, container, ids, encoding, graphic_encoding, other_tables,
            across_values, max_value_bytes, max_transaction_bytes, max_open_bytes.

    Raises:
        BadOption: an option is invalid.
        UnsupportedColumn: a declared type is not supported.
    """
    found = _settings(LogSettings, settings)
    make = partial(log_records_decoder, tables, found, shape=shape, bad=bad)
    return decoded(in_one_order(frame) if found.is_one_log else frame, column, make, keep)


def logical_log(
    frame: DataFrame,
    column: str = "content",
    *,
    tables: Mapping[str, str] | None = None,
    shape: str = "rows",
    bad: str = "fail",
    keep: Sequence[str] = (),
    **settings: object,
) -> DataFrame:
    """Decode logical log data files of Log Master for Db2 on z/OS.

    Args:
        frame: a batch or a stream.
        column: the column with files, or with one record each.
        tables: as for `q_messages`.
        shape: rows or envelope.
        bad: fail or row.
        keep: columns of the frame to add to each row.
        **settings: framing, image_length, header_encoding, encoding, graphic_encoding, float_format,
            expanded, control, ids, other_tables, rolled_back, max_value_bytes.

    Raises:
        BadOption: an option is invalid.
        UnsupportedColumn: a declared type is not supported.
    """
    found = _settings(LogicalLogSettings, settings)
    make = partial(logical_log_decoder, tables, found, shape=shape, bad=bad)
    return decoded(frame, column, make, keep)


def _settings(kind: type[T], given: dict[str, object]) -> T:
    known = getattr(kind, "__dataclass_fields__", {})
    for name in given:
        if name not in known:
            raise BadOption(f"{name} is not an option here.", f"The options are {', '.join(known)}.")
    return kind(**given)
