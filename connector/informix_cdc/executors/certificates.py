"""Certificates: an authority of a query or of a shared capture, and the certificates of both ends.

Rule: those of a query are created in memory by its process; no key is written to disk, and the
authority's key is discarded once both ends have certificates, so that no further one can be signed. A
shared capture keeps the key of its authority, to sign certificates of readers that are added later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from informix_cdc.executors.flight_protocol import SERVER_NAME, Credentials

# Certificates become useless when the query ends. Clocks of driver and executors may differ, so
# validity is not limited; the last second of the year 9999 expresses that (RFC 5280, 4.1.2.5).
_FROM, _UNTIL = datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)


def certificates_of_a_query() -> tuple[Credentials, Credentials]:
    """Return the credentials of the server and of executors; each trusts only the other."""
    authority = Authority.new()
    return authority.of_server(), authority.of_client("executor")


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates that only its own servers and clients trust.

    Attributes:
        certificate: in PEM.
    """

    certificate: bytes
    _key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def new(cls) -> Authority:
        """Create an authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _certificate("informix-cdc query", key.public_key(), is_authority=True)
        return cls(_pem(builder, key), key)

    @classmethod
    def load(cls, content: bytes) -> Authority:
        """Return the authority that `to_pem` wrote.

        Raises:
            ValueError: it is something else.
        """
        key = load_pem_private_key(content, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("its key is of another kind")
        certificate = x509.load_pem_x509_certificate(content)
        return cls(certificate.public_bytes(Encoding.PEM), key)

    def to_pem(self) -> bytes:
        """Return key and certificate, for `load`."""
        key = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + self.certificate

    def of_server(self) -> Credentials:
        """Sign the certificate of a server."""
        return _signed(SERVER_NAME, ExtendedKeyUsageOID.SERVER_AUTH, self._key, self.certificate)

    def of_client(self, name: str) -> Credentials:
        """Sign the certificate of a client."""
        return _signed(name, ExtendedKeyUsageOID.CLIENT_AUTH, self._key, self.certificate)


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
