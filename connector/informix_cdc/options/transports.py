"""Which transport connects, and which options only one of the two heeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import AccessRefused
from informix_capture_client.transport import find_driver
from informix_cdc.options.declared import DeclaredOptions


def chosen_transport(
    options: DeclaredOptions, environment: Mapping[str, str]
) -> Literal["odbc", "sqli"]:
    """Return the transport that option `transport` names, or the one that `auto` stands for.

    An option that only one of them heeds decides first, then whether this host has a driver.
    """
    if options.transport != "auto":
        return options.transport
    if asks_for_driver(options):
        return "odbc"
    if rules_out_driver(options):
        return "sqli"
    try:
        find_driver("", environment, DIALECTS[options.dialect_name])
    except AccessRefused:
        return "sqli"
    return "odbc"


def asks_for_driver(options: DeclaredOptions) -> str:
    """Return the first option given that only a driver heeds; empty if there is none."""
    given = {
        "driver": bool(options.driver),
        "connectionString": bool(options.connection_string),
        "clientLocale": has_client_locale(options),
    }
    return next((name for name, is_given in given.items() if is_given), "")


def rules_out_driver(options: DeclaredOptions) -> bool:
    """Tell whether an option is given that only a connection without a driver heeds."""
    return "," in options.host or certificate_option(options) != ""


def has_client_locale(options: DeclaredOptions) -> bool:
    """Tell whether the connection is to have another locale than the default one."""
    return options.client_locale.lower() != "en_us.utf8"


def certificate_option(options: DeclaredOptions) -> str:
    """Return the first option given that only a native TLS connection has; empty if there is none."""
    given = {
        "tlsCaFile": options.tls_ca_file,
        "tlsCertificateFile": options.tls_certificate_file,
        "tlsKeyFile": options.tls_key_file,
    }
    return next((name for name, path in given.items() if path), "")
