"""Create the decoder of each format from the user's options.

Rule: all options are checked here, before decoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pyarrow as pa

from informix_capture_client.errors import BadOption
from informix_db2.declared_tables import DeclaredTable, parse_tables
from informix_db2.decoding import Decoder
from informix_db2.log_records import MORE as MORE_OF_RECORDS
from informix_db2.log_records import UNDECLARED as ROW_OF_RECORDS
from informix_db2.log_records import LogReader, LogSettings
from informix_db2.logical_log import MORE as MORE_OF_LOGICAL
from informix_db2.logical_log import UNDECLARED as ROW_OF_LOGICAL
from informix_db2.logical_log import LogicalLogReader, LogicalLogSettings
from informix_db2.q_messages import (
    MORE,
    UNDECLARED,
    MessageReader,
    QMessageSettings,
    TranscodedReader,
)
from informix_db2.shapes import SHAPES, Delivery, ShapeName


def q_messages_decoder(
    tables: Mapping[str, str] | None,
    settings: QMessageSettings,
    *,
    shape: str = "rows",
    bad: str = "fail",
) -> Decoder:
    """Return the decoder of delimited messages.

    Raises:
        BadOption: an option is not valid, or a declaration cannot be parsed.
    """
    declared = parse_tables(tables or {})
    delivery = _delivery(declared, UNDECLARED, MORE, shape, bad, "db2-q-messages")
    reader = MessageReader(settings, declared)
    if settings.is_cut_as_text:
        return Decoder(TranscodedReader(reader, settings.code_page), delivery, settings.max_value_bytes)
    return Decoder(reader, delivery, settings.max_value_bytes)


def log_records_decoder(
    tables: Mapping[str, str] | None, settings: LogSettings, *, shape: str = "rows", bad: str = "fail"
) -> Decoder:
    """Return the decoder of log records.

    Raises:
        BadOption: an option is not valid, or a declaration cannot be parsed.
        UnsupportedColumn: a type has an undocumented layout in the log.
    """
    declared = parse_tables(tables or {})
    delivery = _delivery(declared, ROW_OF_RECORDS, MORE_OF_RECORDS, shape, bad, "db2-log-records")
    return Decoder(LogReader(settings, declared), delivery, settings.max_value_bytes)


def logical_log_decoder(
    tables: Mapping[str, str] | None,
    settings: LogicalLogSettings,
    *,
    shape: str = "rows",
    bad: str = "fail",
) -> Decoder:
    """Return the decoder of logical log data files.

    Raises:
        BadOption: an option is not valid, or a declaration or the control file cannot be parsed.
        UnsupportedColumn: values of a type are not in the row, or have an undocumented layout.
    """
    declared = parse_tables(tables or {})
    delivery = _delivery(declared, ROW_OF_LOGICAL, MORE_OF_LOGICAL, shape, bad, "db2-logical-log")
    return Decoder(LogicalLogReader(settings, declared), delivery, settings.max_value_bytes)


def _delivery(
    tables: tuple[DeclaredTable, ...],
    undeclared: pa.DataType,
    more: dict[str, pa.DataType],
    shape: str,
    bad: str,
    connector: str,
) -> Delivery:
    is_bad_row = _one_of("bad", bad, ("fail", "row")) == "row"
    form = cast("ShapeName", _one_of("shape", shape, SHAPES))
    return Delivery(tables, undeclared, more, form, is_bad_row, connector)


def _one_of(option: str, given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        raise BadOption(f"{option} is {given!r}.", f"Use {' or '.join(known)}.")
    return given
