"""The log events: each with its name, level, keys and meaning.

Rule: only events that are declared here are logged, so that searches and alarms can rely on their names
and keys. Values are counts, positions (`log:0xpos`), names of tables and files, and texts of this
project's errors, never column values or secrets. A line is in logfmt:

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
    r"""Return facts as `key=value`, quoted where necessary; facts that are None are omitted.

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
    """A log event: a stable name, a level of `logging`, its keys, and a description."""

    name: str
    level: int
    keys: tuple[str, ...]
    meaning: str

    def log(self, logger: logging.Logger, **facts: object) -> None:
        """Log one line; `facts` has a value for each key, or None.

        The log record also has the attributes `event` and `facts`, for custom handlers.
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
    "A stream starts or resumes. `restart` and `commit` are its restart and commit positions, `spool`"
    " is the folder of its spool, and `transport` is the transport that it uses.",
)
TABLES_MATCHED = LogEvent(
    "tables_matched",
    _INFO,
    ("patterns", "count", "tables"),
    "The tables that match the patterns of option `table` when a query starts. A table that is"
    " created later joins within a minute with shape=json or arrow, otherwise at the next start.",
)
TABLE_LEFT_OUT = LogEvent(
    "table_left_out",
    _WARNING,
    ("table", "reason"),
    "A table that matches a pattern of option `table` is not captured while the query runs: it cannot"
    " be captured, or it was dropped. The other tables continue. The table is checked again after"
    " a minute; this event is logged once per `reason`.",
)
DISCOVERY_FAILED = LogEvent(
    "discovery_failed",
    _WARNING,
    ("reason",),
    "The tables that match the patterns of option `table` could not be listed. The query retries"
    " after a minute; this event is logged once per `reason`.",
)
TABLE_JOINED = LogEvent(
    "table_joined",
    _INFO,
    ("stream", "table", "since"),
    "A table was added to an existing stream. Changes that commit above `since` are delivered.",
)
TABLE_LEFT = LogEvent(
    "table_left",
    _INFO,
    ("stream", "table", "left"),
    "A table has left the stream, because option `table` no longer names it or `informix-cdc alter`"
    " alters it. Changes that commit above `left` are not delivered.",
)
TABLE_CAME_BACK = LogEvent(
    "table_came_back",
    _WARNING,
    ("stream", "table", "left", "since"),
    "A table that had left the stream was added again, and its existing rows are delivered. Rows that"
    " were deleted between `left` and `since` are still in the copy of the table: empty it first.",
)
MIRROR_TABLE_STOPPED = LogEvent(
    "mirror_table_stopped",
    _ERROR,
    ("table", "target", "reason"),
    "A mirror cannot continue with this table and leaves its target unchanged. All other tables"
    " continue.",
)
MIRROR_MAINTENANCE_FAILED = LogEvent(
    "mirror_maintenance_failed",
    _WARNING,
    ("target", "reason"),
    "A target of a mirror could not be compacted or cleaned. Batches continue, and it is tried again"
    " after ten minutes.",
)
MIRROR_EPOCH_BEGUN = LogEvent(
    "mirror_epoch_begun",
    _WARNING,
    ("mirror", "epoch", "reason"),
    "The checkpoint and the tables of a mirror do not belong together, and `onDataLoss` is `resync`:"
    " every table is compared with Informix, and rows that differ are written.",
)
SNAPSHOT_BEGUN = LogEvent(
    "snapshot_begun",
    _INFO,
    ("stream", "table", "key", "rows_estimated"),
    "The snapshot of a table starts: existing rows are read in the order of `key`, or in one pass"
    " under a table lock if the table has no key. `rows_estimated` comes from the table's statistics.",
)
SNAPSHOT_DONE = LogEvent(
    "snapshot_done",
    _INFO,
    ("stream", "table", "rows", "chunks", "dropped_rows", "seconds"),
    "All existing rows of a table are in the stream. `dropped_rows` rows were discarded because the"
    " stream has newer versions of them.",
)
CONTENTS_WAIT = LogEvent(
    "contents_wait",
    _WARNING,
    ("seconds", "reason"),
    "A row whose large object is to be read is locked. The stream waits until the writer's"
    " transaction ends, or until lobReadSeconds have passed.",
)
SNAPSHOT_WAITS = LogEvent(
    "snapshot_waits",
    _WARNING,
    ("transactions", "ids"),
    "Transactions that were open before the stream or the session started have not ended. No snapshot"
    " chunk is delivered until they end; a new stream delivers nothing until then.",
)
SNAPSHOT_NOT_MADE = LogEvent(
    "snapshot_not_made",
    _WARNING,
    ("table",),
    "Option initialSnapshot names a table that is already in the stream without a snapshot. To get"
    " one, remove the table from option `table`, run the query once, empty the sink's copy of the"
    " table, and name the table again.",
)
SNAPSHOT_LOCKED = LogEvent(
    "snapshot_locked",
    _WARNING,
    ("table", "seconds", "reason"),
    "Rows that a snapshot reads have been locked by other sessions for `seconds`. The snapshot"
    " retries for an hour.",
)
CHUNK_READ_AGAIN = LogEvent(
    "chunk_read_again",
    _INFO,
    ("stream", "table", "chunks", "most_rows"),
    "While snapshot chunks of a table waited, more than a million of its keys changed."
    " The chunks are read again with at most `most_rows` rows each.",
)
MARKER_REFUSED = LogEvent(
    "marker_refused",
    _WARNING,
    ("table", "reason"),
    "The server refused the marker write that tells the snapshot when the stream has passed a chunk."
    " If the user lacks the privilege, the snapshot waits for changes by other users; otherwise it"
    " retries.",
)
SESSION_OPENED = LogEvent(
    "session_opened",
    _INFO,
    ("session", "position", "tables"),
    "A capture session is active. It reads from sequence number `position`.",
)
ROW_LOGGING_SWITCHED_ON = LogEvent(
    "row_logging_switched_on",
    _WARNING,
    ("table", "remedy"),
    "Full row logging of a table was off and was switched on, because a capture requires it. It stays"
    " on when the stream ends, and the server rejects ALTER TABLE of the table until you run `remedy`."
    " If a flag of `remedy` needs shell quoting, it is omitted: add it, and the table that `table`"
    " names. Several tables are one event, whose `remedy` lists all of them.",
)
HIDDEN_COLUMNS_OMITTED = LogEvent(
    "hidden_columns_omitted",
    _INFO,
    ("table", "columns"),
    "A table has shadow columns of the server, as of WITH VERCOLS, ERKEY or CRCOLS. Like SELECT *, the"
    " stream does not have them. Logged once, when the table enters the stream.",
)
CONNECTION_LOST = LogEvent(
    "connection_lost",
    _WARNING,
    ("stream", "failures", "reason"),
    "The connection to the server was lost, or the server ended a session. The stream reconnects."
    " `failures` is the number of failed attempts since the last progress.",
)
PASSWORD_IN_CLEAR_TEXT = LogEvent(
    "password_in_clear_text",
    _WARNING,
    ("address",),
    "`transport=sqli` without TLS sends the password and all data to `address` in clear text. This"
    " event is logged once per server. Set encryption=tls.",
)
LOSS_NOT_NOTED = LogEvent(
    "loss_not_noted",
    _WARNING,
    ("stream", "reason"),
    "The file that records a data loss for the next start cannot be written. With onDataLoss=fail, do"
    " not start this query again.",
)
ROW_FORM_CHANGED = LogEvent(
    "row_form_changed",
    _WARNING,
    ("stream", "after", "former", "now"),
    "Options that decide which rows a change produces differ from those of the previous run. Rows of"
    " commits above `after` have the keys of the current options.",
)
CAPTURE_FAILED = LogEvent(
    "capture_failed",
    _ERROR,
    ("stream", "code", "reason", "traceback"),
    "The capture ended with an error. The query ends once Spark has read the rows captured before it."
    " `traceback` is set for a bug; it contains error types and lines of code, but no error texts.",
)
DATA_LOSS = LogEvent(
    "data_loss",
    _ERROR,
    ("stream", "after", "upto", "transactions_open", "reason"),
    "Changes were lost and the stream continues (onDataLoss=continue). Commits above `after` and up"
    " to `upto` may be missing, as well as the transactions open at `upto`.",
)
BATCH_LOST = LogEvent(
    "batch_lost",
    _ERROR,
    ("stream", "after", "upto", "reason"),
    "A batch that Spark had planned cannot be read again and is delivered empty"
    " (onDataLoss=continue). Its commits are above `after` and up to `upto`.",
)
REQUEST_BEGUN = LogEvent(
    "request_begun",
    _INFO,
    ("stream", "request", "kind", "tables"),
    "The stream has begun to process a request of `informix-cdc resync`, `verify` or `alter`.",
)
TABLE_ALTERING = LogEvent(
    "table_altering",
    _WARNING,
    ("stream", "tables", "seconds", "remedy"),
    "The stream does not capture tables, because `informix-cdc alter` has not ended. Logged each"
    " minute. If the command was interrupted, run it again: it continues, and the rows are read again.",
)
REQUEST_ANSWERED = LogEvent(
    "request_answered",
    _INFO,
    ("stream", "request", "kind", "tables", "problems"),
    "A request was processed: the stream has everything that it asked for. `problems` has the tables"
    " for which that was not possible, with reasons.",
)
TRANSACTIONS_LEFT_OUT = LogEvent(
    "transactions_left_out",
    _WARNING,
    ("stream", "count", "reason"),
    "Transactions were skipped because they are incomplete. `count` is the number of skipped"
    " transactions for this reason so far.",
)
LOG_END_NOT_REACHED = LogEvent(
    "log_end_not_reached",
    _WARNING,
    ("stream", "reached", "log_end"),
    "A Trigger.AvailableNow run ends before `log_end`, the end of the server's log when the run"
    " started: no record beyond `reached` arrived for 90 seconds. The server is slow, does not report"
    " transactions of other tables (set heartbeatTable), or cannot read its log. A later run delivers"
    " the rest.",
)
FORMER_ROWS_LEFT_OUT = LogEvent(
    "former_rows_left_out",
    _WARNING,
    ("table", "created", "begun", "commit"),
    "Records with a table's label are skipped because their transaction began (`begun`) no later than"
    " the table's partition was created (`created`, both in seconds since 1970). They belong to the"
    " table that had this partition number before. This event is logged once per table and connection.",
)
STREAM_STALLED = LogEvent(
    "stream_stalled",
    _WARNING,
    ("stream", "reason"),
    "The stream receives only TIMEOUT records although the server's log advances, and a new session"
    " did not help.",
)
LOG_UNREADABLE = LogEvent(
    "log_unreadable",
    _ERROR,
    ("stream", "position", "current", "reason"),
    "No session can read the server's log beyond `position`, although the log has advanced to"
    " `current` and its next file is readable.",
)
RESTART_POSITION_LATE = LogEvent(
    "restart_position_late",
    _WARNING,
    ("stream", "restart", "oldest", "held_by", "reason"),
    "The server will soon overwrite the stream's restart position. `oldest` is the start of the"
    " oldest log file; `held_by` is the BEGINTX of the transaction that holds the restart position"
    " back.",
)
READ_IN_PYTHON = LogEvent(
    "read_in_python",
    _WARNING,
    ("remedy", "requires_jar"),
    "Spark does not have the jar, so Python reads the rows, at about a quarter of the rate. What"
    " `requires_jar` lists is refused. Rows and checkpoint are the same.",
)
MANY_TABLES = LogEvent(
    "many_tables",
    _WARNING,
    ("shape", "tables", "values", "microseconds"),
    "Each row sent to Spark has `values` values, all NULL except those of its own table, for `tables`"
    " tables. This costs about `microseconds` of CPU per row in Python, plus the cost in Spark. With"
    " `shape=json` the cost does not depend on the number of tables.",
)
READING_PAUSED = LogEvent(
    "reading_paused",
    _WARNING,
    ("stream", "ahead_bytes", "limit_bytes"),
    "Reading of the log is paused until Spark has read more rows. The spool holds `ahead_bytes` bytes"
    " that Spark has not read, which exceeds maxSpoolBytes (`limit_bytes`).",
)
READING_RESUMED = LogEvent(
    "reading_resumed",
    _WARNING,
    ("stream", "ahead_bytes", "limit_bytes"),
    "Reading of the log resumes after `reading_paused`. The spool holds `ahead_bytes` bytes that"
    " Spark has not read.",
)
FLIGHT_SERVER_ENDED = LogEvent(
    "flight_server_ended",
    _WARNING,
    ("status", "port"),
    "The process that serves rows on `port` has ended with `status`, and is started again. Readers and"
    " executors call it again. If it ends often, look at the memory of the host: above 1 GiB it ends"
    " itself.",
)
STRANGERS_REFUSED = LogEvent(
    "strangers_refused",
    _WARNING,
    ("calls", "connections", "address"),
    "At the port for rows, `calls` calls with a wrong token and `connections` connections without a"
    " valid certificate were refused since the last of these events, which come once a minute at"
    " most. `address` is that of the latest connection. A reader's file may be old or stolen, or the"
    " port may be open to more hosts than necessary.",
)
SPOOL_AWAITED = LogEvent(
    "spool_awaited",
    _WARNING,
    ("spool", "process", "most_seconds"),
    "Another query is writing to the folder `spool`. This query waits up to `most_seconds` seconds"
    " until the other one ends. `process` is the other query's process id, if it runs on this host."
    " Stop it, or set another spoolPath.",
)
SPOOL_TAKEN_OVER = LogEvent(
    "spool_taken_over",
    _INFO,
    ("spool", "seconds"),
    "The query that was writing to the folder `spool` has ended after `spool_awaited`, and this query"
    " continues.",
)
SPOOL_FOLDER_MADE_AGAIN = LogEvent(
    "spool_folder_made_again",
    _WARNING,
    ("stream", "spool"),
    "The private folder `spool` was removed, for example by a cleaner of temporary files, and was"
    " created again. No rows were lost. Set spoolPath to a folder that is not cleaned up.",
)
LOG_NOT_WATCHED = LogEvent(
    "log_not_watched",
    _WARNING,
    ("reason",),
    "The server did not answer a query for its log files. Lag in bytes, headroom and stalls are"
    " unknown until it does.",
)
RESTART_NOT_BOUNDED = LogEvent(
    "restart_not_bounded",
    _WARNING,
    ("reason",),
    "The server refused to list its open transactions (sysmaster:systrans), so the restart position"
    " does not advance until the log there is overwritten. Grant the user SELECT on sysmaster:systrans"
    " and sysmaster:syslogs.",
)
BEGIN_SHOWN_LATE = LogEvent(
    "begin_shown_late",
    _INFO,
    ("stream", "begin", "commit"),
    "The server reported the BEGINTX `begin` after the COMMTX `commit`: it reports a transaction only"
    " from its first captured change on. Nothing is lost; the restart position accounts for it.",
)
SESSION_ABANDONED = LogEvent(
    "session_abandoned",
    _WARNING,
    ("timeout_seconds",),
    "The server did not respond to the close of a capture session within `timeout_seconds` seconds."
    " The server has to end the session.",
)
CONNECTION_ABANDONED = LogEvent(
    "connection_abandoned",
    _WARNING,
    ("timeout_seconds",),
    "The ODBC driver did not return from closing a connection within `timeout_seconds` seconds. The"
    " stream continues, and the connection stays with the driver until the process ends.",
)
SESSION_CLOSE_REFUSED = LogEvent(
    "session_close_refused",
    _INFO,
    ("statement", "reason"),
    "A statement that closes a capture session failed. The session ends with its connection.",
)
ERROR_TEXT_UNKNOWN = LogEvent(
    "error_text_unknown",
    _INFO,
    ("name", "reason"),
    "cdc_errortext failed for the error `name`. Its description in syscdcerrcodes is used instead.",
)
COPY_NOT_REMOVED = LogEvent(
    "copy_not_removed",
    _WARNING,
    ("file", "place", "reason"),
    "A copy of a spool segment could not be removed from segmentCopies. Remove it manually.",
)
BATCH_DONE = LogEvent(
    "batch_done",
    _INFO,
    (
        *("query", "batch", "rows", "seconds", "commit", "restart", "lag_seconds", "lag_bytes"),
        *("headroom_bytes", "open_transactions", "spool_bytes", "reconnects", "data_losses"),
    ),
    "`ProgressListener`: Spark has finished a micro-batch. Times are in seconds, sizes in bytes.",
)
QUERY_ENDED = LogEvent("query_ended", _INFO, ("query",), "`ProgressListener`: a query was stopped.")
QUERY_FAILED = LogEvent(
    "query_failed",
    _ERROR,
    ("query", "reason"),
    "`ProgressListener`: a query ended with an error. `reason` is the source's own error if that"
    " caused the end.",
)
ERROR_RAISED = LogEvent(
    "error_raised",
    _DEBUG,
    ("method", "code", "frames"),
    "An error of this source is raised from a `method` that Spark calls. `frames` are the lines of"
    " code that raised it, which Spark's own error does not show.",
)

READER_NOT_READABLE = LogEvent(
    "reader_not_readable",
    _ERROR,
    ("reader", "file", "reason"),
    "The file of a registered reader of a capture cannot be read. No stored row is removed until"
    " `informix-cdc readers --remove` removes the reader, or its query runs again.",
)
ROWS_REMOVED = LogEvent(
    "rows_removed",
    _ERROR,
    ("stream", "reader", "after", "up_to", "reason"),
    "A reader of a capture continues without commits above `after` up to `up_to`, because onDataLoss"
    " allows it: the capture has removed them after `retention` or `retentionBytes`.",
)
READER_LEFT_BEHIND = LogEvent(
    "reader_left_behind",
    _ERROR,
    ("stream", "reader", "done", "removed_up_to"),
    "A capture has removed rows that a registered reader has not read, after `retention` or"
    " `retentionBytes`. The reader's query reports a data loss when it runs.",
)
READER_CALL_FAILED = LogEvent(
    "reader_call_failed",
    _ERROR,
    ("reason", "traceback"),
    "A capture could not answer a reader on another host. The reader's query ends; `traceback` has the"
    " lines of code if it is a bug.",
)
CAPTURE_TAKEN_OVER = LogEvent(
    "capture_taken_over",
    _INFO,
    ("stream", "commit", "checkpoint"),
    "A capture continues the stream of a query's checkpoint.",
)


EVENTS: dict[str, LogEvent] = {
    event.name: event for event in list(globals().values()) if isinstance(event, LogEvent)
}
