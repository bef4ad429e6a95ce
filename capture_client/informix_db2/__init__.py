"""Three formats of Db2 that other software writes, to rows as changes of Informix have.

Rule: bytes and values in, values out; of everything else of ours only errors are known here, and
nothing else of ours knows this. Layouts are those of the vendors' pages, which each file names;
docs/db2.md says what is assumed beyond them.

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
