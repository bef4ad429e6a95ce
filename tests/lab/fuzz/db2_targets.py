"""Doors of Db2's formats: bytes of files and messages, and declarations of tables."""

from __future__ import annotations

from collections.abc import Callable

from db2 import test_logical_log as lldf
from db2 import test_q_messages as messages
from db2.log_writer import LogWriter
from db2.logical_log_writer import FIELDS, rdw, xhdf
from db2.message_writer import Written, by_hand
from db2.page_examples import AS_PRINTED, HEX
from informix_db2 import (
    Decoder,
    LogicalLogSettings,
    LogSettings,
    QMessageSettings,
    log_records_decoder,
    logical_log_decoder,
    q_messages_decoder,
    recognised,
)
from informix_db2.declared_tables import parse_columns


def _decode(*decoders: Callable[[], Decoder]) -> Callable[[bytes], None]:
    """Return a target that decodes in each way; bad bytes come as rows, and as our error."""

    def take(data: bytes) -> None:
        for make in decoders:
            decoder = make()
            for rows in (*decoder.rows([data, data[::2]], ["a", "b"]), *decoder.finish()):
                rows.batch.validate(full=True)

    return take


_LOG = LogWriter(fixed=9)
_RECORDS = b"".join(
    [
        *(_LOG.out_of_row(), _LOG.lob(64, 1, b"v"), _LOG.row(162, b"\5\0\0\0\t\0\1\0\0x")),
        *(
            _LOG.update(b"a" * 9, b"b" * 9),
            _LOG.commit(),
            _LOG.row(161, b"c"),
            _LOG.lob(66, 65535, b"d", 2),
        ),
    ]
)
_COLUMNS = {"4.5": "a INT NOT NULL, b VARCHAR(9)"}
_SEGMENTS = rdw(*lldf.segments(lldf.emp(42, "Ed"), [7, 0]), lldf.BODIES_OF_EMP)

MESSAGES = (AS_PRINTED["V10"], HEX["V11"], by_hand(Written("update", ["a", 1], ["b", None])))
LOGS = (_RECORDS,)
LOGICAL = (_SEGMENTS, lldf.FRAMED["bdw does not"], lldf.FRAMED["rdw"])
DECLARATIONS = (b"id INTEGER NOT NULL, name VARCHAR(20)", b'"a b" CHAR(8) FOR BIT DATA, c DECIMAL(9,2)')
CONTROL = (rdw(*(xhdf(name, at, width) for name, (at, width) in FIELDS.items())),)


def take_control(data: bytes) -> None:
    """Read a control file."""
    logical_log_decoder(None, LogicalLogSettings(control=data))


def take_declaration(data: bytes) -> None:
    """Read the columns of a table."""
    parse_columns(data.decode("utf-8", "replace"), "T")


take_messages = _decode(
    lambda: q_messages_decoder(None, QMessageSettings(), bad="row"),
    lambda: q_messages_decoder({"TEST.T": messages.T}, QMessageSettings(), shape="envelope", bad="row"),
    lambda: q_messages_decoder(None, QMessageSettings(encoding="utf-16-be"), bad="row"),
)
take_logs = _decode(
    lambda: log_records_decoder(None, LogSettings(), bad="row"),
    lambda: log_records_decoder(_COLUMNS, LogSettings(across_values=True), bad="row"),
    lambda: log_records_decoder(_COLUMNS, LogSettings(container="filter"), bad="row"),
)
take_logical_logs = _decode(
    lambda: logical_log_decoder(None, LogicalLogSettings(), bad="row"),
    lambda: logical_log_decoder(lldf.EMP, LogicalLogSettings(rolled_back="rows"), bad="row"),
    lambda: logical_log_decoder(None, LogicalLogSettings(framing="bdw_rdw"), bad="row"),
)
take_any = recognised
