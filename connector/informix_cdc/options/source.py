"""Every option of the source, declared once: name, type, default, meaning and secrecy.

Rule: parsing, validation, the manual's tables and `--help` derive from this declaration. Spark hands
option names over in lower case; an unknown one is refused with the nearest name that exists.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, cast

from informix_capture_client.choices import ColumnChoice, DecodeRules, RowForm, parse_names
from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import NamePath, TableName
from informix_cdc.options.connection import PASSWORD_VARIABLE as PASSWORD_VARIABLE
from informix_cdc.options.connection import password_from, with_connection_string
from informix_cdc.options.declaring import (
    flag,
    floating_decimal,
    one_of,
    option,
    size,
    starting_position,
    whole_number,
)
from informix_cdc.options.executors import LOOPBACK, DeliveryOptions, listening_address
from informix_checkpoints.limits import BatchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(DeliveryOptions):
    """What a user may set; each field is an option of the same name in camel case."""

    starting_position: str = option(
        "Where a new stream begins: latest, earliest (oldest log), or a sequence number (`log:0xpos`).",
        starting_position,
        default="latest",
    )
    read_timeout_seconds: int = option(
        "How long the server waits for data before it says that there is none; a stop waits as long.",
        whole_number(1, 60),
        default=1,
    )
    max_records_per_read: int = option(
        "Upper limit of records in one read; servers take 1 to 256.", whole_number(1, 256), default=256
    )
    read_buffer_bytes: int = option("Size of the read buffer.", size(128, 1 << 30), default=256 * 1024)
    truncate: str = option(
        "What TRUNCATE does: fail the query, emit a row, or ignore (counted).",
        one_of("fail", "emit", "ignore"),
        default="fail",
    )
    floating_decimal: str | int = option(
        "What DECIMAL(p) without a scale becomes: string (exact), double, or decimal(38,n).",
        floating_decimal,
        default="string",
    )
    intervals: str = option(
        "typed (months as INT, else INTERVAL DAY TO SECOND), or string as Informix prints them.",
        one_of("typed", "string"),
        default="typed",
    )
    trailing_blanks: str = option(
        "cut or keep those of CHAR and NCHAR.", one_of("cut", "keep"), default="cut"
    )
    bad_characters: str = option(
        "What bytes do that are not valid in the database's code set: fail, or replace by U+FFFD.",
        one_of("fail", "replace"),
        default="fail",
    )

    columns: tuple[NamePath, ...] = option(
        "Include list: names of columns, with several tables as table.column, with commas; odd names in"
        " double quotes.",
        parse_names,
        default=(),
    )
    unsupported_columns: str = option(
        "What TEXT, BYTE, collections, ROW and user-defined types do: fail, or omit the column.",
        one_of("fail", "omit"),
        default="fail",
    )
    lobs: str = option(
        "BLOB and CLOB: handle (its 76 bytes as BINARY), or omit the column.",
        one_of("handle", "omit"),
        default="handle",
    )
    shape: str = option(
        "Form of a row: rows, envelope (Debezium's before/after/op/source), or raw (one row per CDC"
        " record).",
        one_of("rows", "envelope", "raw"),
        default="rows",
    )
    max_rows_per_trigger: int = option(
        "The most rows of a micro-batch; a larger transaction goes alone. 0: no limit.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_bytes_per_trigger: int = option(
        "The most bytes of a micro-batch, as they lie in the spool (64m, 2g). 0: no limit.",
        size(0),
        default=0,
    )
    max_transactions_per_trigger: int = option(
        "The most transactions of a micro-batch; of the three limits the first one reached ends it.",
        whole_number(0, 1 << 62),
        default=0,
    )
    max_latency_ms: int = option(
        "How long committed rows wait for company before they go into the spool.",
        whole_number(0, 60_000),
        default=20,
    )
    segment_bytes: int = option(
        "How many bytes of committed records, in memory, are worth a segment of the spool at once.",
        size(1 << 10),
        default=16 << 20,
    )
    max_spool_bytes: int = option(
        "How much may lie in the spool that Spark has not taken; beyond it reading pauses.",
        size(1),
        default=16 << 30,
    )
    max_transaction_memory_bytes: int = option(
        "How much the rows of open transactions take in memory; beyond it they go to files in"
        " spoolPath, or the system's temporary folder.",
        size(1 << 20),
        default=128 << 20,
    )
    fail_on_data_loss: bool = option(
        "Whether lost changes end the query; else it goes on at the oldest position left, and says so.",
        flag,
        default=True,
    )
    max_reconnect_seconds: int = option(
        "How long a lost connection is tried again before the query fails.",
        whole_number(0, 604_800),
        default=60,
    )
    max_reconnect_attempts: int = option(
        "How often it is tried again; 0: as often as the time allows.",
        whole_number(0, 1_000_000),
        default=0,
    )
    stalled: str = option(
        "What a stream does that stands still while the server's log moves, after one new session: warn"
        " or fail.",
        one_of("warn", "fail"),
        default="warn",
    )
    stalled_seconds: int = option(
        "How long it must stand still for that.", whole_number(1, 86_400), default=120
    )
    heartbeat_table: str = option(
        "owner.table that something updates now and then: its changes move the restart position and are"
        " not delivered.",
        default="",
    )
    before_image: bool = option(
        "Whether an update also gives its update_preimage row.", flag, default=True
    )
    metrics_port: int = option(
        "Port on which the driver shows Prometheus the stream's figures; 0: none.",
        whole_number(0, 65535),
        default=0,
    )
    metrics_host: str = option(
        "Address of the driver on which it does so; 0.0.0.0 is all of them.",
        listening_address,
        default=LOOPBACK,
    )
    log_level: str = option(
        "What the source logs to the driver's standard error: error, warning or info, and above.",
        one_of("error", "warning", "info"),
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
        _refuse_unknown(lowered)
        merged = with_connection_string(lowered)
        values: dict[str, Any] = {f.name: _read(f, merged) for f in fields(cls)}
        options = cls(**values)
        options.table_names()
        options.heartbeat()
        return replace(
            options,
            user=options.user or options.dialect.owner,
            password=password_from(options, environment),
        )

    def without_secrets(self) -> SourceOptions:
        """Return the same options without the password, for a journey to the executors."""
        return replace(self, password="")

    def column_choice(self) -> ColumnChoice:
        """Return which columns are captured."""
        return ColumnChoice(
            names=self.columns,
            unsupported=cast("Any", self.unsupported_columns),
            lobs=cast("Any", self.lobs),
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
        )

    def row_form(self) -> RowForm:
        """Return the form of a delivered row."""
        return RowForm(
            shape=cast("Any", self.shape),
            truncate=cast("Any", self.truncate),
            before_image=self.before_image,
            server=self.server,
        )


_KIBI = 1024


def option_name(declared: Field[Any]) -> str:
    """Return the name under which users set a field."""
    first, *rest = declared.name.split("_")
    return str(declared.metadata["name"]) or first + "".join(part.capitalize() for part in rest)


def option_rows() -> Iterator[tuple[str, str, str]]:
    """Yield (name, default, meaning) of every option, for the manual and for help texts."""
    for declared in fields(SourceOptions):
        default = "required" if declared.default is MISSING else _shown(declared.default)
        yield option_name(declared), default, str(declared.metadata["doc"])


def _shown(default: object) -> str:
    """Return a default as a user would write it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int) and default >= _KIBI and default % _KIBI == 0:
        power = 2 if default % _KIBI**2 == 0 else 1
        power = 3 if default % _KIBI**3 == 0 else power
        return f"{default // _KIBI**power}{' kmg'[power]}"
    return "" if default in (None, ()) else str(default)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    names = {option_name(declared).lower(): option_name(declared) for declared in fields(SourceOptions)}
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
            raise BadOption(
                f"option {key!r} is not known.", f"Did you mean {names[near[0]]!r}?", option=key
            )


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
        raise BadOption(f"option {name!r} {reason}, not {text!r}.", option=name) from None
