"""Certificates: each end has one that it has signed itself, and trusts those of the other ends only.

Rule: there is no authority, so no certificate can be added to those that an end knows. Those of a query
are made in memory by its process, and no key of them is written to disk.
"""

from __future__ import annotations

from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from informix_cdc.executors.flight_protocol import SERVER_NAME

# A certificate is valid as long as the other end knows it. Clocks of both may differ, so its time is
# not limited; the last second of the year 9999 expresses that (RFC 5280, 4.1.2.5).
_FROM, _UNTIL = datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)


def certificate_of_server() -> tuple[bytes, bytes]:
    """Return a new certificate of a Flight server and its key, in PEM."""
    return _self_signed(SERVER_NAME, ExtendedKeyUsageOID.SERVER_AUTH)


def certificate_of_reader(name: str) -> tuple[bytes, bytes]:
    """Return a new certificate of a reader, which names it, and its key, in PEM."""
    return _self_signed(name, ExtendedKeyUsageOID.CLIENT_AUTH)


def _self_signed(name: str, usage: x509.ObjectIdentifier) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signed = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return signed.public_bytes(Encoding.PEM), text
