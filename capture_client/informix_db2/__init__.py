"""Decode three Db2 formats written by other software into rows like those of Informix changes.

Rule: bytes and values in, values out. This package uses only the errors of this project, and no other
package depends on it. Layouts follow the vendors' pages that each file names; docs/db2.md lists further
assumptions.

    q_messages/     delimited messages of Q Replication's event publishing
    log_records/    log records of Db2 for Linux, UNIX and Windows, with large objects
    logical_log/    logical log data files of BMC's Log Master for Db2 on z/OS
"""

from __future__ import annotations

from informix_db2.decoding import DecodedRows, Decoder
from informix_db2.entry_points import (
    log_records_decoder,
    logical_log_decoder,
    q_messages_decoder,
)
from informix_db2.log_records import LogSettings
from informix_db2.logical_log import LogicalLogSettings
from informix_db2.q_messages import QMessageSettings
from informix_db2.recognition import recognised

__all__ = [
    "DecodedRows",
    "Decoder",
    "LogSettings",
    "LogicalLogSettings",
    "QMessageSettings",
    "log_records_decoder",
    "logical_log_decoder",
    "q_messages_decoder",
    "recognised",
]
