"""Which transport connects, and which options belong to it: what would mean nothing is refused.

Rule: an option that is taken is heeded; nobody is to believe that a file of certificates is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport import TLS, find_driver
from informix_cdc.options.connection_string import for_the_driver
from informix_cdc.options.declaring import WordChoice, one_of

if TYPE_CHECKING:
    from informix_cdc.options.connection import ConnectionOptions

AUTO, ODBC, SQLI = "auto", "odbc", "sqli"
_WAYS = one_of(AUTO, ODBC, SQLI)


def _read(text: str) -> str:
    if text.strip().lower() == "emulator":
        raise BadOption(
            "option 'transport': the emulator has no protocol of its own any more.",
            "Set transport=sqli: it speaks Informix's, as a server does.",
            option="transport",
        )
    return _WAYS.read(text)


transport_name = WordChoice(_WAYS.words, _read)


def chosen_transport(options: ConnectionOptions, environment: Mapping[str, str]) -> str:
    """Return odbc or sqli: the one that option `transport` names, or the one that `auto` stands for.

    An option that only one of them heeds decides first, then whether this host has a driver.
    """
    if options.transport != AUTO:
        return options.transport
    if _asks_for_driver(options):
        return ODBC
    if rules_out_driver(options):
        return SQLI
    try:
        find_driver("", environment, options.dialect)
    except AccessRefused:
        return SQLI
    return ODBC


def _asks_for_driver(options: ConnectionOptions) -> str:
    """Return the first option given that only a driver heeds; empty if there is none."""
    given = {
        "driver": bool(options.driver),
        "connectionString": bool(for_the_driver(options.connection_string)),
        "clientLocale": _has_client_locale(options),
    }
    return next((name for name, is_given in given.items() if is_given), "")


def rules_out_driver(options: ConnectionOptions) -> bool:
    """Tell whether an option is given that only a connection without a driver heeds."""
    return "," in options.host or bool(_has_certificates(options))


@dataclass(frozen=True, slots=True)
class _Rule:
    """An option that is refused under a condition, and what to say then."""

    option: str
    applies: Callable[[ConnectionOptions], bool]
    message: str
    remedy: str


def _is_sqli(options: ConnectionOptions) -> bool:
    return options.transport == SQLI


def _has_client_locale(options: ConnectionOptions) -> bool:
    return options.client_locale.lower() != "en_us.utf8"


def _has_certificates(options: ConnectionOptions) -> str:
    """Return the first option given that only a native TLS connection has; empty if there is none."""
    given = {
        "tlsCaFile": options.tls_ca_file,
        "tlsCertificateFile": options.tls_certificate_file,
        "tlsKeyFile": options.tls_key_file,
    }
    return next((name for name, path in given.items() if path), "")


_NO_DRIVER = "means nothing with transport=sqli, which loads no driver."
_RULES = (
    _Rule(
        "driver",
        lambda it: _is_sqli(it) and bool(it.driver),
        f"option 'driver' {_NO_DRIVER}",
        "Leave it away, or set transport=odbc.",
    ),
    _Rule(
        "connectionString",
        lambda it: _is_sqli(it) and bool(for_the_driver(it.connection_string)),
        "option 'connectionString' has keywords for a driver, and transport=sqli loads none.",
        "Take them out, or set transport=odbc.",
    ),
    _Rule(
        "clientLocale",
        lambda it: _is_sqli(it) and _has_client_locale(it),
        "option 'clientLocale' means nothing with transport=sqli, which reads texts in the code set of"
        " the database.",
        "Leave it away.",
    ),
    _Rule(
        "tlsKeyFile",
        lambda it: bool(it.tls_key_file) and not it.tls_certificate_file,
        "option 'tlsKeyFile' is the key of a certificate that is not named.",
        "Set option tlsCertificateFile.",
    ),
)


def require_transport(options: ConnectionOptions) -> None:
    """Refuse what means nothing to the transport.

    Raises:
        BadOption: names the option and the remedy.
    """
    for rule in _RULES:
        if rule.applies(options):
            raise BadOption(rule.message, rule.remedy, option=rule.option)
    if not _is_sqli(options):
        _refuse_what_rules_out_a_driver(options)
    name = _has_certificates(options)
    if name and options.encryption != TLS:
        raise BadOption(
            f"option {name!r} means nothing without encryption=tls.",
            "Set encryption=tls, or leave it away.",
            option=name,
        )


def _refuse_what_rules_out_a_driver(options: ConnectionOptions) -> None:
    """Refuse what a driver does not heed; name the option that asks for one, if that is why.

    Nobody may have set transport=odbc: `auto` stands for it where an option asks for a driver.
    """
    asking = _asks_for_driver(options)
    sqli = f"leave option {asking} out and set transport=sqli" if asking else "set transport=sqli"
    driver = f"the ODBC driver that option {asking} asks for" if asking else "transport=odbc"
    if "," in options.host:
        raise BadOption(
            f"option 'host' is a list, which {driver} cannot try in turn.",
            f"Make them a group in sqlhosts, and name that in option server; or {sqli}.",
            option="host",
        )
    if name := _has_certificates(options):
        raise BadOption(
            f"option {name!r} means nothing with {driver}: certificates are read from the keystore"
            " that conssl.cfg names.",
            f"Put the certificate into that keystore, or {sqli}.",
            option=name,
        )
