"""Every option of the source, declared once: name, type, default, meaning, and how its text is read.

Rule: declarations only. Reading (`parsing.py`), checks, the manual's tables and `--help` derive from
them, in this order. Options that are used together are one value, and code gets the values that it
uses. A field without `option` is a decision of ours (docs/decisions/0135), which only tests change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm, parse_names
from informix_capture_client.dialects import DIALECTS, INFORMIX, Dialect
from informix_capture_client.masks import MaskedName, parse_masks
from informix_capture_client.sql_names import NamePath
from informix_capture_client.transport import (
    NO_ENCRYPTION,
    PASSWORD,
    TLS,
    TRUSTED,
    ConnectionSettings,
    addresses,
)
from informix_cdc.options.copies_url import url_of_copies
from informix_cdc.options.declaring import (
    AUTO,
    FILES,
    FLIGHT,
    PASSWORD_VARIABLE,
    capture_place,
    delivery_place,
    flag,
    floating_decimal,
    host_and_port,
    host_name,
    local_folder,
    metrics_place,
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
from informix_cdc.options.driver_keywords import client_locale, driver_keywords
from informix_cdc.options.mask_keys import mask_key

# The options that say where to connect and as whom. The password itself is not among them.
CONNECTION = (
    *("host", "port", "server", "dialect", "user", "authentication"),
    *("passwordFile", "passwordCommand"),
    *("encryption", "tlsCaFile", "tlsCertificateFile"),
    *("transport", "driver", "dbLocale", "connectionString"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """Where to connect, and as whom.

    Attributes:
        read_timeout_seconds: how long the server waits for data before it answers a read with TIMEOUT;
            stopping a stream can take as long.
    """

    host: str = option(
        "Host name or IP address of the Informix server. With transport=sqli it can be a list,"
        " such as db1:9088,db2:9088, which is tried in order.",
        host_name,
    )
    port: int = option("TCP port of the server's SQLI listener.", whole_number(1, 65535), default=9088)
    server: str = option("Name of the Informix server (DBSERVERNAME).")
    database: str = option("Database to capture. It must be logged.")
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
        f" {PASSWORD_VARIABLE}, which keep it out of programs. Refused over"
        " Spark Connect, whose event log would show it.",
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
    encryption: Literal["tls", "none"] = option(
        "Connection encryption: tls (the port must belong to an onsocssl listener) or none.",
        one_of(TLS, NO_ENCRYPTION),
        default=NO_ENCRYPTION,
    )
    tls_ca_file: str = option(
        "PEM file of the trusted certificate authorities, for encryption=tls with transport=sqli."
        " Default: those of the system. Under Spark, this and the next file are on the"
        " driver.",
        default="",
    )
    tls_certificate_file: str = option(
        "PEM file with the client certificate and its private key, without a passphrase, for servers"
        " that request a certificate.",
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
    connection_string: str = option(
        "Additional keywords for the ODBC driver, as KEY=value;KEY=value, such as"
        " CLIENT_LOCALE=en_us.8859-1. Keywords that contain secrets are refused.",
        driver_keywords,
        default="",
    )
    read_timeout_seconds: int = 1

    @property
    def dialect(self) -> Dialect:
        """The dialect of the server's product."""
        return DIALECTS[self.dialect_name]

    def addresses(self) -> list[tuple[str, int]]:
        """Return the hosts and ports to try, in order."""
        return addresses(self.host, self.port)

    @property
    def address(self) -> str:
        """The server's address, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self.addresses())

    def settings(self, database: str, db_locale: str = "") -> ConnectionSettings:
        """Return the settings of a connection to one of the server's databases, without the password.

        The password is fetched when the connection is opened: `fetch_password`.
        """
        locale, keywords = client_locale(self.connection_string)
        return ConnectionSettings(
            host=self.host,
            port=self.port,
            server=self.server,
            database=database,
            user=self.user,
            password="",
            driver=self.driver,
            db_locale=db_locale,
            client_locale=locale,
            extra=keywords,
            dialect=self.dialect,
            encryption=self.encryption,
            authentication=self.authentication,
            tls_ca_file=self.tls_ca_file,
            tls_certificate_file=self.tls_certificate_file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSelection:
    """Which tables are captured."""

    listed: tuple[str, ...] = option(
        "Tables to capture, as owner.table, separated by commas. * in a name matches any characters, as"
        " in informix.ord*; an entry with ! excludes tables from patterns, as in !informix.ord_log*."
        " Patterns are resolved when a query starts, and once a minute with shape=json or arrow.",
        names,
        name="table",
    )
    heartbeat_table: str = option(
        "owner.table that is updated regularly. Its changes advance the restart position and are"
        " not delivered. Use it if captured tables are idle for long. A snapshot updates it"
        " after each chunk, besides creating and dropping a temporary table.",
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """Which columns are captured, and what their values become."""

    chosen: tuple[NamePath, ...] = option(
        "Columns to capture, separated by commas; as table.column if several tables are captured."
        " Put unusual names in double quotes. Default: all.",
        parse_names,
        default=(),
        name="columns",
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
    unsupported: Literal["fail", "omit", "omit-following"] = option(
        "How to handle columns of type TEXT, BYTE, collection, ROW or user-defined: fail the"
        " start, omit them, or omit-following (omit also the columns that follow a SET, MULTISET"
        " or LIST).",
        one_of("fail", "omit", "omit-following"),
        default="fail",
        name="unsupportedColumns",
    )
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

    def choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.chosen,
            unsupported=self.unsupported,
            lobs=self.lobs,
            simple_lobs=self.simple_lobs,
            masks=self.masks,
            mask_key=mask_key(self.mask_key_file) if self.mask_key_file else None,
        )

    @property
    def reads_objects(self) -> bool:
        """Whether smart large objects are read."""
        return self.lobs in ("content", "reselect")

    @property
    def reads_contents(self) -> bool:
        """Whether any large objects are read."""
        return self.reads_objects or self.simple_lobs == "reselect"

    def decode_rules(self, codec: str) -> DecodeRules:
        """Return the conversion rules for types with a choice."""
        return DecodeRules(
            codec=codec,
            keep_blanks=self.trailing_blanks == "keep",
            bad_characters=self.bad_characters,
            floating_decimal=self.floating_decimal,
            intervals=self.intervals,
            lobs="handle" if self.lobs == "omit" else self.lobs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectOptions:
    """How contents of large objects are read.

    Attributes:
        connections: number of connections that read them.
    """

    max_bytes: int = option(
        "Maximum size of a large object to read. Larger ones are delivered with their size and"
        " status too_large.",
        size(1, 1 << 30),
        default=16 << 20,
        name="lobMaxBytes",
    )
    read_seconds: int = option(
        "Seconds for which rows wait for the contents of their large objects. After that, unread"
        " ones have status not_read. 0 means no limit.",
        whole_number(0, 86_400),
        default=0,
        name="lobReadSeconds",
    )
    connections: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """How existing rows are read.

    Attributes:
        chunk_bytes: size at which a chunk ends before `chunk_rows` is reached.
        most_touched_keys: number of changed keys to remember while a chunk waits; if more change, the
            chunk is read again with fewer rows.
        standstill_seconds: a snapshot fails if the stream returns no record for so long while a chunk
            waits for it.
        lock_seconds: how long rows that other sessions have locked are tried again.
    """

    tables: tuple[str, ...] = option(
        "Tables to start with a snapshot of their existing rows, delivered as inserts with"
        " _snapshot=true: none (default), all, or names and patterns as in table. Needs spoolPath.",
        snapshot_tables,
        default=(),
        name="initialSnapshot",
    )
    keys: tuple[tuple[str, tuple[str, ...]], ...] = option(
        "Columns that identify a row, for tables without a primary key or unique index:"
        " owner.table(column, ...), separated by commas.",
        snapshot_keys,
        default=(),
        name="snapshotKey",
    )
    conditions: tuple[tuple[str, str], ...] = option(
        "Conditions that limit the rows of initialSnapshot, as owner.table: CONDITION, separated by"
        " semicolons. They do not filter the stream: every later change is delivered.",
        snapshot_conditions,
        default=(),
        name="snapshotWhere",
    )
    without_key: Literal["fail", "lock"] = option(
        "How to snapshot a table without a key: fail the start, or lock the table in share mode"
        " while it is read (writers wait).",
        one_of("fail", "lock"),
        default="fail",
        name="snapshotWithoutKey",
    )
    chunk_rows: int = option(
        "Maximum number of rows in a snapshot chunk, which also ends at 64 MiB.",
        whole_number(1, 10_000_000),
        default=50_000,
        name="snapshotChunkRows",
    )
    parallelism: int = option(
        "Number of tables to snapshot at the same time. Each uses two connections.",
        whole_number(1, 8),
        default=1,
        name="snapshotParallelism",
    )
    chunk_bytes: int = 64 << 20
    most_touched_keys: int = 1_000_000
    standstill_seconds: int = 60
    lock_seconds: int = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream starts, and what happens if something is lost.

    Attributes:
        max_records_per_read: number of CDC records per read; servers accept 1 to 256.
        read_buffer_bytes: size of the buffer of a read.
        stalled_seconds: time without progress, while the log of the server advances, after which a
            stream counts as stalled.
        discovery_seconds: interval at which patterns of tables are resolved again.
    """

    starting_position: str = option(
        "Where a new stream starts: latest (now), earliest (the oldest log file), or a sequence"
        " number (`log:0xpos`). With captureAt: earliest (the oldest stored row, the default there) or"
        " latest.",
        starting_position,
        default="latest",
    )
    on_data_loss: Literal["fail", "continue", "resync"] = option(
        "What to do if changes were lost: fail the query; continue at the oldest position available,"
        " and log the loss; or resync, which continues and reads the affected tables again. resync"
        " requires spoolPath, tableEvents=true and truncate=emit.",
        one_of("fail", "continue", "resync"),
        default="fail",
    )
    max_reconnect_seconds: int = option(
        "Seconds for which a lost connection is retried before the query fails.",
        whole_number(0, 604_800),
        default=60,
    )
    max_records_per_read: int = 256
    read_buffer_bytes: int = 256 << 10
    stalled_seconds: int = 120
    discovery_seconds: int = 60

    @property
    def fails_on_data_loss(self) -> bool:
        """Whether a query ends if changes were lost."""
        return self.on_data_loss == "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolOptions:
    """Where and when captured rows are stored.

    Attributes:
        segment_bytes: buffered bytes at which a segment is written before `max_latency_ms` has passed.
    """

    path: str = option(
        "Folder of the spool, which stores captured rows until Spark has committed them. Default:"
        " a private temporary folder. Set it to resume without reading the log again.",
        local_folder,
        default="",
        name="spoolPath",
    )
    segment_copies: str = option(
        "URL to which spool segments are copied for executors, such as s3://bucket/path or"
        " file:///mnt/path. URLs that contain secrets are refused.",
        url_of_copies,
        default="",
    )
    max_latency_ms: int = option(
        "Maximum time in milliseconds for which committed rows are buffered before they are"
        " written to the spool; a quarter of it while Spark has read all earlier rows. Raise it for"
        " fewer, larger segments.",
        whole_number(0, 60_000),
        default=20,
    )
    max_bytes: int = option(
        "Maximum size of rows in the spool that Spark has not yet read. If it is exceeded,"
        " reading from the server pauses.",
        size(1),
        default=16 << 30,
        name="maxSpoolBytes",
    )
    max_transaction_memory_bytes: int = option(
        "Maximum memory for the rows of open transactions. Above it, rows are spilled to files in"
        " spoolPath or in the system's temporary folder.",
        size(1 << 20),
        default=128 << 20,
    )
    segment_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """What a reader makes of stored changes."""

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
    before_image: bool = option(
        "Deliver also the row before an update, as update_preimage.", flag, default=True
    )
    truncate: Literal["fail", "emit", "ignore"] = option(
        "How to handle TRUNCATE of a captured table: fail the query, emit a row that tells the"
        " sink to empty its copy, or ignore it (only counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    table_events: bool = option(
        "Deliver the rows with which a sink can follow resync: range_start, range_skip and range_end"
        " (docs/operations/data-loss.md#a-sink-of-your-own). Needs shape=rows, json or arrow.",
        flag,
        default=False,
    )

    def form(self, server: str) -> RowForm:
        """Return the form of a row delivered from a server."""
        return RowForm(
            shape=self.shape,
            truncate=self.truncate,
            before_image=self.before_image,
            server=server,
            metadata=self.metadata,
            table_events=self.table_events,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """How much a micro-batch has, and how tasks get its rows.

    Attributes:
        max_partition_bytes: approximate number of spool bytes that one task reads.
    """

    max_rows_per_trigger: int = option(
        "Maximum number of changes in a micro-batch; an update counts as two. A larger transaction is"
        " delivered as one batch. 0 means no limit.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_bytes_per_trigger: int = option(
        "Maximum size of a micro-batch, as stored in the spool, such as 64m or 2g. 0 means no limit. If"
        " both limits are set, the first one reached ends the batch.",
        size(0),
        default=0,
    )
    min_partitions: int = option(
        "Approximate minimum number of tasks that read a micro-batch. Raise it to use more"
        " executor cores.",
        whole_number(1, 10_000),
        default=1,
    )
    delivery: str = option(
        "How executors get rows: files (from spoolPath, otherwise from segmentCopies), or an address of"
        " the driver that executors can reach, as grpc+tls://HOST:PORT, which serves Arrow Flight."
        " Without :PORT, any free port.",
        delivery_place,
        default=FILES,
    )
    stop_at_end: bool = option(
        "Deliver what was committed before the start, in any number of batches, and nothing later. For"
        " Spark 4.0 and 4.1, whose AvailableNow is one batch: call processAllAvailable(), then stop().",
        flag,
        default=False,
    )
    max_partition_bytes: int = 64 << 20

    @property
    def flight_address(self) -> tuple[str, int] | None:
        """Host and port (0: any) of the driver's Flight server; None if rows are read in files."""
        return None if self.delivery == FILES else host_and_port(self.delivery.removeprefix(FLIGHT))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCaptureOptions:
    """A capture of another process."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Figures and logs."""

    metrics_address: str = option(
        "Address on which the driver serves Prometheus metrics, as HOST:PORT, or PORT alone for"
        " 127.0.0.1. 0.0.0.0 listens on all interfaces. Default: no metrics.",
        metrics_place,
        default="",
    )
    log_level: Literal["error", "warning", "info", "debug"] = option(
        "Least severe level that the source logs to the driver's standard error: error, warning,"
        " info or debug.",
        one_of("error", "warning", "info", "debug"),
        default="warning",
    )

    @property
    def metrics(self) -> tuple[str, int] | None:
        """Host and port of the metrics; None if none are served."""
        return host_and_port(self.metrics_address)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredOptions:
    """All options of the source."""

    connection: ConnectionOptions
    tables: TableSelection
    columns: ColumnOptions
    objects: ObjectOptions = field(default_factory=ObjectOptions)
    snapshots: SnapshotOptions = field(default_factory=SnapshotOptions)
    stream: StreamOptions = field(default_factory=StreamOptions)
    spool: SpoolOptions = field(default_factory=SpoolOptions)
    rows: RowOptions = field(default_factory=RowOptions)
    batches: BatchOptions = field(default_factory=BatchOptions)
    shared: SharedCaptureOptions = field(default_factory=SharedCaptureOptions)
    reports: ReportOptions = field(default_factory=ReportOptions)


GROUPS: Mapping[str, type] = {
    "connection": ConnectionOptions,
    "tables": TableSelection,
    "columns": ColumnOptions,
    "objects": ObjectOptions,
    "snapshots": SnapshotOptions,
    "stream": StreamOptions,
    "spool": SpoolOptions,
    "rows": RowOptions,
    "batches": BatchOptions,
    "shared": SharedCaptureOptions,
    "reports": ReportOptions,
}
# Each option's group and field, in the order of the manual.
DECLARED: tuple[tuple[str, Field[Any]], ...] = tuple(
    (name, each) for name, kind in GROUPS.items() for each in fields(kind) if each.metadata
)
OPTION_NAMES = tuple(option_name(declared) for _, declared in DECLARED)

# The options that decide what a reader makes of stored changes: a shared capture stores them for all.
OF_ROWS = ("shape", "metadata", "beforeImage", "truncate")
# The options of a query that reads a shared capture; all others are options of the capture, which has
# tableEvents as well.
OF_READERS = frozenset(
    (
        *(*OF_ROWS, "tableEvents"),
        *("captureAt", "reader", "readerFile", "startingPosition"),
        *("delivery", "minPartitions", "stopAtEnd"),
        *("maxRowsPerTrigger", "maxBytesPerTrigger"),
        *("onDataLoss", "logLevel"),
    )
)
