"""Combinations of options that are refused, as a table of rules by option.

Rule: a rule is a row. Of the rules of one option, the first broken one is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import PROTOCOLS, TLS, read_keywords
from informix_cdc.options.authentication import DRIVER_SWITCH, forbidden_by, require_access
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import FLIGHT
from informix_cdc.options.table_options import (
    heartbeat_table,
    snapshot_choice,
    snapshot_conditions_by_table,
    snapshot_key_names,
    table_choice,
)
from informix_cdc.options.transports import asks_for_driver, certificate_option
from informix_checkpoints.reader_names import require_reader_name

# Keywords of a connection string that name a library; TDLL is short for TRANSLATIONDLL.
_LIBRARIES = ("driver", "translationdll", "tdll", "translationlibrary")
_ENVELOPE = "envelope"  # has other columns about a change


@dataclass(frozen=True, slots=True)
class Rule:
    """A combination of options that is refused, and the error to report.

    Attributes:
        is_broken: returns whether the options break the rule.
        message: what is wrong; `{it.rows.shape}` stands for the value of an option.
        remedy: how to fix it.
        about: the option that the error names; by default the one under which the rule is listed.
        is_of_stream: whether the rule applies to streams only, and not to other commands.
    """

    is_broken: Callable[[DeclaredOptions], object]
    message: str
    remedy: str
    about: str = ""
    is_of_stream: bool = False


Reading = Callable[[DeclaredOptions, Mapping[str, str]], object]
"""Reads a value from options and environment; raises BadOption if it is invalid."""


def check(
    option: str, rule: Rule | Reading, options: DeclaredOptions, environment: Mapping[str, str]
) -> None:
    """Check one rule.

    Raises:
        BadOption: the options break it.
    """
    if not isinstance(rule, Rule):
        rule(options, environment)
    elif rule.is_broken(options):
        raise BadOption(
            rule.message.format(it=options),
            rule.remedy.format(it=options),
            option=rule.about or option,
        )


def _has_plain_protocol(options: DeclaredOptions) -> bool:
    """Return whether the connection string sets a protocol other than the one of encryption=tls."""
    named = (each.name.lower() for each in read_keywords(options.connection.connection_string))
    return options.connection.encryption == TLS and "protocol" in named


def _refuse_forbidden_driver(options: DeclaredOptions, environment: Mapping[str, str]) -> None:
    """Refuse option driver where it is switched off; the driver of INFORMIXDIR is always allowed.

    Code in a library runs as soon as it is loaded, before it is known whether it is a driver.
    """
    if not (setting := forbidden_by(DRIVER_SWITCH, environment)):
        return
    named = [each.name for each in read_keywords(options.connection.connection_string)]
    in_string = [name for name in named if name.lower() in _LIBRARIES]
    if options.connection.driver or in_string:
        what = (
            "option 'driver'"
            if options.connection.driver
            else f"{in_string[0]} in option 'connectionString'"
        )
        raise BadOption(
            f"{what} is not allowed: {setting} is set in the environment.",
            "Remove it: the driver under INFORMIXDIR (GBASEDBTDIR) of this environment is loaded.",
            option="driver" if options.connection.driver else "connectionString",
        )


def _refuse_what_a_driver_ignores(options: DeclaredOptions, _: Mapping[str, str]) -> None:
    """Name the option that requires a driver, if that is the reason: `auto` means odbc then."""
    if options.connection.transport == "sqli":
        return
    asking = asks_for_driver(options.connection)
    sqli = f"remove option {asking} and set transport=sqli" if asking else "set transport=sqli"
    driver = f"the ODBC driver, which option {asking} requires" if asking else "transport=odbc"
    if "," in options.connection.host:
        raise BadOption(
            f"option 'host' is a list of hosts, which cannot be used with {driver}.",
            f"Define them as a group in sqlhosts, and set option server to its name; or {sqli}.",
            option="host",
        )
    if name := certificate_option(options.connection):
        raise BadOption(
            f"option {name!r} cannot be used with {driver}: certificates are read from the"
            " keystore that conssl.cfg names.",
            f"Add the certificate to that keystore, or {sqli}.",
            option=name,
        )


def _refuse_certificates_of_no_tls(options: DeclaredOptions, _: Mapping[str, str]) -> None:
    name = certificate_option(options.connection)
    if name and options.connection.encryption != TLS:
        raise BadOption(
            f"option {name!r} requires encryption=tls.",
            "Set encryption=tls, or remove it.",
            option=name,
        )


def _contents_rules(name: str, field: str) -> tuple[Rule, ...]:
    """Return the rules of an option that makes the source read contents of large objects."""

    def reads_contents(options: DeclaredOptions) -> bool:
        return getattr(options.columns, field) in ("content", "reselect")

    return (
        Rule(
            lambda it: reads_contents(it) and not it.spool.path,
            f"option '{name}' is {{it.columns.{field}}}, which requires option spoolPath: an object may"
            " have changed before a batch is repeated.",
            "Set spoolPath to a folder that persists after the query.",
            about="spoolPath",
            is_of_stream=True,
        ),
    )


_NO_DRIVER = "cannot be used with transport=sqli, which loads no driver."

_OLDEST_OR_NOW = ("earliest", "latest")
# Rules of the options of a query that reads a shared capture
RULES_OF_READERS = ("captureAt", "tableEvents", "metadata")

RULES: Mapping[str, tuple[Rule | Reading, ...]] = {
    "table": (lambda it, _: table_choice(it),),
    "captureAt": (
        Rule(
            lambda it: it.shared.capture_at and not it.shared.reader,
            "option 'captureAt' requires option 'reader'.",
            "Set reader to a name for this query, and keep it as long as the query's checkpoint.",
            about="reader",
        ),
        Rule(
            lambda it: it.shared.reader and not it.shared.capture_at,
            "option 'reader' requires option 'captureAt'.",
            "Set captureAt to the folder of the capture, or remove reader.",
            about="captureAt",
        ),
        lambda it, _: it.shared.reader and require_reader_name(it.shared.reader),
        Rule(
            lambda it: it.shared.capture_at.startswith(FLIGHT) and not it.shared.reader_file,
            "option 'captureAt' is an address, which requires option 'readerFile'.",
            "Write the file on the host of the capture: informix-cdc readers FOLDER --add NAME > FILE.",
            about="readerFile",
        ),
        Rule(
            lambda it: it.shared.reader_file and not it.shared.capture_at.startswith(FLIGHT),
            "option 'readerFile' is set, but captureAt is not an address.",
            "Set captureAt to grpc+tls://host:port of the capture, or remove readerFile.",
            about="readerFile",
        ),
        Rule(
            lambda it: it.shared.capture_at and it.stream.starting_position not in _OLDEST_OR_NOW,
            "option 'startingPosition' must be earliest or latest with captureAt.",
            "Set it to earliest (the oldest stored row) or latest, or remove it.",
            about="startingPosition",
        ),
    ),
    "heartbeatTable": (lambda it, _: heartbeat_table(it),),
    "password": (lambda it, environment: require_access(it.connection, environment),),
    "driver": (_refuse_forbidden_driver,),
    "connectionString": (
        Rule(
            _has_plain_protocol,
            f"option 'connectionString' has a PROTOCOL other than {PROTOCOLS[TLS]}, which"
            " encryption=tls requires.",
            "Remove one of them.",
        ),
    ),
    "transport": (
        Rule(
            lambda it: it.connection.transport == "sqli" and it.connection.driver,
            f"option 'driver' {_NO_DRIVER}",
            "Remove it, or set transport=odbc.",
            about="driver",
        ),
        Rule(
            lambda it: it.connection.transport == "sqli" and it.connection.connection_string,
            "option 'connectionString' has keywords for a driver, but transport=sqli loads no driver.",
            "Remove them, or set transport=odbc.",
            about="connectionString",
        ),
        _refuse_what_a_driver_ignores,
        _refuse_certificates_of_no_tls,
    ),
    "initialSnapshot": (
        lambda it, _: it.snapshots.tables and (snapshot_choice(it), snapshot_key_names(it)),
        Rule(
            lambda it: it.snapshots.tables and it.stream.starting_position != "latest",
            "option 'initialSnapshot' starts the stream now, but"
            " startingPosition={it.stream.starting_position} requests earlier changes.",
            "Remove startingPosition.",
            about="startingPosition",
        ),
        Rule(
            lambda it: it.snapshots.tables and not it.spool.path,
            "option 'initialSnapshot' requires option spoolPath: if a batch is repeated, its"
            " snapshot rows come from the spool.",
            "Set spoolPath to a folder that persists after the query.",
            about="spoolPath",
            is_of_stream=True,
        ),
    ),
    "tableEvents": (
        Rule(
            lambda it: it.rows.table_events and it.rows.shape == _ENVELOPE,
            "option 'tableEvents' cannot be used with shape={it.rows.shape}.",
            "Set shape to rows, json or arrow, or remove tableEvents.",
        ),
    ),
    "onDataLoss": (
        Rule(
            lambda it: (
                it.stream.on_data_loss == "resync"
                and not (it.spool.path and it.rows.table_events and it.rows.truncate == "emit")
            ),
            "option 'onDataLoss' is resync, which requires spoolPath, tableEvents=true and"
            " truncate=emit.",
            "Set them, and let the sink process the rows"
            " (docs/operations/data-loss.md#a-sink-of-your-own); or set onDataLoss to continue.",
            is_of_stream=True,
        ),
    ),
    "lobs": _contents_rules("lobs", "lobs"),
    "simpleLobs": _contents_rules("simpleLobs", "simple_lobs"),
    "mask": (
        Rule(
            lambda it: (
                any(entry.kind == "hash" for entry in it.columns.masks) and not it.columns.mask_key_file
            ),
            "option 'mask' has hash, which requires option maskKeyFile.",
            "Write a key with `openssl rand -hex 32 > mask.key`, and set maskKeyFile to its path.",
            about="maskKeyFile",
        ),
        Rule(
            lambda it: (
                it.columns.mask_key_file and not any(entry.kind == "hash" for entry in it.columns.masks)
            ),
            "option 'maskKeyFile' is set, but option mask has no hash.",
            "Remove it, or set mask=table.column=hash.",
            about="maskKeyFile",
        ),
    ),
    "snapshotWhere": (
        lambda it, _: snapshot_conditions_by_table(it),
        Rule(
            lambda it: it.snapshots.conditions and not it.snapshots.tables,
            "option 'snapshotWhere' is set, but initialSnapshot is none.",
            "Set initialSnapshot, or remove snapshotWhere.",
        ),
    ),
    "metadata": (
        Rule(
            lambda it: it.rows.metadata != "full" and it.rows.shape == _ENVELOPE,
            "option 'metadata' cannot be used with shape={it.rows.shape}, which has its own columns.",
            "Remove it, or set shape to rows, json or arrow.",
        ),
    ),
}
