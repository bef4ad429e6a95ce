"""Every option of the source, declared once: name, type, default, meaning and secrecy.

Rule: parsing, validation, the manual's tables and `--help` derive from this declaration. Spark hands
option names over in lower case; whatever is wrong with any of them is told in one error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, cast

from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm, parse_names
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import NamePath, TableName
from informix_cdc.options.authentication import PASSWORD_VARIABLE as PASSWORD_VARIABLE
from informix_cdc.options.authentication import require_access, user_to_connect_as
from informix_cdc.options.connection_string import with_connection_string
from informix_cdc.options.declaring import (
    flag,
    floating_decimal,
    one_of,
    option,
    option_name,
    size,
    size_text,
    starting_position,
    whole_number,
)
from informix_cdc.options.executors import LOOPBACK, listening_address, local_folder
from informix_cdc.options.problems import OptionErrors, refuse_unknown
from informix_cdc.options.row_form import (
    LargeObjectOptions,
    require_contents_may_be,
    require_discovery_may_be,
    require_metadata_of_shape,
    row_form,
)
from informix_cdc.options.snapshots import require_snapshot_may_be
from informix_cdc.options.switches import require_allowed_driver
from informix_cdc.options.transports import chosen_transport, require_transport
from informix_checkpoints.limits import BatchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(LargeObjectOptions):
    """What a user may set; each field is an option of the same name in camel case."""

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
    truncate: str = option(
        "What a TRUNCATE of a captured table does: fail the query, emit a row on which the sink must"
        " empty its copy, or ignore it (it is counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    floating_decimal: str | int = option(
        "Spark type of a DECIMAL(p) column without a scale: string (exact), double, or decimal(38,n).",
        floating_decimal,
        default="string",
    )
    intervals: str = option(
        "Spark type of INTERVAL columns: typed (YEAR-MONTH ones as INT months, others as INTERVAL DAY"
        " TO SECOND), or string (as Informix prints them).",
        one_of("typed", "string"),
        default="typed",
    )
    trailing_blanks: str = option(
        "Whether to cut or keep the trailing blanks of CHAR and NCHAR values.",
        one_of("cut", "keep"),
        default="cut",
    )
    bad_characters: str = option(
        "What bytes that are invalid in the database's code set do: fail the query, or replace (they"
        " become U+FFFD).",
        one_of("fail", "replace"),
        default="fail",
    )

    columns: tuple[NamePath, ...] = option(
        "Columns to capture, separated by commas, as table.column where several tables are captured;"
        " unusual names in double quotes; default: all.",
        parse_names,
        default=(),
    )
    unsupported_columns: str = option(
        "What a column of type TEXT, BYTE, collection, ROW or user-defined does: fail the start, omit"
        " (it is left out), or omit-following (columns that follow a SET, MULTISET or LIST are left out"
        " as well).",
        one_of("fail", "omit", "omit-following"),
        default="fail",
    )
    shape: str = option(
        "Form of a delivered row: rows (one per change), json (one per change, before and after as"
        " JSON, the same for any number of tables), arrow (changes of one table as an Arrow stream of"
        " typed columns, the same for any number of tables), envelope (Debezium's"
        " before/after/op/source), or raw (one per CDC record).",
        one_of("rows", "json", "arrow", "envelope", "raw"),
        default="rows",
    )
    metadata: str = option(
        "Which columns about a change stand beside its row: full (ten), or minimal (_change_type,"
        " _commit_version, _commit_timestamp, _change_ordinal, and _table where several tables are"
        " captured).",
        one_of("full", "minimal"),
        default="full",
    )
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
    stalled: str = option(
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
    restart_bound: str = option(
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
    log_level: str = option(
        "Least severe level that the source logs to the driver's standard error: error, warning, info"
        " or debug.",
        one_of("error", "warning", "info", "debug"),
        default="warning",
    )

    @classmethod
    def parse(
        cls, given: Mapping[str, str], environment: Mapping[str, str] = os.environ
    ) -> SourceOptions:
        """Build the options from Spark's map of strings.

        Raises:
            BadOption: an option is unknown, missing or malformed; the message names it.
        """
        lowered = {key.lower(): value for key, value in given.items()}
        every = [option_name(declared) for declared in fields(cls)]
        problems = OptionErrors(every)
        refuse_unknown(lowered, problems, every)
        merged = lowered
        with problems.of("connectionString"):
            merged = with_connection_string(lowered)
        values: dict[str, Any] = {}
        for declared, name in zip(fields(cls), every, strict=True):
            if problems.has("connectionString") and not lowered.get(name.lower()):
                continue  # it may stand in the connection string
            with problems.of(name):
                values[declared.name] = _read(declared, merged)
        options = cls(**{**_unread(fields(cls)), **values})  # to be looked at, if all was read or not
        if not problems.has("connectionString"):
            options = replace(options, transport=chosen_transport(options, environment))
        for name, check in _TOGETHER.items():
            with problems.of(name):
                check(options, environment)
        if not (problems.has("delivery") or problems.has("flightHost")):
            with problems.of("flightPort"):
                options.refuse_unused_addresses()
        problems.raise_all()
        return replace(options, user=user_to_connect_as(options))

    def without_secrets(self) -> SourceOptions:
        """Return the same options for executors, which open no connection to the server.

        Neither the password travels there nor a word of where it is, nor of where the key of the
        client's certificate is.
        """
        return replace(
            self,
            password="",
            password_file="",
            password_command="",
            connection_string="",
            tls_ca_file="",
            tls_certificate_file="",
            tls_key_file="",
        )

    def column_choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.columns,
            unsupported=cast("Any", self.unsupported_columns),
            lobs=cast("Any", self.lobs),
            simple_lobs=cast("Any", self.simple_lobs),
        )

    def heartbeat(self) -> TableName | None:
        """Return the table whose changes only move the stream.

        Raises:
            BadOption: it is one of the captured tables, or not a name.
        """
        if not self.heartbeat_table:
            return None
        name = TableName.parse(self.heartbeat_table, self.database)
        if name in self.table_names():
            raise BadOption(
                "option 'heartbeatTable' names a captured table, whose rows would not be delivered.",
                "Name a table of its own, or leave the option out: captured tables move the stream.",
                option="heartbeatTable",
            )
        return name

    @property
    def bounds_restart(self) -> bool:
        """Whether the server's list of open transactions bounds the restart position."""
        return self.restart_bound == "server"

    def batch_limits(self) -> BatchLimits:
        """Return the most that a micro-batch takes."""
        return BatchLimits(
            self.max_rows_per_trigger or None,
            self.max_bytes_per_trigger or None,
            self.max_transactions_per_trigger or None,
        )

    def decode_rules(self, codec: str) -> DecodeRules:
        """Return what columns become where there is a choice."""
        return DecodeRules(
            codec=codec,
            keep_blanks=self.trailing_blanks == "keep",
            bad_characters=cast("Any", self.bad_characters),
            floating_decimal=cast("Any", self.floating_decimal),
            intervals=cast("Any", self.intervals),
            lobs=cast("Any", self.lobs if self.reads_objects else "handle"),
        )

    def row_form(self) -> RowForm:
        """Return the form of a delivered row."""
        return row_form(self)


