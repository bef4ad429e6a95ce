"""The numbers of the capture protocol: record types, error codes, packet scheme.

Tables only. Numbers come from public sources. The guide says that error numbers may differ between
releases, so clients look them up by name in `syscdcerrcodes`.
"""

from __future__ import annotations

PACKET_SCHEME = 66  # CDC guide, table 4-2: the only scheme
NAME_LENGTH = 16  # CDC guide, tables 4-1 and 4-3: VARCHAR(16), longer names are stored cut

BEGINTX, COMMTX, RBTX = 1, 2, 3
INSERT, DELETE, UPDBEF, UPDAFT = 40, 41, 42, 43
DISCARD, TRUNCATE = 62, 119
TABSCHEMA, TIMEOUT, ERROR = 200, 201, 202

RECORD_TYPES = {
    BEGINTX: ("CDC_REC_BEGINTX", "a transaction begins"),
    COMMTX: ("CDC_REC_COMMTX", "a transaction is committed"),
    RBTX: ("CDC_REC_RBTX", "a transaction is rolled back"),
    INSERT: ("CDC_REC_INSERT", "an inserted row"),
    DELETE: ("CDC_REC_DELETE", "a deleted row"),
    UPDBEF: ("CDC_REC_UPDBEF", "a row before its update"),
    UPDAFT: ("CDC_REC_UPDAFT", "a row after its update"),
    DISCARD: ("CDC_REC_DISCARD", "part of a transaction is undone"),
    TRUNCATE: ("CDC_REC_TRUNCATE", "a table is emptied"),
    TABSCHEMA: ("CDC_REC_TABSCHEMA", "the columns of a captured table"),
    TIMEOUT: ("CDC_REC_TIMEOUT", "no data in time"),
    ERROR: ("CDC_REC_ERROR", "the session met an error"),
}

OTHER = 0  # in the log, not on the wire: a finished record that is none of the guide's

SESSION_IS_DEAD = 0x1  # flag of an ERROR record: only cdc_closesess is left (CDC guide, table 3-6)

# 0 to -83715 are published numbers. Those from -83716 on are ours, chosen so that the ARG family is
# in line with -83724, which a server returned for a bad fourth argument; the order is the guide's.
ERRORS = {
    "CDC_E_OK": (0, "The operation was successful."),
    "CDC_E_NOCDCDB": (-83701, "There is no syscdcv1 database on this server."),
    "CDC_E_APIVERS": (-83702, "This version of the capture API is not supported."),
    "CDC_E_NODB": (-83703, "There is no database of that name."),
    "CDC_E_DBNOTLOGGED": (-83704, "The database was created without logging."),
    "CDC_E_NOTAB": (-83705, "There is no table of that name."),
    "CDC_E_TABPROPERTIES": (-83706, "A table with these properties cannot be captured."),
    "CDC_E_NOCOL": (-83707, "The table has no column of that name."),
    "CDC_E_NOSES": (-83708, "There is no capture session of that number."),
    "CDC_E_NOREOPEN": (-83709, "This capture session can not be opened again."),
    "CDC_E_TABCAPTURED": (-83710, "The session captures this table already."),
    "CDC_E_TABNOTCAPTURED": (-83711, "The session does not capture this table."),
    "CDC_E_ARGNULL": (-83712, "NULL was given where a value is needed."),
    "CDC_E_LSN": (-83713, "The logical log no longer holds that position."),
    "CDC_E_DIRECTION": (-83714, "The direction differs from that of the open session."),
    "CDC_E_DUPLSESS": (-83715, "This connection has a capture session already."),
    "CDC_E_ARG": (-83720, "An argument is out of range."),
    "CDC_E_ARG1": (-83721, "Argument 1 is out of range."),
    "CDC_E_ARG2": (-83722, "Argument 2 is out of range."),
    "CDC_E_ARG3": (-83723, "Argument 3 is out of range."),
    "CDC_E_ARG4": (-83724, "Argument 4 is out of range."),
    "CDC_E_ARG5": (-83725, "Argument 5 is out of range."),
    "CDC_E_ARG6": (-83726, "Argument 6 is out of range."),
    "CDC_E_INTERNAL": (-83727, "The capture code of the server failed."),
    "CDC_E_NOMEM": (-83728, "The server is short of memory."),
    "CDC_E_MUSTCLOSE": (-83729, "The session met a fatal error: close it."),
    "CDC_E_BADSTATE": (-83730, "The session is not in a state that allows this."),
    "CDC_E_BADCHAR": (-83731, "The bytes are no character of the code set."),
    "CDC_E_INTERRUPT": (-83732, "The capture session was ended from outside."),
    "CDC_E_UNIMPL": (-83733, "This is not implemented."),
    "CDC_E_LOCALEMISMATCH": (-83734, "DB_LOCALE differs from the locale of the database."),
}


# "table has pending in-place alter" (InfoSphere CDC for Informix), not in the guide
PENDING_ALTER = -83793


def error_code(name: str) -> int:
    """Return the number that stands for a symbolic error name."""
    return ERRORS[name][0]
