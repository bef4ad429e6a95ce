"""What users call: a DataFrame with a column of bytes becomes one of changes.

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

# Spark's schema of `binaryFile`, which a stream over a folder must be told.
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
        column: the column with messages, or files of them.
        tables: columns of each table: {"OWNER.TABLE": "id INTEGER, name VARCHAR(20)"}; without, fields
            are delivered as texts.
        shape: rows or envelope.
        bad: fail, or row: bad bytes come as rows with `_bad` and `_error`.
        keep: columns of the frame that go with each row.
        **settings: column_delimiter, record_delimiter, string_delimiter, decimal_point, encoding,
            source_encoding, source_graphic_encoding, other_tables, max_value_bytes.

    Raises:
        BadOption: an option is wrong.
        UnsupportedColumn: a declared type cannot be carried.
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
    """Decode log records of Db2 for Linux, UNIX and Windows, as db2ReadLog hands them out.

    Args:
        frame: a batch; or a stream, if each value holds whole transactions.
        column: the column with log records.
        tables: as for `q_messages`; `ids` names the numbers of each.
        shape: rows or envelope.
        bad: fail or row.
        keep: columns of the frame that go with each row.
        **settings: byte_order, container, ids, encoding, graphic_encoding, other_tables,
            across_values, max_value_bytes, max_transaction_bytes, max_open_bytes.

    Raises:
        BadOption: an option is wrong.
        UnsupportedColumn: a declared type cannot be carried.
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
        keep: columns of the frame that go with each row.
        **settings: framing, image_length, header_encoding, encoding, graphic_encoding, float_format,
            expanded, control, ids, other_tables, rolled_back, max_value_bytes.

    Raises:
        BadOption: an option is wrong.
        UnsupportedColumn: a declared type cannot be carried.
    """
    found = _settings(LogicalLogSettings, settings)
    make = partial(logical_log_decoder, tables, found, shape=shape, bad=bad)
    return decoded(frame, column, make, keep)


def _settings(kind: type[T], given: dict[str, object]) -> T:
    known = getattr(kind, "__dataclass_fields__", {})
    for name in given:
        if name not in known:
            raise BadOption(f"{name} is no option here.", f"There are {', '.join(known)}.")
    return kind(**given)
