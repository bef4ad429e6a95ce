"""What is logged: every event with its name, level and keys, one line each.

Rule: nothing is logged that is not declared here, so that searches and alarms can
rely on names and keys. Values are counts, positions (`log:0xpos`), names of tables and files, and the
text of our own errors; never the value of a cell, never a secret. A line is logfmt:

    event=connection_lost stream=5c1f09ab2d7e4410 failures=2 reason="IFXCDC-0001: the server ..."
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

_BARE = re.compile(r'[^\s"=\\]+')


def logfmt(facts: Mapping[str, object]) -> str:
    r"""Return facts as `key=value`, quoted where that is needed; those that are None are left out.

    >>> logfmt({"event": "x", "paused": True, "why": 'said "no"', "upto": None})
    'event=x paused=true why="said \\"no\\""'
    """
    return " ".join(f"{key}={_shown(value)}" for key, value in facts.items() if value is not None)


def _shown(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())  # a line stays one line


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event that may be logged: a stable name, a level of `logging`, keys, and what it means."""

    name: str
    level: int
    keys: tuple[str, ...]
    meaning: str

    def log(self, logger: logging.Logger, **facts: object) -> None:
        """Log one line; `facts` has a value for each key, None where there is none.

        The record also carries them as its attributes `event` and `facts`, for handlers of their own.
        """
        if logger.isEnabledFor(self.level):
            given = {key: facts[key] for key in self.keys}
            line = logfmt({"event": self.name, **given})
            logger.log(self.level, "%s", line, extra={"event": self.name, "facts": given}, stacklevel=2)


_DEBUG, _INFO = logging.DEBUG, logging.INFO
_WARNING, _ERROR = logging.WARNING, logging.ERROR

