"""Certificates of one query: an authority of its own, and what it signed for driver and executors.

Rule: made in memory by the query's process; no key touches a disk. The authority's key is forgotten as
soon as both ends have theirs, so that nobody can ever sign a third.
"""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from informix_cdc.executors.flight_protocol import SERVER_NAME, Credentials

# The end of the query ends them. Clocks of driver and executors may differ, so that none is asked;
# the last second of the year 9999 is how a certificate says so (RFC 5280, 4.1.2.5).
_FROM, _UNTIL = datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)


def certificates_of_a_query() -> tuple[Credentials, Credentials]:
    """Return what the server shows, and what executors show; each trusts the other alone."""
    authority = ec.generate_private_key(ec.SECP256R1())
    known_by = _pem(
        _certificate("informix-cdc query", authority.public_key(), is_authority=True), authority
    )
    return (
        _signed(SERVER_NAME, ExtendedKeyUsageOID.SERVER_AUTH, authority, known_by),
        _signed("executor", ExtendedKeyUsageOID.CLIENT_AUTH, authority, known_by),
    )


def _signed(
    name: str, usage: x509.ObjectIdentifier, authority: ec.EllipticCurvePrivateKey, known_by: bytes
) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(name, key.public_key(), is_authority=False)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Credentials(known_by, _pem(builder, authority), text)


def _certificate(
    name: str, key: ec.EllipticCurvePublicKey, *, is_authority: bool
) -> x509.CertificateBuilder:
    constraints = x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("informix-cdc query"))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(constraints, critical=True)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(builder: x509.CertificateBuilder, authority: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)
