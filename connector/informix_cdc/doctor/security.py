"""Check who can read the password and the rows in transit, and the password in files.

Rule: facts of this host are read without a connection: conssl.cfg is read, other files are only
inspected. No finding is a failure, because the server decides.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.findings import Finding, State, Unanswered, ok, warning
from informix_capture_client.shell_commands import shell_word
from informix_capture_client.transport import TLS, TRUSTED, find_driver, installation_of
from informix_cdc.options import SQLI, ConnectionOptions, SourceOptions

# The client's TLS settings: HCL Informix 14.10 and IBM, "Configuring a client for SSL connections".
KEYSTORE, STASH = "SSL_KEYSTORE_FILE", "SSL_KEYSTORE_STH"
PAGE = "docs/security.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFacts:
    """The client kit's conssl.cfg: its path, its entries, and which named files cannot be read.

    Without a client kit: the certificate authorities that are trusted, and which files of options
    cannot be read.
    """

    path: str
    entries: Mapping[str, str] | Unanswered
    missing_files: tuple[str, ...] = ()
    authorities: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityFacts:
    """How the connection is made, as known on this host.

    Attributes:
        address: target of the connection; `stays_here`: whether it is on this host.
        tls: the client's settings if encryption is requested, else None.
        is_trusted: no password is sent to the server.
        open_files: secret files that every user of this host can read: the path of passwordFile or of a
            TLS key, with a description of the content.
    """

    address: str
    stays_here: bool = False
    tls: TlsFacts | None = None
    is_trusted: bool = False
    open_files: tuple[tuple[str, str], ...] = ()


def check_security(facts: SecurityFacts | Unanswered) -> Iterator[Finding]:
    """Check the connection's encryption, and where the password and a TLS key lie."""
    if isinstance(facts, Unanswered):
        for check in ("encryption", "password"):
            yield Finding(check, State.NOT_CHECKED, facts.reason)
        return
    yield _encryption(facts)
    yield from _secrets(facts)


def _encryption(facts: SecurityFacts) -> Finding:
    check = "encryption"
    if facts.tls is not None:
        return _tls(facts.tls)
    if facts.stays_here:
        return ok(
            check, f"the connection to {facts.address} is not encrypted; it does not leave this host."
        )
    return warning(
        check,
        f"the connection to {facts.address} is not encrypted; the password can be read in transit.",
        f"Use --encryption=tls (option encryption) with the port of an onsocssl listener: {PAGE}",
    )


def _tls(tls: TlsFacts) -> Finding:
    """Check the client's settings; another check opens the connection."""
    check = "encryption"
    if tls.authorities and tls.missing_files:
        names = ", ".join(tls.missing_files)
        return warning(
            check,
            f"TLS is requested, but this user cannot read: {names}.",
            "Create the file, correct its permissions, or set another (options tlsCaFile,"
            f" tlsCertificateFile): {PAGE}",
        )
    if tls.authorities:
        return ok(
            check,
            f"TLS is requested; the server's certificate and name are verified with {tls.authorities}.",
        )
    if isinstance(tls.entries, Unanswered):
        return warning(
            check, f"TLS is requested, but {tls.path} {tls.entries.reason}.", _to_write(tls.path)
        )
    if KEYSTORE not in tls.entries:
        return warning(
            check, f"TLS is requested, but {tls.path} has no entry {KEYSTORE}.", _to_write(tls.path)
        )
    if tls.missing_files:
        names = ", ".join(tls.missing_files)
        found = f"TLS is requested, but this user cannot read files named in {tls.path}: {names}."
        return warning(check, found, f"Create the file, or correct its permissions: {PAGE}")
    return ok(
        check,
        f"TLS is requested; servers are verified with the certificates in {tls.entries[KEYSTORE]}.",
    )


def _to_write(path: str) -> str:
    return f"Add this line to {path}: {KEYSTORE} <keystore with the certificates of servers>: {PAGE}"


def _secrets(facts: SecurityFacts) -> Iterator[Finding]:
    check = "password"
    for path, holds in facts.open_files:
        yield warning(
            check,
            f"every user of this host can read {path}, which contains {holds}.",
            f"chmod o= {shell_word(path)}",
        )
    if facts.is_trusted:
        yield ok(check, "no password is sent: the server must trust this host and user.")
    elif not facts.open_files:
        yield ok(check, "no file with a secret is readable by every user.")


_SYSTEM = "the system's certificate authorities"
_THIS_MACHINE = "localhost"  # RFC 6761, 6.3: always the loopback address


def read_security_facts(
    options: SourceOptions, environment: Mapping[str, str] = os.environ
) -> SecurityFacts:
    """Return the facts about a connection that are known before it is opened."""
    return SecurityFacts(
        address=options.connection.address,
        stays_here=all(_is_this_machine(host) for host, _ in options.connection.addresses()),
        tls=_tls_facts(options.connection, environment)
        if options.connection.encryption == TLS
        else None,
        is_trusted=options.connection.authentication == TRUSTED,
        open_files=tuple(
            (path, what) for path, what in _files_with_secrets(options) if _is_open_to_all(path)
        ),
    )


def _is_this_machine(host: str) -> bool:
    """Return whether a host is certainly this one; other names that begin the same may be anywhere."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == _THIS_MACHINE


def _tls_facts(connection: ConnectionOptions, environment: Mapping[str, str]) -> TlsFacts:
    """Read conssl.cfg in the folder etc of the client kit that the driver belongs to."""
    if connection.transport == SQLI:
        files = (connection.tls_ca_file, connection.tls_certificate_file)
        return TlsFacts(
            path="",
            authorities=connection.tls_ca_file or _SYSTEM,
            entries={},
            missing_files=_unreadable(filter(None, files)),
        )
    home, variable = environment.get(connection.dialect.home, ""), f"${connection.dialect.home}"
    if not home:
        try:
            home = str(
                installation_of(find_driver(connection.driver, environment, connection.dialect)) or ""
            )
        except InformixCdcError:
            home = ""
    path = Path(home or variable, "etc", "conssl.cfg")
    try:
        entries = _entries(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as reason:
        return TlsFacts(path=str(path), entries=Unanswered(f"cannot be read: {reason.strerror}"))
    named = [entries[key] for key in (KEYSTORE, STASH) if key in entries]
    return TlsFacts(path=str(path), entries=entries, missing_files=_unreadable(named))


def _unreadable(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if not os.access(name, os.R_OK))


def _entries(text: str) -> dict[str, str]:
    """Parse lines of the form `PARAMETER value # comment`."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in text.splitlines())
    return {words[0].upper(): words[1].strip() for words in lines if len(words) > 1}


def _files_with_secrets(options: SourceOptions) -> Iterator[tuple[str, str]]:
    """Yield the files that contain a secret, and a description of it."""
    yield options.connection.password_file, "the password"
    yield options.columns.mask_key_file, "the key of masks"
    yield options.connection.tls_certificate_file, "the key of this client's certificate"


def _is_open_to_all(path: str) -> bool:
    try:
        return bool(path and Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:  # reported where the file is needed
        return False