# what is looked at once all options are read, by the option that is to blame
_TOGETHER: Mapping[str, Callable[[SourceOptions, Mapping[str, str]], object]] = {
    "table": lambda options, _: options.table_choice(),
    "heartbeatTable": lambda options, _: options.heartbeat(),
    "driver": require_allowed_driver,
    "metadata": lambda options, _: require_metadata_of_shape(options),
    "discoverySeconds": lambda options, _: require_discovery_may_be(options),
    "lobs": lambda options, _: require_contents_may_be("lobs", options.lobs, options),
    "simpleLobs": lambda options, _: require_contents_may_be(
        "simpleLobs", options.simple_lobs, options
    ),
    "initialSnapshot": lambda options, _: require_snapshot_may_be(options),
    "transport": lambda options, _: require_transport(options),
    "password": require_access,
}


def option_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, default, meaning) of every option, for the manual and for help texts."""
    for declared in fields(SourceOptions):
        default = "required" if declared.default is MISSING else _shown(declared.default)
        yield option_name(declared), default, str(declared.metadata["doc"])


def option_readers() -> dict[str, Callable[[str], Any]]:
    """Return how the text of each option is read; what it may not be is a ValueError."""
    return {option_name(declared): declared.metadata["read"] for declared in fields(SourceOptions)}


def missing_options(given: Mapping[str, str]) -> list[str]:
    """Return the options that must be given and are not, by themselves or in the connection string.

    Raises:
        BadOption: the connection string holds a password, or contradicts an option.
    """
    merged = with_connection_string({key.lower(): value for key, value in given.items()})
    names = [option_name(each) for each in fields(SourceOptions) if each.default is MISSING]
    return [name for name in names if not merged.get(name.lower())]


def _shown(default: object) -> str:
    """Return a default as a user would write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int):
        return size_text(default)
    return "" if default in (None, ()) else str(default)


def _unread(declared: Iterable[Field[Any]]) -> dict[str, Any]:
    """Return what stands for values that could not be read, while the others are looked at."""
    return {
        each.name: (() if each.name == "tables" else "") if each.default is MISSING else each.default
        for each in declared
    }


def _read(declared: Field[Any], given: Mapping[str, str]) -> object:
    name = option_name(declared)
    text = given.get(name.lower())
    if not text:
        if declared.default is MISSING:
            raise BadOption(f"option {name!r} is missing.", declared.metadata["doc"], option=name)
        return declared.default
    try:
        return declared.metadata["read"](text)
    except ValueError as reason:
        # without the value, which may be a password in the wrong place
        raise BadOption(f"option {name!r} {reason}.", option=name) from None
