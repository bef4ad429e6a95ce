"""What options may not be together: one table of rules, by the option that an error is about.

Rule: a rule is a row. Of the rules of one option, the first that is broken is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from informix_capture_client.choices import RowForm
from informix_capture_client.errors import BadOption
from informix_capture_client.transport import PROTOCOLS, TLS, read_keywords
from informix_cdc.options.authentication import DRIVER_SWITCH, forbidden_by, require_access
from informix_cdc.options.declared import DeclaredOptions
from informix_cdc.options.declaring import HEARTBEAT_MARKER
from informix_cdc.options.table_options import (
    heartbeat_table,
    snapshot_choice,
    snapshot_key_names,
    table_choice,
)
from informix_cdc.options.transports import (
    asks_for_driver,
    certificate_option,
    has_client_locale,
)

# Keywords of a connection string that name a library; TDLL is short for TRANSLATIONDLL.
_LIBRARIES = ("driver", "translationdll", "tdll", "translationlibrary")
_SHAPES_OF_THEIR_OWN = ("envelope", "raw")  # whose columns about a change are others


@dataclass(frozen=True, slots=True)
class Rule:
    """What is refused, and what to say then.

    Attributes:
        is_broken: tells whether the options break the rule.
        message: what is wrong; `{it.shape}` stands for the value of an option.
        remedy: what to do about it.
        about: the option that the error names; by default the one under which the rule stands.
        is_of_stream: whether the rule is one of streams only, and not of a command that runs none.
    """

    is_broken: Callable[[DeclaredOptions], object]
    message: str
    remedy: str
    about: str = ""
    is_of_stream: bool = False


Reading = Callable[[DeclaredOptions, Mapping[str, str]], object]
"""Reads what options name, with an environment; raises BadOption where it cannot be read."""


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
    """Tell whether the driver would be given a protocol other than the one of encryption=tls."""
    named = (each.name.lower() for each in read_keywords(options.connection_string))
    return options.encryption == TLS and "protocol" in named


def _refuse_forbidden_driver(options: DeclaredOptions, environment: Mapping[str, str]) -> None:
    """Refuse option driver where it is switched off; the one of INFORMIXDIR is the environment's own.

    A library's code runs as soon as it is loaded, before anybody can ask whether it is a driver.
    """
    if not (setting := forbidden_by(DRIVER_SWITCH, environment)):
        return
    named = [each.name for each in read_keywords(options.connection_string)]
    in_string = [name for name in named if name.lower() in _LIBRARIES]
    if options.driver or in_string:
        what = "option 'driver'" if options.driver else f"{in_string[0]} in option 'connectionString'"
        raise BadOption(
            f"{what} is not taken: {setting} is set here.",
            "Leave it away: the driver under INFORMIXDIR (GBASEDBTDIR) of this environment is loaded.",
            option="driver" if options.driver else "connectionString",
        )


def _refuse_what_a_driver_ignores(options: DeclaredOptions, _: Mapping[str, str]) -> None:
    """Name the option that asks for a driver, if that is why: `auto` stands for odbc then."""
    if options.transport == "sqli":
        return
    asking = asks_for_driver(options)
    sqli = f"leave option {asking} out and set transport=sqli" if asking else "set transport=sqli"
    driver = f"the ODBC driver that option {asking} asks for" if asking else "transport=odbc"
    if "," in options.host:
        raise BadOption(
            f"option 'host' is a list, which {driver} cannot try in turn.",
            f"Make them a group in sqlhosts, and name that in option server; or {sqli}.",
            option="host",
        )
    if name := certificate_option(options):
        raise BadOption(
            f"option {name!r} means nothing with {driver}: certificates are read from the keystore"
            " that conssl.cfg names.",
            f"Put the certificate into that keystore, or {sqli}.",
            option=name,
        )


def _refuse_certificates_of_no_tls(options: DeclaredOptions, _: Mapping[str, str]) -> None:
    name = certificate_option(options)
    if name and options.encryption != TLS:
        raise BadOption(
            f"option {name!r} means nothing without encryption=tls.",
            "Set encryption=tls, or leave it away.",
            option=name,
        )


def _contents_rules(name: str, field: str) -> tuple[Rule, ...]:
    """Return the rules of an option by which contents of large objects are read."""

    def reads_contents(options: DeclaredOptions) -> bool:
        return getattr(options, field) in ("content", "reselect")

    return (
        Rule(
            lambda it: reads_contents(it) and it.shape == "raw",
            f"option '{name}' is {{it.{field}}}, which has no meaning with shape=raw: its records are"
            " as they came.",
            f"Set shape to rows, json, arrow or envelope, or leave {name} out.",
        ),
        Rule(
            lambda it: reads_contents(it) and not it.spool_path,
            f"option '{name}' is {{it.{field}}}, which needs option spoolPath: an object may have"
            " changed when a batch has to show it again.",
            "Set spoolPath to a folder that outlives the query.",
            about="spoolPath",
            is_of_stream=True,
        ),
    )


_NO_DRIVER = "means nothing with transport=sqli, which loads no driver."

RULES: Mapping[str, tuple[Rule | Reading, ...]] = {
    "table": (lambda it, _: table_choice(it),),
    "heartbeatTable": (lambda it, _: heartbeat_table(it),),
    "password": (require_access,),
    "driver": (_refuse_forbidden_driver,),
    "connectionString": (
        Rule(
            _has_plain_protocol,
            f"option 'connectionString' has a PROTOCOL other than {PROTOCOLS[TLS]}, which"
            " encryption=tls means.",
            "Keep one of them.",
        ),
    ),
    "transport": (
        Rule(
            lambda it: it.transport == "sqli" and it.driver,
            f"option 'driver' {_NO_DRIVER}",
            "Leave it away, or set transport=odbc.",
            about="driver",
        ),
        Rule(
            lambda it: it.transport == "sqli" and it.connection_string,
            "option 'connectionString' has keywords for a driver, and transport=sqli loads none.",
            "Take them out, or set transport=odbc.",
            about="connectionString",
        ),
        Rule(
            lambda it: it.transport == "sqli" and has_client_locale(it),
            "option 'clientLocale' means nothing with transport=sqli, which reads texts in the code set"
            " of the database.",
            "Leave it away.",
            about="clientLocale",
        ),
        Rule(
            lambda it: it.tls_key_file and not it.tls_certificate_file,
            "option 'tlsKeyFile' is the key of a certificate that is not named.",
            "Set option tlsCertificateFile.",
            about="tlsKeyFile",
        ),
        _refuse_what_a_driver_ignores,
        _refuse_certificates_of_no_tls,
    ),
    "flightPort": (
        Rule(
            lambda it: it.flight_host and it.deliver_by == "files",
            "option 'flightHost' means nothing with delivery=files.",
            "Keep one of them.",
            about="flightHost",
        ),
        Rule(
            lambda it: it.flight_port and it.deliver_by != "flight" and not it.flight_host,
            "option 'flightPort' means nothing where no Flight server is asked for.",
            "Set flightHost to an address of the driver, or delivery=flight; or leave it out.",
        ),
    ),
    "initialSnapshot": (
        lambda it, _: it.initial_snapshot and (snapshot_choice(it), snapshot_key_names(it)),
        Rule(
            lambda it: it.initial_snapshot and it.shape == "raw",
            "option 'initialSnapshot' has no meaning with shape=raw, whose rows are records of a log.",
            "Set shape to rows, json, arrow or envelope, or leave initialSnapshot out.",
        ),
        Rule(
            lambda it: it.initial_snapshot and it.starting_position != "latest",
            "option 'initialSnapshot' begins a stream now: rows of a snapshot are as they are when they"
            " are read, and startingPosition={it.starting_position} asks for changes before.",
            "Leave startingPosition out.",
            about="startingPosition",
        ),
        Rule(
            lambda it: it.initial_snapshot and not it.spool_path,
            "option 'initialSnapshot' needs option spoolPath: rows of a snapshot that a batch has to"
            " show again are nowhere else.",
            "Set spoolPath to a folder that outlives the query.",
            about="spoolPath",
            is_of_stream=True,
        ),
        Rule(
            lambda it: (
                it.initial_snapshot
                and it.snapshot_marker == HEARTBEAT_MARKER
                and not it.heartbeat_table
            ),
            "option 'snapshotMarker' is heartbeat, and option heartbeatTable names no table.",
            "Set heartbeatTable, or leave snapshotMarker out.",
            about="heartbeatTable",
        ),
    ),
    "lobs": _contents_rules("lobs", "lobs"),
    "simpleLobs": _contents_rules("simpleLobs", "simple_lobs"),
    "metadata": (
        Rule(
            lambda it: it.metadata != "full" and it.shape in _SHAPES_OF_THEIR_OWN,
            "option 'metadata' has no meaning with shape={it.shape}, whose columns are its own.",
            "Leave it out, or set shape to rows, json or arrow.",
        ),
    ),
    "discoverySeconds": (
        Rule(
            # Spark fixes a query's schema when it starts
            lambda it: it.discovery_seconds and not RowForm(shape=it.shape).has_fixed_schema,
            "option 'discoverySeconds' has no meaning with shape={it.shape}, whose columns depend"
            " on the tables and are fixed while a query runs.",
            "Set shape to json or arrow, whose columns are the same for any number of tables, or leave"
            " discoverySeconds out.",
        ),
    ),
}
