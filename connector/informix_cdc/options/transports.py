"""Choose the transport, and list the options that only one of the transports supports."""

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
    """Return the transport that option `transport` names, or the one that `auto` selects.

    `auto` depends first on options that only one transport supports, then on whether a driver is
    installed.
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
    """Return the first given option that only a driver supports; empty if there is none."""
    given = {
        "driver": bool(options.driver),
        "connectionString": bool(options.connection_string),
        "clientLocale": has_client_locale(options),
    }
    return next((name for name, is_given in given.items() if is_given), "")


def rules_out_driver(options: DeclaredOptions) -> bool:
    """Return whether an option is given that only the transport without a driver supports."""
    return "," in options.host or certificate_option(options) != ""


def has_client_locale(options: DeclaredOptions) -> bool:
    """Return whether the connection uses a locale other than the default."""
    return options.client_locale.lower() != "en_us.utf8"


def certificate_option(options: DeclaredOptions) -> str:
    """Return the first given option that only a native TLS connection has; empty if there is none."""
    given = {
        "tlsCaFile": options.tls_ca_file,
        "tlsCertificateFile": options.tls_certificate_file,
        "tlsKeyFile": options.tls_key_file,
    }
    return next((name for name, path in given.items() if path), "")
