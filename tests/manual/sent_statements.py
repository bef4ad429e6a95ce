"""Every statement that the product sends a server, and when: the list for an audit.

Rule: the texts are those of the code; a statement without a line here is an error, and so is a line
without a statement. `test_sent_statements.py` compares both with what a server receives.
"""

from __future__ import annotations

from collections.abc import Iterator

from informix_capture_client import statements

_START = "at each start of a stream, and of each new session"
_TABLES = "at `load()` and each start, for up to 100 tables at once: `IN (?, ?, ...)`"
_SNAPSHOT = "at the start of a stream with a snapshot, for up to 100 tables at once"
_BY_KEY = "by a connection that selects rows with large objects by their keys"
_CHUNK = "while a snapshot runs: before or after each chunk"
_WATCHED = "every 15 s while a stream runs"

WHEN = {
    "OPEN_SESSION": _START,
    "SET_FULL_ROW_LOGGING": "first start of a stream, or of a table in it; `tail`, `record`, `acquire`"
    " (1); `release` (0)",
    "START_CAPTURE": f"{_START}, for each table",
    "ACTIVATE_SESSION": _START,
    "DEACTIVATE_SESSION": "never in a stream; by programs that use the client themselves",
    "END_CAPTURE": "when a session is closed, for each table",
    "CLOSE_SESSION": "when a session is closed",
    "RECORD_BOUNDARY": "never in a stream; by programs that use the client themselves",
    "ERROR_TEXT": "when a CDC call fails; `doctor`",
    "API_VERSION": f"{_START}; `doctor`",
    "RECORD_TYPES": _START,
    "ERROR_CODES": _START,
    "SESSIONS": "`status`, `doctor`, `release`",
    "SESSION_TABLES": "`status`, `doctor`, `release`",
    "LO_READ": "without pause while a stream runs; each waits up to a second for data",
    "SERVER_NAME": "at `load()` and each start; `status`, `doctor`",
    "SERVER_CLOCK": f"{_WATCHED}; {_CHUNK}, until the marker is written",
    "CURRENT_LOG": f"{_WATCHED}; at each start; {_CHUNK}",
    "OLDEST_LOG": f"{_WATCHED}; at each start",
    "LOG_FILES": f"{_WATCHED}; at each start",
    "LOG_FILL_TIMES": f"{_WATCHED}; at each start",
    "BASE_PAGE_BYTES": f"{_WATCHED}; at each start",
    "SERVER_VERSION": "at each start; `doctor`",
    "HA_ROLE": "at each start; `doctor`",
    "PARAMETER": "`doctor`: LOGFILES, LTXHWM and the like",
    "OPEN_TRANSACTIONS": "at each start; every 2 s while commits come, between two queries for the"
    f" log's end; `acquire`; {_CHUNK}; {_BY_KEY}, once a batch",
    "DATABASE_LOGGING": "at `load()` and each start",
    "DATABASE_LOCALE": "at `load()` and each start",
    "TABLE": _TABLES,
    "DATABASES": "when the database is not there, to name those that are",
    "CAPTURABLE_TABLES": "where option `table` has a pattern, at `load()` and each start; with"
    " `shape=json` or `arrow` also once a minute",
    "TABLES": "when a table is not there, to name what may be meant",
    "COLUMNS": _TABLES,
    "PRIMARY_KEY": "`doctor`, for up to 100 tables at once",
    "CONSTRAINTS": _SNAPSHOT,
    "UNIQUE_INDEXES": _SNAPSHOT,
    "DISABLED": _SNAPSHOT,
    "COLUMN_NUMBERS": _SNAPSHOT,
    "ROW_LOCKS": _SNAPSHOT,
    "IGNORES_CASE": "at the start of a stream with a snapshot",
    "LAST_COMMITTED": "by each connection that reads a table for its snapshot, when it has connected;"
    f" {_BY_KEY}, once a batch at most",
    "NO_IMPLICIT_LAST_COMMITTED": f"{_BY_KEY}, before the first",
    "SHORT_LOCK_WAIT": f"{_BY_KEY}, before the first",
    "COMMITTED_READ": f"{_BY_KEY}, while a transaction that changed them is open",
    "LOCK_WAIT": "by both connections of a table under snapshot, when they have connected",
    "BEGIN_WORK": "`snapshotWithoutKey=lock` alone: before the table is locked",
    "COMMIT_WORK": "`snapshotWithoutKey=lock` alone: when the table has been read; in an ANSI database"
    " behind the marker too",
    "MAKE_MARKER": "behind a chunk of a snapshot, touches nothing of"
    " yours; `doctor`, where a snapshot is asked for",
    "DROP_MARKER": "right after it was made",
    "LOCK_HOLDERS": "when others have locked rows of a snapshot for an hour; `cutover`",
    "CDC_USER_TYPE": "`doctor`",
    "FRAGMENTS": "as often as `sysptnhdr` is asked, for up to 100 fragmented tables at once",
    "PARTITION_CREATED": "at a start in the past; `alter`; for up to 100 tables at once",
    "PARTITION_VERSIONS": "`doctor`, for up to 100 tables at once",
    "PARTITION_SERIALS": "`cutover`, for up to 100 tables (or fragments) at once",
    "ALL_PARTITION_FLAGS": "`status --row-logging`",
    "PARTITION_NAMES": "`status --row-logging`, for up to 100 tables (or fragments) at once",
    "TABLE_SIZES": "`size`, for up to 100 tables at once",
    "PARTITION_COUNTERS": "`size`, twice, for up to 100 tables (or fragments) at once",
    "PARTITION_FLAGS": f"{_WATCHED}, for up to 100 tables (or fragments) at once; at each start",
}

