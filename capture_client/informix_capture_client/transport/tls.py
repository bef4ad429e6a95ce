"""TLS of a native connection: whom it trusts, and how it says who it is.

Rule: the server's certificate and its host name are always verified; nothing turns that off.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import NoReturn

from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.base import ConnectionSettings


def encrypted(opened: socket.socket, host: str, settings: ConnectionSettings) -> ssl.SSLSocket:
    """Return a socket on which TLS begins with the first byte, as on a listener of onsocssl.

    Raises:
        AccessRefused: the server's certificate is not one that is trusted for this host.
        BadOption: a file is none.
        OSError: the connection breaks, or whoever answers speaks no TLS.
    """
    context = _context(settings)
    try:
        return context.wrap_socket(opened, server_hostname=host)
    except ssl.SSLCertVerificationError as reason:
        raise AccessRefused(
            f"The certificate of {host} is not trusted: {reason.verify_message}.",
            "Name the file of the authority that signed it in option tlsCaFile, and the host as the"
            " certificate has it in option host.",
        ) from None


def _context(settings: ConnectionSettings) -> ssl.SSLContext:
    for name, path in (
        ("tlsCaFile", settings.tls_ca_file),
        ("tlsCertificateFile", settings.tls_certificate_file),
        ("tlsKeyFile", settings.tls_key_file),
    ):
        if path and not Path(path).is_file():
            raise _no_pem(name, "is not there")
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file or None)
    except (ssl.SSLError, OSError):
        raise _no_pem("tlsCaFile", "holds no certificate") from None
    if settings.tls_certificate_file:
        _load_own(context, settings)
    return context


def _load_own(context: ssl.SSLContext, settings: ConnectionSettings) -> None:
    try:
        context.load_cert_chain(
            settings.tls_certificate_file, settings.tls_key_file or None, password=_refuse_passphrase
        )
    except (ssl.SSLError, OSError):
        raise _no_pem("tlsCertificateFile", "holds no certificate with its key") from None


def _refuse_passphrase() -> NoReturn:
    raise _no_pem("tlsKeyFile", "is of a key with a passphrase, for which nobody can be asked")


def _no_pem(option: str, what: str) -> BadOption:
    return BadOption(
        f"option {option!r}: the file that it names {what}.",
        "Give the path of a PEM file: authorities, a certificate, or its key without a passphrase.",
        option=option,
    )
