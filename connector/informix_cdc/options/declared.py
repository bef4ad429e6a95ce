"""Every option of the source, declared once: name, type, default, meaning, and how its text is read.

Rule: declarations only. Reading (`parsing.py`), checks, the manual's tables and `--help` derive from
them, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from informix_capture_client.choices import parse_names
from informix_capture_client.dialects import DIALECTS, INFORMIX
from informix_capture_client.masks import MaskedName, parse_masks
from informix_capture_client.sql_names import NamePath
from informix_capture_client.transport import NO_ENCRYPTION, PASSWORD, TLS, TRUSTED
from informix_cdc.options.copies_url import url_of_copies
from informix_cdc.options.declaring import (
    ANY_MARKER,
    AUTO,
    HEARTBEAT_MARKER,
    LOOPBACK,
    NO_MARKER,
    PASSWORD_VARIABLE,
    TEMP_MARKER,
    address,
    capture_place,
    flag,
    floating_decimal,
    host_name,
    listening_address,
    local_folder,
    locale,
    names,
    one_of,
    option,
    option_name,
    size,
    snapshot_conditions,
    snapshot_keys,
    snapshot_tables,
    starting_position,
    transport_name,
    whole_number,
)
from informix_cdc.options.driver_keywords import driver_keywords

# The options that say where to connect and as whom. The password itself is not among them.
CONNECTION = (
    *("host", "port", "server", "dialect", "user", "authentication"),
    *("passwordFile", "passwordCommand"),
    *("encryption", "tlsCaFile", "tlsCertificateFile", "tlsKeyFile"),
    *("transport", "driver", "dbLocale", "clientLocale", "connectionString"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOptions:
    """The options of the source: a field each, by default with the same name in camel case."""

    # where to connect, which tables, and as whom
    host: str = option(
        "Host name or IP address of the Informix server. With transport=sqli it can be a list,"
        " such as db1:9088,db2:9088, which is tried in order.",
        host_name,
    )
    port: int = option("TCP port of the server's SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = option("Name of the Informix server (DBSERVERNAME).")
    database: str = option("Database to capture. It must be logged.")
    tables: tuple[str, ...] = option(
        "Tables to capture, as owner.table, separated by commas. * in a name matches any"
        " characters, as in informix.ord*; patterns are resolved when a query starts (see"
        " discoverySeconds).",
        names,
        name="table",
    )
    table_exclude: tuple[str, ...] = option(
        "Tables to exclude from the patterns in table: names or patterns, separated by commas.",
        names,
        default=(),
    )
    dialect_name: str = option(
        "Product to connect to: informix or gbase8s.",
        one_of(*DIALECTS),
        default=INFORMIX.name,
        name="dialect",
    )
    user: str = option(
        "Database user. Default: informix, or gbasedbt for GBase 8s, because the CDC guides"
        " require them.",
        default="",
    )
    authentication: Literal["password", "trusted"] = option(
        "password, or trusted to log in as the operating-system user without a password (the"
        " server must trust this host).",
        one_of(PASSWORD, TRUSTED),
        default=PASSWORD,
    )
    password: str = option(
        "Password of the user. Prefer passwordFile, passwordCommand or the environment variable"
        f" {PASSWORD_VARIABLE}, which keep it out of programs. Refused over Spark Connect.",
        default="",
        secret=True,
    )
    password_file: str = option(
        "File that contains the user's password. It is read for every new connection; under"
        " Spark, by the driver.",
        default="",
    )
    password_command: str = option(
        "Command that prints the user's password. It runs without a shell for every new"
        " connection; under Spark, on the driver.",
        default="",
    )
    allow_password_option: bool = option(
        "Accept the option password over Spark Connect, although Spark's event log and UI then"
        " show it.",
        flag,
        default=False,
    )
    encryption: Literal["tls", "none"] = option(
        "Connection encryption: tls (the port must belong to an onsocssl listener) or none.",
        one_of(TLS, NO_ENCRYPTION),
        default=NO_ENCRYPTION,
    )
    tls_ca_file: str = option(
        "PEM file of the trusted certificate authorities, for encryption=tls with transport=sqli."
        " Default: those of the system. Under Spark, this and the next two files are on the"
        " driver.",
        default="",
    )
    tls_certificate_file: str = option(
        "PEM file of the client certificate, for servers that request one.", default=""
    )
    tls_key_file: str = option(
        "PEM file of the client certificate's private key, without a passphrase. Default: the"
        " certificate file.",
        default="",
    )
    transport: Literal["auto", "odbc", "sqli"] = option(
        "How to connect: odbc (the ODBC driver of a client kit), sqli (Informix's native"
        " protocol, no driver needed), or auto (odbc if a driver is found, otherwise sqli).",
        transport_name,
        default=AUTO,
    )
    driver: str = option(
        "Path of the ODBC driver library. Default: libthcli.so or iclit09b.so in INFORMIXDIR;"
        " iclit09b.so in GBASEDBTDIR.",
        default="",
    )
    db_locale: str = option(
        "Locale of the captured database (DB_LOCALE); its code set must be the database's."
        " Default: the one that the server reports.",
        default="",
    )
    client_locale: str = option(
        "Locale of the connection (CLIENT_LOCALE).", locale, default="en_us.utf8"
    )
    connection_string: str = option(
        "Additional keywords for the ODBC driver, as KEY=value;KEY=value. Keywords that contain"
        " secrets are refused.",
        driver_keywords,
        default="",
    )

    # a capture of another process
    capture_at: str = option(
        "Where `informix-cdc capture` captures for this query, which then opens no connection to the"
        " server: the folder (spoolPath of the capture), or grpc+tls://host:port. Options of the"
        " server, the tables and the form of rows are those of the capture.",
        capture_place,
        default="",
    )
    reader: str = option(
        "Name under which the capture keeps rows for this query, with captureAt. Keep it as long as"
        " the query's checkpoint.",
        default="",
    )

    reader_file: str = option(
        "File with the token and certificates of the reader, for captureAt=grpc+tls://...; printed by"
        " `informix-cdc readers --add` on the capture's host.",
        local_folder,
        default="",
    )

    # where rows are stored, and how executors get them
    spool_path: str = option(
        "Folder of the spool, which stores captured rows until Spark has committed them. Default:"
        " a private temporary folder. Set it to resume without reading the log again.",
        local_folder,
        default="",
    )
    deliver_by: Literal["auto", "files", "flight"] = option(
        "How executors get rows: files (from spoolPath or segmentCopies), flight (from the driver"
        " over Arrow Flight), or auto (the first that works; flight only if flightHost is set).",
        one_of("auto", "files", "flight"),
        default="auto",
        name="delivery",
    )
    flight_host: str = option(
        "Address on which the driver's Arrow Flight server listens; executors connect to it."
        " Default: no server, or 127.0.0.1 with delivery=flight.",
        address,
        default="",
    )
    flight_port: int = option(
        "TCP port of the driver's Arrow Flight server. 0 picks a free port.",
        whole_number(0, 65535),
        default=0,
    )
    segment_copies: str = option(
        "URL to which spool segments are copied for executors, such as s3://bucket/path or"
        " file:///mnt/path. URLs that contain secrets are refused.",
        url_of_copies,
        default="",
    )
    min_partitions: int = option(
        "Approximate minimum number of tasks that read a micro-batch. Raise it to use more"
        " executor cores.",
        whole_number(1, 10_000),
        default=1,
    )
    max_partition_bytes: int = option(
        "Approximate maximum number of spool bytes that one task reads, such as 64m.",
        size(1 << 16),
        default=64 << 20,
    )

    # initial snapshots
    initial_snapshot: tuple[str, ...] = option(
        "Tables to start with a snapshot of their existing rows, delivered as inserts with"
        " _snapshot=true: none (default), all, or names and patterns as in table. Needs spoolPath.",
        snapshot_tables,
        default=(),
    )
    snapshot_key: tuple[tuple[str, tuple[str, ...]], ...] = option(
        "Columns that identify a row, for tables without a primary key or unique index:"
        " owner.table(column, ...), separated by commas.",
        snapshot_keys,
        default=(),
    )
    snapshot_where: tuple[tuple[str, str], ...] = option(
        "Conditions that limit the rows of initialSnapshot, as owner.table: CONDITION, separated by"
        " semicolons. They do not filter the stream: every later change is delivered.",
        snapshot_conditions,
        default=(),
    )
    snapshot_without_key: Literal["fail", "lock"] = option(
        "How to snapshot a table without a key: fail the start, or lock the table in share mode"
        " while it is read (writers wait).",
        one_of("fail", "lock"),
        default="fail",
    )
    snapshot_chunk_rows: int = option(
        "Maximum number of rows in a snapshot chunk.",
        whole_number(1, 10_000_000),
        default=50_000,
    )
    snapshot_chunk_bytes: int = option(
        "Size at which a snapshot chunk ends before snapshotChunkRows is reached, such as 64m.",
        size(1 << 16),
        default=64 << 20,
    )
    snapshot_parallelism: int = option(
        "Number of tables to snapshot at the same time. Each uses two connections.",
        whole_number(1, 8),
        default=1,
    )
    snapshot_marker: Literal["auto", "temp", "heartbeat", "none"] = option(
        "How to advance the log after each snapshot chunk: temp (create and drop a temporary"
        " table), heartbeat (update heartbeatTable), auto (currently temp), or none (wait for other"
        " changes).",
        one_of(ANY_MARKER, TEMP_MARKER, HEARTBEAT_MARKER, NO_MARKER),
        default=ANY_MARKER,
    )
    snapshot_barrier_seconds: int = option(
        "Seconds until a snapshot fails because the stream did not reach the marker of a chunk."
        " Raise it if the stream lags.",
        whole_number(1, 86_400),
        default=60,
    )
    snapshot_lock_seconds: int = option(
        "Seconds for which a snapshot retries rows that other sessions have locked.",
        whole_number(0, 86_400),
        default=300,
    )
    snapshot_max_touched_keys: int = option(
        "Maximum number of changed keys per table to remember while a chunk waits. If it is"
        " exceeded, the chunk is read again with fewer rows.",
        whole_number(1, 100_000_000),
        default=1_000_000,
    )

    # contents of large objects
    lobs: Literal["handle", "content", "reselect", "omit"] = option(
        "How to deliver BLOB and CLOB columns: handle (the 76-byte handle as BINARY), content (a"
        " struct of content, size and status, read through the handle; needs spoolPath), reselect"
        " (the same struct, read by the row's key; needs spoolPath), or omit.",
        one_of("handle", "content", "reselect", "omit"),
        default="handle",
    )
    simple_lobs: Literal["unsupported", "reselect"] = option(
        "How to deliver TEXT and BYTE columns, which the log does not contain: unsupported (see"
        " unsupportedColumns), or reselect (a struct of content, size and status, read by the"
        " row's key; needs spoolPath).",
        one_of("unsupported", "reselect"),
        default="unsupported",
    )
    lob_max_bytes: int = option(
        "Maximum size of a large object to read. Larger ones are delivered with their size and"
        " status too_large.",
        size(1, 1 << 30),
        default=16 << 20,
    )
    lob_connections: int = option(
        "Number of connections that read large objects.",
        whole_number(1, 16),
        default=2,
    )
    lob_read_seconds: int = option(
        "Seconds for which rows wait for the contents of their large objects. After that, unread"
        " ones have status not_read. 0 means no limit.",
        whole_number(0, 86_400),
        default=0,
    )
    lob_unchanged: Literal["read", "skip"] = option(
        "For updates that keep the handle: read the content again, because it may have been"
        " changed in place, or skip it (status not_read).",
        one_of("read", "skip"),
        default="read",
    )

    # reading the log, and what values become
    starting_position: str = option(
        "Where a new stream starts: latest (now), earliest (the oldest log file), or a sequence"
        " number (`log:0xpos`). With captureAt: earliest (the oldest stored row, the default there) or"
        " latest.",
        starting_position,
        default="latest",
    )
    read_timeout_seconds: int = option(
        "Seconds that the server waits for data before it answers a read with TIMEOUT. Stopping a"
        " query can take as long.",
        whole_number(1, 60),
        default=1,
    )
    max_records_per_read: int = option(
        "Maximum number of CDC records per read. Servers accept 1 to 256.",
        whole_number(1, 256),
        default=256,
    )
    read_buffer_bytes: int = option(
        "Size of the read buffer, such as 256k.", size(128, 1 << 30), default=256 * 1024
    )
    table_events: bool = option(
        "Deliver the rows with which a sink can follow resync: range_start, range_skip and range_end"
        " (docs/operations/recover-a-table.md). Needs shape=rows, json or arrow.",
        flag,
        default=False,
    )
    truncate: Literal["fail", "emit", "ignore"] = option(
        "How to handle TRUNCATE of a captured table: fail the query, emit a row that tells the"
        " sink to empty its copy, or ignore it (only counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    floating_decimal: Literal["string", "double"] | int = option(
        "Spark type of DECIMAL(p) columns without a scale: string (exact), double, or decimal(38,n).",
        floating_decimal,
        default="string",
    )
    intervals: Literal["typed", "string"] = option(
        "Spark type of INTERVAL columns: typed (YEAR TO MONTH as INT months, others as INTERVAL"
        " DAY TO SECOND) or string (as Informix prints them).",
        one_of("typed", "string"),
        default="typed",
    )
    trailing_blanks: Literal["cut", "keep"] = option(
        "cut or keep the trailing blanks of CHAR and NCHAR values.",
        one_of("cut", "keep"),
        default="cut",
    )
    bad_characters: Literal["fail", "replace"] = option(
        "How to handle bytes that are invalid in the database's code set: fail the query, or"
        " replace them with U+FFFD.",
        one_of("fail", "replace"),
        default="fail",
    )

    # columns, and the form of a row
    columns: tuple[NamePath, ...] = option(
        "Columns to capture, separated by commas; as table.column if several tables are captured."
        " Put unusual names in double quotes. Default: all.",
        parse_names,
        default=(),
    )
    masks: tuple[MaskedName, ...] = option(
        "Columns whose values are replaced before they are stored, as table.column=KIND, separated by"
        " commas: hash (HMAC-SHA-256 with the key in maskKeyFile, as text), null, or last4 (asterisks,"
        " and the last four characters). shape=raw and recordings do not contain these columns.",
        parse_masks,
        default=(),
        name="mask",
    )
    mask_key_file: str = option(
        "File with the key of mask=hash: at least 32 bytes, such as the output of `openssl rand -hex"
        " 32`. Under Spark, it is read by the driver.",
        local_folder,
        default="",
    )
    unsupported_columns: Literal["fail", "omit", "omit-following"] = option(
        "How to handle columns of type TEXT, BYTE, collection, ROW or user-defined: fail the"
        " start, omit them, or omit-following (omit also the columns that follow a SET, MULTISET"
        " or LIST).",
        one_of("fail", "omit", "omit-following"),
        default="fail",
    )
    shape: Literal["rows", "json", "arrow", "envelope"] = option(
        "Form of a delivered row: rows (one per change, typed columns), json (one per change,"
        " before and after as JSON, one schema for any number of tables), arrow (changes of one"
        " table as an Arrow stream, one schema for any number of tables), or envelope (Debezium's"
        " before/after/op/source).",
        one_of("rows", "json", "arrow", "envelope"),
        default="rows",
    )
    metadata: Literal["full", "minimal"] = option(
        "Columns about the change: full (ten) or minimal (_change_type, _commit_version,"
        " _commit_timestamp, _change_ordinal, and _table if several tables are captured). minimal"
        " is faster.",
        one_of("full", "minimal"),
        default="full",
    )

    # limits of a batch, of buffers and of the spool
    max_rows_per_trigger: int = option(
        "Maximum number of changes in a micro-batch; an update counts as two. A larger transaction is"
        " delivered as one batch. 0 means no limit.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_bytes_per_trigger: int = option(
        "Maximum size of a micro-batch, as stored in the spool, such as 64m or 2g. 0 means no limit.",
        size(0),
        default=0,
    )
    max_transactions_per_trigger: int = option(
        "Maximum number of transactions in a micro-batch. 0 means no limit. If several limits are"
        " set, the first one reached ends the batch.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_latency_ms: int = option(
        "Maximum time in milliseconds for which committed rows are buffered before they are"
        " written to the spool; a quarter of it while Spark has read all earlier rows. Raise it for"
        " fewer, larger segments.",
        whole_number(0, 60_000),
        default=20,
    )
    segment_bytes: int = option(
        "Number of buffered bytes at which a spool segment is written before maxLatencyMs has passed.",
        size(1 << 10),
        default=16 << 20,
    )
    max_spool_bytes: int = option(
        "Maximum size of rows in the spool that Spark has not yet read. If it is exceeded,"
        " reading from the server pauses.",
        size(1),
        default=16 << 30,
    )
    max_transaction_memory_bytes: int = option(
        "Maximum memory for the rows of open transactions. Above it, rows are spilled to files in"
        " spoolPath or in the system's temporary folder.",
        size(1 << 20),
        default=128 << 20,
    )

    # losses, lost connections and stalls
    on_data_loss: Literal["fail", "continue", "resync"] = option(
        "What to do if changes were lost: fail the query; continue at the oldest position available,"
        " and log the loss; or resync, which continues and reads the affected tables again. resync"
        " requires spoolPath, tableEvents=true and truncate=emit.",
        one_of("fail", "continue", "resync"),
        default="fail",
    )
    fail_on_data_loss: bool = option(
        "Another name for onDataLoss, as in other sources of Spark: true is fail, false is continue.",
        flag,
        default=True,
    )
    max_reconnect_seconds: int = option(
        "Seconds for which a lost connection is retried before the query fails.",
        whole_number(0, 604_800),
        default=60,
    )
    max_reconnect_attempts: int = option(
        "Maximum number of reconnect attempts before the query fails. 0 means that only"
        " maxReconnectSeconds limits them.",
        whole_number(0, 1_000_000),
        default=0,
    )
    discovery_seconds: int = option(
        "Interval in seconds at which the patterns in table are resolved while a query runs, so"
        " that new tables join without a restart. 0 means only when a query starts. Needs"
        " shape=json or arrow.",
        whole_number(0, 86_400),
        default=0,
    )
    stalled: Literal["warn", "fail"] = option(
        "What to do if a stall persists after one reconnect: warn or fail.",
        one_of("warn", "fail"),
        default="warn",
    )
    stalled_seconds: int = option(
        "Seconds without progress, while the server's log advances, after which a stream counts"
        " as stalled.",
        whole_number(1, 86_400),
        default=120,
    )
    restart_bound: Literal["server", "trust-stream"] = option(
        "How to find the restart position: server (from the server's list of open transactions)"
        " or trust-stream (from the BEGINTX records of the session). Use trust-stream only if the"
        " user cannot read sysmaster:systrans and the server shows each BEGINTX at its place.",
        one_of("server", "trust-stream"),
        default="server",
    )
    heartbeat_table: str = option(
        "owner.table that is updated regularly. Its changes advance the restart position and are"
        " not delivered. Use it if captured tables are idle for long.",
        default="",
    )
    before_image: bool = option(
        "Deliver also the row before an update, as update_preimage.", flag, default=True
    )

    stop_at_end: bool = option(
        "Deliver what was committed before the start, in any number of batches, and nothing later. For"
        " Spark 4.0 and 4.1, whose AvailableNow is one batch: call processAllAvailable(), then stop().",
        flag,
        default=False,
    )

    # figures and logs
    metrics_port: int = option(
        "TCP port on which the driver serves Prometheus metrics. 0 disables it.",
        whole_number(0, 65535),
        default=0,
    )
    metrics_host: str = option(
        "Address on which the driver serves Prometheus metrics. 0.0.0.0 listens on all interfaces.",
        listening_address,
        default=LOOPBACK,
    )
    log_level: Literal["error", "warning", "info", "debug"] = option(
        "Least severe level that the source logs to the driver's standard error: error, warning,"
        " info or debug.",
        one_of("error", "warning", "info", "debug"),
        default="warning",
    )


# The options that decide what a reader makes of stored changes: a shared capture stores them for all.
OF_ROWS = ("shape", "metadata", "beforeImage", "truncate")
# The options of a query that reads a shared capture; all others are options of the capture, which has
# tableEvents as well.
OF_READERS = frozenset(
    (
        *(*OF_ROWS, "tableEvents"),
        *("captureAt", "reader", "readerFile", "startingPosition"),
        *("delivery", "flightHost", "flightPort", "minPartitions", "maxPartitionBytes"),
        *("maxRowsPerTrigger", "maxBytesPerTrigger", "maxTransactionsPerTrigger"),
        *("onDataLoss", "failOnDataLoss", "logLevel"),
    )
)
OPTION_NAMES = tuple(option_name(declared) for declared in fields(DeclaredOptions))
