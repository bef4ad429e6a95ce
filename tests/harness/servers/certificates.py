"""Certificates for servers of the suite: an authority, and what it signed for `localhost`."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


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
    authority = ec.generate_private_key(ec.SECP256R1())
    known_by = _signed("authority", authority.public_key(), authority, is_authority=True)
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
    authority: ec.EllipticCurvePrivateKey,
    known_by: bytes,
) -> Certificates:
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    found = Certificates(folder / "authority.pem", folder / "own.pem", folder / "key.pem")
    found.authority.write_bytes(known_by)
    found.own.write_bytes(_signed(name, key.public_key(), authority, purpose=purpose))
    found.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return found


def _signed(
    name: str,
    key: ec.EllipticCurvePublicKey,
    authority: ec.EllipticCurvePrivateKey,
    *,
    purpose: x509.ObjectIdentifier | None = None,
    is_authority: bool = False,
) -> bytes:
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1))
        .not_valid_after(datetime(9999, 12, 31))
        .add_extension(constraints, critical=True)
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
    return builder.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)