STREAM_BEGUN = LogEvent(
    "stream_begun",
    _INFO,
    ("stream", "restart", "commit", "spool", "transport"),
    "a stream begins or resumes; `restart` and `commit` are the positions that it captures"
    " from, `spool` is the spool's folder, `transport` is how it connects",
)
TABLES_MATCHED = LogEvent(
    "tables_matched",
    _INFO,
    ("patterns", "count", "tables"),
    "what the patterns of option `table` match when a query starts; a table that is created later joins"
    " at the next start, or while the query runs if `discoverySeconds` is set",
)
TABLE_LEFT_OUT = LogEvent(
    "table_left_out",
    _WARNING,
    ("table", "reason"),
    "while the query runs, a table that matches a pattern of option `table` is not captured, or not any"
    " more: it cannot be, or was dropped. The other tables go on; it is checked again every"
    " `discoverySeconds`, and logged once for each `reason`",
)
DISCOVERY_FAILED = LogEvent(
    "discovery_failed",
    _WARNING,
    ("reason",),
    "the patterns of option `table` could not be looked up again; it is tried again after"
    " `discoverySeconds`, and logged once for each `reason`",
)
TABLE_JOINED = LogEvent(
    "table_joined",
    _INFO,
    ("stream", "table", "since"),
    "a table that option `table` names has joined a stream that had begun: changes that committed above"
    " `since` are delivered",
)
TABLE_LEFT = LogEvent(
    "table_left",
    _INFO,
    ("stream", "table", "left"),
    "a table that option `table` does not name any more has left the stream: what commits above `left`"
    " is not delivered; its full row logging stays on until `informix-cdc release`",
)
TABLE_CAME_BACK = LogEvent(
    "table_came_back",
    _WARNING,
    ("stream", "table", "left", "since"),
    "a table that had left the stream is in it again: what committed above `left` and up to `since` was"
    " not delivered. Empty the copy of the table and read its rows again with `initialSnapshot`",
)
ALTERED_ROWS_KEPT = LogEvent(
    "altered_rows_kept",
    _WARNING,
    ("stream", "table"),
    "an altered table is back in the stream, and the rows that it had are not read again: where the DDL"
    " gave them other values (ADD with a DEFAULT, MODIFY), a copy keeps the old ones. To read them"
    " again, let `initialSnapshot` name the table in the start that has `schemaChange`",
)
MIRROR_TABLE_STOPPED = LogEvent(
    "mirror_table_stopped",
    _ERROR,
    ("table", "target", "reason"),
    "a mirror cannot go on with this table, whose target stays as it is; all other tables go on",
)
SNAPSHOT_BEGUN = LogEvent(
    "snapshot_begun",
    _INFO,
    ("stream", "table", "key", "rows_estimated"),
    "the rows of a table that were there before are read, in the order of its `key`, or whole and"
    " locked where it has none; `rows_estimated` is what the table's statistics say",
)
SNAPSHOT_DONE = LogEvent(
    "snapshot_done",
    _INFO,
    ("stream", "table", "rows", "chunks", "dropped_rows", "seconds"),
    "all rows of a table that were there before are in the stream; `dropped_rows` were left out, since"
    " the stream has newer ones",
)
CONTENTS_WAIT = LogEvent(
    "contents_wait",
    _WARNING,
    ("seconds", "reason"),
    "a row whose large object is to be read by its key is locked; it is waited for until its writer"
    " ends, or until lobReadSeconds are over, and the stream waits with it",
)
SNAPSHOT_WAITS = LogEvent(
    "snapshot_waits",
    _WARNING,
    ("transactions", "ids"),
    "transactions that were open before the stream, or before the session, have not ended: no chunk of"
    " a snapshot is delivered before that, and of a new stream nothing",
)
SNAPSHOT_NOT_MADE = LogEvent(
    "snapshot_not_made",
    _WARNING,
    ("table",),
    "option initialSnapshot asks for a table that is in the stream already, without one; to get one,"
    " take the table out of option `table`, run the query once, empty the sink's copy of the table,"
    " and name it again",
)
SNAPSHOT_LOCKED = LogEvent(
    "snapshot_locked",
    _WARNING,
    ("table", "seconds", "reason"),
    "rows that a snapshot reads have been locked by others for `seconds`; it tries again until"
    " snapshotLockSeconds are over",
)
CHUNK_READ_AGAIN = LogEvent(
    "chunk_read_again",
    _INFO,
    ("stream", "table", "chunks", "most_rows"),
    "more keys of a table were changed while chunks of its snapshot waited than snapshotMaxTouchedKeys"
    " allows; they are read again, with at most `most_rows` rows each",
)
MARKER_REFUSED = LogEvent(
    "marker_refused",
    _WARNING,
    ("table", "reason"),
    "the marker was refused by which a snapshot sees that the stream has passed a chunk; if the user"
    " has no right to it, changes by others are waited for, else it is tried again",
)
SESSION_OPENED = LogEvent(
    "session_opened",
    _INFO,
    ("session", "position", "tables"),
    "a capture session is active; `position` is the sequence number from which it reads",
)
ROW_LOGGING_SWITCHED_ON = LogEvent(
    "row_logging_switched_on",
    _WARNING,
    ("table", "remedy"),
    "full row logging of a table was off and was switched on, as every capture needs it; it stays on"
    " when the stream ends, and the server refuses ALTER TABLE of it until `remedy` was"
    " run. `remedy` leaves out what a shell needs in quotes, with its flag: add it, and the table that"
    " `table` names",
)
CONNECTION_LOST = LogEvent(
    "connection_lost",
    _WARNING,
    ("stream", "failures", "reason"),
    "the connection to the server was lost, or a session ended there, and is opened again; `failures`"
    " counts failed attempts since the last progress",
)
PASSWORD_IN_CLEAR_TEXT = LogEvent(
    "password_in_clear_text",
    _WARNING,
    ("address",),
    "`transport=sqli` without TLS sent the password, and sends all data, so that whoever listens on the"
    " way to `address` reads it; told once for each server. Set encryption=tls",
)
LOSS_NOT_NOTED = LogEvent(
    "loss_not_noted",
    _WARNING,
    ("stream", "reason"),
    "a loss of data was reported, but the file that lets the next start remember it cannot be"
    " written: do not start this query again",
)
ROW_FORM_CHANGED = LogEvent(
    "row_form_changed",
    _WARNING,
    ("stream", "after", "former", "now"),
    "options that decide which rows a change becomes differ from those of the run before; rows of"
    " commits above `after` have the keys that the present ones give",
)
CAPTURE_FAILED = LogEvent(
    "capture_failed",
    _ERROR,
    ("stream", "code", "reason", "traceback"),
    "the capture ended with an error; the query ends once Spark has taken the rows captured before it;"
    " `traceback` is there for a bug: types of errors and lines of code, without the errors' own texts",
)
DATA_LOSS = LogEvent(
    "data_loss",
    _ERROR,
    ("stream", "after", "upto", "transactions_open", "reason"),
    "changes were lost and the stream goes on (failOnDataLoss=false): commits above `after`"
    " and up to `upto` may be missing, and so may the transactions open at `upto`",
)
BATCH_LOST = LogEvent(
    "batch_lost",
    _ERROR,
    ("stream", "after", "upto", "reason"),
    "a batch that Spark had planned cannot be read again and is left empty"
    " (failOnDataLoss=false); its commits lie above `after` and up to `upto`",
)
TRANSACTIONS_LEFT_OUT = LogEvent(
    "transactions_left_out",
    _WARNING,
    ("stream", "count", "reason"),
    "transactions were left out because they are incomplete; `count` is their number so"
    " far for this reason",
)
LOG_END_NOT_REACHED = LogEvent(
    "log_end_not_reached",
    _WARNING,
    ("stream", "reached", "log_end"),
    "a run of Trigger.AvailableNow ends although the server's log went on to `log_end` when it began:"
    " nothing beyond `reached` has come for 90 seconds. The server is late, hides transactions of"
    " other tables (option heartbeatTable), or cannot read its log on; the rest comes with a later run",
)
FORMER_ROWS_LEFT_OUT = LogEvent(
    "former_rows_left_out",
    _WARNING,
    ("table", "created", "begun", "commit"),
    "records under a table's label are left out: their transaction began (`begun`) no later than the"
    " table's partition was created (`created`, both in seconds since 1970), so that they are of the"
    " table that had its partition number before; told once for each table and connection",
)
STREAM_STALLED = LogEvent(
    "stream_stalled",
    _WARNING,
    ("stream", "reason"),
    "the stream reads TIMEOUT records only while the server's log moves on, and a new session"
    " did not help",
)
LOG_UNREADABLE = LogEvent(
    "log_unreadable",
    _ERROR,
    ("stream", "position", "current", "reason"),
    "the server's log cannot be read beyond `position`, by no session, while it has moved on to"
    " `current` and its next file can be read",
)
RESTART_POSITION_LATE = LogEvent(
    "restart_position_late",
    _WARNING,
    ("stream", "restart", "oldest", "held_by", "reason"),
    "the server will soon overwrite the stream's restart position; `oldest` is where the"
    " oldest log file begins, `held_by` the BEGINTX of the transaction that holds the position back",
)
MANY_TABLES = LogEvent(
    "many_tables",
    _WARNING,
    ("shape", "tables", "values", "microseconds"),
    "each row carries `values` values to Spark, NULL for all `tables` tables but its own, which takes"
    " about `microseconds` of CPU a row in Python, and what Spark takes for them; `shape=json` costs"
    " the same for any number of tables",
)
READING_PAUSED = LogEvent(
    "reading_paused",
    _WARNING,
    ("stream", "ahead_bytes", "limit_bytes"),
    "the log is not read until Spark has taken more rows: the spool holds `ahead_bytes` bytes"
    " that it has not taken, above the limit maxSpoolBytes (`limit_bytes`)",
)
READING_RESUMED = LogEvent(
    "reading_resumed",
    _WARNING,
    ("stream", "ahead_bytes", "limit_bytes"),
    "the log is read again after `reading_paused`; `ahead_bytes` bytes of the spool are not"
    " yet taken by Spark",
)
FILE_LIMIT_RAISED = LogEvent(
    "file_limit_raised",
    _INFO,
    ("before", "now"),
    "the query's process may open more files than its soft limit allowed: as many as its hard limit",
)
SPOOL_AWAITED = LogEvent(
    "spool_awaited",
    _WARNING,
    ("spool", "process", "most_seconds"),
    "another query writes the folder `spool`: this one waits until that has ended, at most so many"
    " seconds. `process` is the number of the other's process, where this host knows it; stop it, or"
    " set another spoolPath",
)
SPOOL_TAKEN_OVER = LogEvent(
    "spool_taken_over",
    _INFO,
    ("spool", "seconds"),
    "the query that wrote the folder `spool` has ended after `spool_awaited`, and this one goes on",
)
SPOOL_FOLDER_MADE_AGAIN = LogEvent(
    "spool_folder_made_again",
    _WARNING,
    ("stream", "spool"),
    "the private folder `spool` had been removed, as a cleaner of temporary files does, and was made"
    " again; no rows were lost. Set spoolPath to a folder that nobody cleans",
)
LOG_NOT_WATCHED = LogEvent(
    "log_not_watched",
    _WARNING,
    ("reason",),
    "the server did not answer a query for its log files; lag in bytes, headroom and stalls"
    " are unknown until it does",
)
RESTART_NOT_BOUNDED = LogEvent(
    "restart_not_bounded",
    _WARNING,
    ("reason",),
    "the server refused to list its open transactions (sysmaster:systrans), so the restart position"
    " stays where it is until the log there is overwritten. Grant the user SELECT on sysmaster:systrans"
    " and sysmaster:syslogs; or set restartBound=trust-stream if this server shows each BEGINTX at its"
    " place",
)
BEGIN_SHOWN_LATE = LogEvent(
    "begin_shown_late",
    _INFO,
    ("stream", "begin", "commit"),
    "the server showed the BEGINTX `begin` after the COMMTX `commit`: it shows a transaction only from"
    " its first captured change on. Nothing is lost; the restart position allows for it",
)
SESSION_ABANDONED = LogEvent(
    "session_abandoned",
    _WARNING,
    ("timeout_seconds",),
    "the server did not answer the closing of a capture session within `timeout_seconds`"
    " seconds; the session is left for the server to end",
)
CONNECTION_ABANDONED = LogEvent(
    "connection_abandoned",
    _WARNING,
    ("timeout_seconds",),
    "the ODBC driver did not return from closing a connection within `timeout_seconds` seconds; the"
    " stream goes on, and the connection is left to the driver until the process ends",
)
SESSION_CLOSE_REFUSED = LogEvent(
    "session_close_refused",
    _INFO,
    ("statement", "reason"),
    "a statement that closes a capture session failed; the session ends with its connection",
)
ERROR_TEXT_UNKNOWN = LogEvent(
    "error_text_unknown",
    _INFO,
    ("name", "reason"),
    "cdc_errortext failed for the error `name`; its description in syscdcerrcodes is used instead",
)
COPY_NOT_REMOVED = LogEvent(
    "copy_not_removed",
    _WARNING,
    ("file", "place", "reason"),
    "a copy of a spool segment could not be removed from segmentCopies; remove it by hand",
)
BATCH_DONE = LogEvent(
    "batch_done",
    _INFO,
    (
        *("query", "batch", "rows", "seconds", "commit", "restart", "lag_seconds", "lag_bytes"),
        *("headroom_bytes", "open_transactions", "spool_bytes", "reconnects", "data_losses"),
    ),
    "`ProgressListener`: Spark has finished a micro-batch; times are in seconds, sizes in bytes",
)
QUERY_ENDED = LogEvent("query_ended", _INFO, ("query",), "`ProgressListener`: a query was stopped")
QUERY_FAILED = LogEvent(
    "query_failed",
    _ERROR,
    ("query", "reason"),
    "`ProgressListener`: a query ended with an error; `reason` is the source's own error"
    " where it caused the end",
)
ERROR_RAISED = LogEvent(
    "error_raised",
    _DEBUG,
    ("method", "code", "frames"),
    "an error of ours leaves a `method` that Spark calls; `frames` are the lines of code that it came"
    " through, which Spark's own error does not show",
)

EVENTS: dict[str, LogEvent] = {
    event.name: event for event in list(globals().values()) if isinstance(event, LogEvent)
}
