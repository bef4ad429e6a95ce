"""Choose the transport, and list the options that only one of the transports supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from informix_capture_client.dialects import DIALECTS
from informix_capture_client.errors import AccessRefused
from informix_capture_client.transport import find_driver
from informix_cdc.options.declared import ConnectionOptions


def chosen_transport(
    connection: ConnectionOptions, environment: Mapping[str, str]
) -> Literal["odbc", "sqli"]:
    """Return the transport that option `transport` names, or the one that `auto` selects.

    `auto` depends first on options that only one transport supports, then on whether a driver is
    installed.
    """
    if connection.transport != "auto":
        return connection.transport
    if asks_for_driver(connection):
        return "odbc"
    if rules_out_driver(connection):
        return "sqli"
    try:
        find_driver("", environment, DIALECTS[connection.dialect_name])
    except AccessRefused:
        return "sqli"
    return "odbc"


def asks_for_driver(connection: ConnectionOptions) -> str:
    """Return the first given option that only a driver supports; empty if there is none."""
    given = {
        "driver": bool(connection.driver),
        "connectionString": bool(connection.connection_string),
    }
    return next((name for name, is_given in given.items() if is_given), "")


def rules_out_driver(connection: ConnectionOptions) -> bool:
    """Return whether an option is given that only the transport without a driver supports."""
    return "," in connection.host or certificate_option(connection) != ""


def certificate_option(connection: ConnectionOptions) -> str:
    """Return the first given option that only a native TLS connection has; empty if there is none."""
    given = {
        "tlsCaFile": connection.tls_ca_file,
        "tlsCertificateFile": connection.tls_certificate_file,
    }
    return next((name for name, path in given.items() if path), "")