# What is made of the names of a table and its columns: how it begins, the whole, when it is sent.
OF_A_TABLE = (
    (
        "SELECT /*+ AVOID_FULL(t) */ FIRST ",
        "SELECT /*+ AVOID_FULL(t) */ FIRST n (the columns) FROM (the table) t WHERE (behind a key)"
        " ORDER BY (the key)",
        "while a snapshot runs: once for each chunk",
    ),
    (
        "SELECT LENGTH(",
        "SELECT LENGTH(a TEXT or BYTE), (itself) FROM (the table) WHERE (the key)",
        "`simpleLobs=reselect` alone: for each value of a row that was inserted or changed, twice if it"
        " has more than 8 KiB; with `lobs=reselect` a BLOB or CLOB is selected so, without LENGTH",
    ),
    (
        "SELECT ",
        "SELECT (the columns) FROM (the table) WHERE 1 = 0",
        "at the start of a stream with a snapshot: whether the table may be read; with"
        " `snapshotWithoutKey=lock` without a condition, to read it",
    ),
    (
        "LOCK TABLE ",
        "LOCK TABLE (the table) IN SHARE MODE",
        "`snapshotWithoutKey=lock` alone: its writers wait until the table has been read",
    ),
    (
        "UPDATE ",
        "UPDATE (heartbeatTable) SET (its first column) = (itself)",
        "where `heartbeatTable` is set: behind a chunk of a snapshot",
    ),
)


def texts() -> dict[str, str]:
    """Return the statements by the names that the code gives them, in its order.

    Raises:
        ValueError: a statement is not listed, or is no longer there.
    """
    others = {"CDC_DATABASE", "SYSTEM_DATABASE"}
    found = {name: text for name, text in vars(statements).items() if name.isupper()}
    declared = {name: text for name, text in found.items() if name not in others}
    if declared.keys() != WHEN.keys():
        raise ValueError(f"listed or declared, not both: {declared.keys() ^ WHEN.keys()}")
    return declared


def statement_lines() -> Iterator[str]:
    """Yield the table of statements."""
    yield "| statement | sent |"
    yield "|---|---|"
    for name, text in texts().items():
        yield f"| `{text}` | {WHEN[name]} |"
    for _, text, when in OF_A_TABLE:
        yield f"| `{text}` | {when} |"
