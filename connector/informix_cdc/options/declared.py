"""Every option of the source, declared once: name, type, default, meaning, and how its text is read.

Rule: declarations only. Reading (`parsing.py`), checks, the manual's tables and `--help` derive from
them, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from informix_capture_client.choices import parse_names
from informix_capture_client.dialects import DIALECTS, INFORMIX
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
    """What a user may set; each field is an option, by default of the same name in camel case."""

    # where to connect, which tables, and as whom
    host: str = option(
        "Host name or IP address of the Informix server; with transport=sqli also a list, such as"
        " db1:9088,db2:9088, tried in its order.",
        host_name,
    )
    port: int = option("TCP port of the server's SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = option("Name of the Informix server (its DBSERVERNAME).")
    database: str = option("Database to capture; it must be logged.")
    tables: tuple[str, ...] = option(
        "Tables to capture: owner.table, or several separated by commas; * in a name stands for any"
        " characters, such as informix.ord*, and is looked up when a query starts (see"
        " discoverySeconds).",
        names,
        name="table",
    )
    table_exclude: tuple[str, ...] = option(
        "Tables to leave out of what patterns of option table match: names or patterns, separated by"
        " commas.",
        names,
        default=(),
    )
    dialect_name: str = option(
        "Product that the server is: informix, or gbase8s for GBase 8s.",
        one_of(*DIALECTS),
        default=INFORMIX.name,
        name="dialect",
    )
    user: str = option(
        "Database user to connect as; default: informix, or gbasedbt on GBase 8s, as the CDC guides"
        " demand.",
        default="",
    )
    authentication: Literal["password", "trusted"] = option(
        "How the server knows the user: password, or trusted (no password: the server trusts this host,"
        " and the user is that of the operating system).",
        one_of(PASSWORD, TRUSTED),
        default=PASSWORD,
    )
    password: str = option(
        "Password of the user; passwordFile, passwordCommand and the environment variable"
        f" {PASSWORD_VARIABLE} keep it out of programs and plans. Refused over Spark Connect.",
        default="",
        secret=True,
    )
    password_file: str = option(
        "File that holds the user's password, read whenever a connection opens; under Spark, a path on"
        " the driver.",
        default="",
    )
    password_command: str = option(
        "Command that prints the user's password, run without a shell whenever a connection opens;"
        " under Spark, on the driver.",
        default="",
    )
    allow_password_option: bool = option(
        "Whether option password is taken over Spark Connect, although its event log and UI show it.",
        flag,
        default=False,
    )
    encryption: Literal["tls", "none"] = option(
        "How the connection is kept from being read on its way: tls (the port is of a listener with"
        " protocol onsocssl), or none.",
        one_of(TLS, NO_ENCRYPTION),
        default=NO_ENCRYPTION,
    )
    tls_ca_file: str = option(
        "PEM file of the authorities whose certificates are trusted, for encryption=tls with"
        " transport=sqli; default: the system's. Under Spark, a path on the driver, like the next two.",
        default="",
    )
    tls_certificate_file: str = option(
        "PEM file of the certificate that this client shows a server that asks for one.", default=""
    )
    tls_key_file: str = option(
        "PEM file of that certificate's key, without a passphrase; default: it is in the same file.",
        default="",
    )
    transport: Literal["auto", "odbc", "sqli"] = option(
        "How to connect: odbc (Informix's ODBC driver, of a client kit), sqli (Informix's own"
        " protocol, without a driver), or auto: odbc where a driver is found, else sqli.",
        transport_name,
        default=AUTO,
    )
    driver: str = option(
        "Path of the ODBC driver library; default: libthcli.so or iclit09b.so under INFORMIXDIR"
        " (iclit09b.so under GBASEDBTDIR).",
        default="",
    )
    db_locale: str = option(
        "Locale of the captured database (DB_LOCALE), of its own code set; default: the one that the"
        " server reports.",
        default="",
    )
    client_locale: str = option(
        "Locale of the connection (CLIENT_LOCALE).", locale, default="en_us.utf8"
    )
    connection_string: str = option(
        "Additional keywords for the ODBC driver, KEY=value;KEY=value; a secret in it is refused.",
        driver_keywords,
        default="",
    )

    # where rows are stored, and how executors get them
    spool_path: str = option(
        "Folder of the spool, which keeps captured rows until Spark has committed them; default: a"
        " private temporary folder.",
        local_folder,
        default="",
    )
    deliver_by: Literal["auto", "files", "flight"] = option(
        "How executors get rows: files (from spoolPath or segmentCopies), flight (from the driver by"
        " Arrow Flight), or auto (the first of these that works; Flight only if flightHost is set).",
        one_of("auto", "files", "flight"),
        default="auto",
        name="delivery",
    )
    flight_host: str = option(
        "Address on which the driver's Arrow Flight server listens and which executors connect to;"
        " default: no server, or 127.0.0.1 with delivery=flight.",
        address,
        default="",
    )
    flight_port: int = option(
        "TCP port of the driver's Arrow Flight server; 0 picks a free one.",
        whole_number(0, 65535),
        default=0,
    )
    segment_copies: str = option(
        "URL, such as s3://bucket/path or file:///mnt/path, to which spool segments are copied for"
        " executors; a secret in it is refused.",
        url_of_copies,
        default="",
    )
    min_partitions: int = option(
        "Approximate minimum number of tasks that read a micro-batch.",
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
        "Tables whose rows that were there before the stream are delivered too, as inserts with"
        " _snapshot=true: none (the default), all, or names and patterns as in option table; needs"
        " spoolPath.",
        snapshot_tables,
        default=(),
    )
    snapshot_key: tuple[tuple[str, tuple[str, ...]], ...] = option(
        "Columns that tell the rows of a table apart, where it has no primary key and no unique index:"
        " owner.table(column, ...), or several of them with commas.",
        snapshot_keys,
        default=(),
    )
    snapshot_without_key: Literal["fail", "lock"] = option(
        "What a table without a key does: fail the start, or lock (it is locked in share mode while it"
        " is read whole, and writers wait).",
        one_of("fail", "lock"),
        default="fail",
    )
    snapshot_chunk_rows: int = option(
        "Maximum number of rows that a snapshot reads at once.",
        whole_number(1, 10_000_000),
        default=50_000,
    )
    snapshot_chunk_bytes: int = option(
        "Number of bytes of rows at which a chunk of a snapshot ends before snapshotChunkRows, such as"
        " 64m.",
        size(1 << 16),
        default=64 << 20,
    )
    snapshot_parallelism: int = option(
        "Number of tables that are read for a snapshot at a time; each takes two connections.",
        whole_number(1, 8),
        default=1,
    )
    snapshot_marker: Literal["auto", "temp", "heartbeat", "none"] = option(
        "What moves the server's log on behind a chunk: temp (a temporary table is made and dropped),"
        " heartbeat (heartbeatTable is updated), auto (temp), or none (other people's changes are"
        " waited for).",
        one_of(ANY_MARKER, TEMP_MARKER, HEARTBEAT_MARKER, NO_MARKER),
        default=ANY_MARKER,
    )
    snapshot_barrier_seconds: int = option(
        "Seconds after which a snapshot fails because the stream shows nothing of what was written"
        " behind a chunk.",
        whole_number(1, 86_400),
        default=60,
    )
    snapshot_lock_seconds: int = option(
        "Seconds for which a snapshot tries again to read rows that others have locked.",
        whole_number(0, 86_400),
        default=300,
    )
    snapshot_max_touched_keys: int = option(
        "Maximum number of keys of a table that are remembered as changed while a chunk waits; beyond"
        " it the chunk is read again with fewer rows.",
        whole_number(1, 100_000_000),
        default=1_000_000,
    )

    # contents of large objects
    lobs: Literal["handle", "content", "reselect", "omit"] = option(
        "What BLOB and CLOB columns become: handle (the 76-byte handle as BINARY), content (a struct of"
        " what the object holds when it is read, its size and a status; needs spoolPath), reselect (the"
        " same of the object that a SELECT by the row's key finds), or omit (they are left out).",
        one_of("handle", "content", "reselect", "omit"),
        default="handle",
    )
    simple_lobs: Literal["unsupported", "reselect"] = option(
        "What TEXT and BYTE columns become, which no log has: unsupported (as unsupportedColumns says),"
        " or reselect (a struct of what a SELECT by the row's key finds, its size and a status;"
        " needs spoolPath).",
        one_of("unsupported", "reselect"),
        default="unsupported",
    )
    lob_max_bytes: int = option(
        "Maximum number of bytes of a large object that is read; a larger one has its size and the"
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
        "Seconds for which rows wait for the contents of their large objects; what is not read then has"
        " the status not_read; 0 means as long as the connections live.",
        whole_number(0, 86_400),
        default=0,
    )
    lob_unchanged: Literal["read", "skip"] = option(
        "What an update that leaves a large object's handle as it was does: read its content, which may"
        " have been written into, or skip it (not_read).",
        one_of("read", "skip"),
        default="read",
    )

    # reading the log, and what values become
    starting_position: str = option(
        "Where a new stream begins: latest (now), earliest (the oldest log file), or a sequence"
        " number (`log:0xpos`).",
        starting_position,
        default="latest",
    )
    read_timeout_seconds: int = option(
        "Seconds that the server waits for data before it answers a read with TIMEOUT; stopping a"
        " query may take as long.",
        whole_number(1, 60),
        default=1,
    )
    max_records_per_read: int = option(
        "Maximum number of CDC records in one read; servers accept 1 to 256.",
        whole_number(1, 256),
        default=256,
    )
    read_buffer_bytes: int = option(
        "Size of the read buffer in bytes, such as 256k.", size(128, 1 << 30), default=256 * 1024
    )
    truncate: Literal["fail", "emit", "ignore"] = option(
        "What a TRUNCATE of a captured table does: fail the query, emit a row on which the sink must"
        " empty its copy, or ignore it (it is counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    floating_decimal: Literal["string", "double"] | int = option(
        "Spark type of a DECIMAL(p) column without a scale: string (exact), double, or decimal(38,n).",
        floating_decimal,
        default="string",
    )
    intervals: Literal["typed", "string"] = option(
        "Spark type of INTERVAL columns: typed (YEAR-MONTH ones as INT months, others as INTERVAL DAY"
        " TO SECOND), or string (as Informix prints them).",
        one_of("typed", "string"),
        default="typed",
    )
    trailing_blanks: Literal["cut", "keep"] = option(
        "Whether to cut or keep the trailing blanks of CHAR and NCHAR values.",
        one_of("cut", "keep"),
        default="cut",
    )
    bad_characters: Literal["fail", "replace"] = option(
        "What bytes that are invalid in the database's code set do: fail the query, or replace (they"
        " become U+FFFD).",
        one_of("fail", "replace"),
        default="fail",
    )

    # columns, and the form of a row
    columns: tuple[NamePath, ...] = option(
        "Columns to capture, separated by commas, as table.column where several tables are captured;"
        " unusual names in double quotes; default: all.",
        parse_names,
        default=(),
    )
    unsupported_columns: Literal["fail", "omit", "omit-following"] = option(
        "What a column of type TEXT, BYTE, collection, ROW or user-defined does: fail the start, omit"
        " (it is left out), or omit-following (columns that follow a SET, MULTISET or LIST are left out"
        " as well).",
        one_of("fail", "omit", "omit-following"),
        default="fail",
    )
    shape: Literal["rows", "json", "arrow", "envelope", "raw"] = option(
        "Form of a delivered row: rows (one per change), json (one per change, before and after as"
        " JSON, the same for any number of tables), arrow (changes of one table as an Arrow stream of"
        " typed columns, the same for any number of tables), envelope (Debezium's"
        " before/after/op/source), or raw (one per CDC record).",
        one_of("rows", "json", "arrow", "envelope", "raw"),
        default="rows",
    )
    metadata: Literal["full", "minimal"] = option(
        "Which columns about a change stand beside its row: full (ten), or minimal (_change_type,"
        " _commit_version, _commit_timestamp, _change_ordinal, and _table where several tables are"
        " captured).",
        one_of("full", "minimal"),
        default="full",
    )

    # limits of a batch, of buffers and of the spool
    max_rows_per_trigger: int = option(
        "Maximum number of rows in a micro-batch; a larger transaction is a batch of its own; 0 means"
        " no limit.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_bytes_per_trigger: int = option(
        "Maximum number of bytes in a micro-batch, as stored in the spool, such as 64m or 2g; 0 means"
        " no limit.",
        size(0),
        default=0,
    )
    max_transactions_per_trigger: int = option(
        "Maximum number of transactions in a micro-batch; the limit that is reached first ends the"
        " batch; 0 means no limit.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_latency_ms: int = option(
        "Longest time, in milliseconds, that committed rows are buffered before they are written to"
        " the spool.",
        whole_number(0, 60_000),
        default=20,
    )
    segment_bytes: int = option(
        "Number of buffered bytes of committed records at which a spool segment is written before"
        " maxLatencyMs is over.",
        size(1 << 10),
        default=16 << 20,
    )
    max_spool_bytes: int = option(
        "Maximum number of bytes in the spool that Spark has not taken; beyond it, reading from the"
        " server pauses.",
        size(1),
        default=16 << 30,
    )
    max_transaction_memory_bytes: int = option(
        "Maximum number of bytes that rows of open transactions take in memory; beyond it they are"
        " spilled to files in spoolPath, or in the system's temporary folder.",
        size(1 << 20),
        default=128 << 20,
    )

    # losses, lost connections and stalls
    fail_on_data_loss: bool = option(
        "Whether a loss of changes fails the query; if false, the stream goes on at the oldest"
        " position left and logs the loss.",
        flag,
        default=True,
    )
    max_reconnect_seconds: int = option(
        "Seconds for which a lost connection is retried before the query fails.",
        whole_number(0, 604_800),
        default=60,
    )
    max_reconnect_attempts: int = option(
        "Maximum number of reconnect attempts before the query fails; 0 means no limit but"
        " maxReconnectSeconds.",
        whole_number(0, 1_000_000),
        default=0,
    )
    discovery_seconds: int = option(
        "Seconds between two look-ups of the patterns in option table while a query runs: tables that"
        " were created since join the stream without a restart; 0 means patterns are looked up when a"
        " query starts only. Needs shape=json or arrow.",
        whole_number(0, 86_400),
        default=0,
    )
    stalled: Literal["warn", "fail"] = option(
        "What a stalled stream does, after one new session did not help: warn, or fail the query.",
        one_of("warn", "fail"),
        default="warn",
    )
    stalled_seconds: int = option(
        "Seconds without progress, while the server's log moves on, after which a stream counts as"
        " stalled.",
        whole_number(1, 86_400),
        default=120,
    )
    restart_bound: Literal["server", "trust-stream"] = option(
        "How the restart position is found: server (from the server's list of open transactions), or"
        " trust-stream (from the BEGINTX records that the session shows). Use trust-stream only where"
        " the user may not read sysmaster:systrans and the server shows each BEGINTX at its place.",
        one_of("server", "trust-stream"),
        default="server",
    )
    heartbeat_table: str = option(
        "owner.table that is updated regularly: its changes move the restart position on and are not"
        " delivered.",
        default="",
    )
    schema_change: str = option(
        "Path of the receipt that informix-cdc release and acquire have written for tables that were"
        " altered: the stream goes on with them as they are now.",
        local_folder,
        default="",
    )
    before_image: bool = option(
        "Whether an update also delivers the row before it, as update_preimage.", flag, default=True
    )

    # figures and logs
    metrics_port: int = option(
        "TCP port on which the driver serves Prometheus metrics; 0 means none are served.",
        whole_number(0, 65535),
        default=0,
    )
    metrics_host: str = option(
        "Address on which the driver serves Prometheus metrics; 0.0.0.0 listens on all interfaces.",
        listening_address,
        default=LOOPBACK,
    )
    log_level: Literal["error", "warning", "info", "debug"] = option(
        "Least severe level that the source logs to the driver's standard error: error, warning, info"
        " or debug.",
        one_of("error", "warning", "info", "debug"),
        default="warning",
    )


OPTION_NAMES = tuple(option_name(declared) for declared in fields(DeclaredOptions))
