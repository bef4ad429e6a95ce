"""Certificates for servers of the suite: an authority, and what it signed for `localhost`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from informix_cdc.executors import certificates


@dataclass(frozen=True)
class Certificates:
    """PEM files: the authority's, and a server's or client's own with its key."""

    authority: Path
    own: Path
    key: Path

    def server_context(self, *, asks_clients: bool = False) -> ssl.SSLContext:
        """Return what a listener encrypts with."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority))
        context.load_cert_chain(self.own, self.key)
        context.verify_mode = ssl.CERT_REQUIRED if asks_clients else ssl.CERT_NONE
        return context


def certificates_for(folder: Path, name: str = "localhost") -> tuple[Certificates, Certificates]:
    """Write what a server of this name shows, and what its clients show."""
    authority = certificates.ec.generate_private_key(certificates.ec.SECP256R1())
    known_by = certificates._pem(
        certificates._certificate("informix-cdc query", authority.public_key(), is_authority=True),
        authority,
    )
    purposes = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}
    server, client = (
        _written(folder / f"{name}.{kind}", name, purpose, authority, known_by)
        for kind, purpose in purposes.items()
    )
    return server, client


def _written(
    folder: Path,
    name: str,
    purpose: x509.ObjectIdentifier,
    authority: certificates.ec.EllipticCurvePrivateKey,
    known_by: bytes,
) -> Certificates:
    folder.mkdir()
    signed = certificates._signed(name, purpose, authority, known_by)
    found = Certificates(folder / "authority.pem", folder / "own.pem", folder / "key.pem")
    found.authority.write_bytes(known_by)
    found.own.write_bytes(signed.certificate)
    found.key.write_bytes(signed.key)
    return found
