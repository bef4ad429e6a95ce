"""Look at this side of a connection: is it encrypted, by what, and who may read its secrets' files.

Rule: it opens conssl.cfg and looks at other files from outside; it connects to nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.findings import Unanswered
from informix_capture_client.transport import TLS, TRUSTED, find_driver, installation_of
from informix_cdc.doctor.security_checks import KEYSTORE, STASH, SecurityFacts, TlsFacts
from informix_cdc.options import SQLI, SourceOptions

_SYSTEM = "the system's list of authorities"
_THIS_MACHINE = "localhost"  # RFC 6761, 6.3: always the loopback address


def look_at_security(
    options: SourceOptions, environment: Mapping[str, str] = os.environ
) -> SecurityFacts:
    """Return what is known of a connection before it is made."""
    return SecurityFacts(
        address=options.address,
        stays_here=all(_is_this_machine(host) for host, _ in options.addresses()),
        tls=_tls(options, environment) if options.encryption == TLS else None,
        is_trusted=options.authentication == TRUSTED,
        open_files=tuple((path, what) for path, what in _secrets(options) if _is_open_to_all(path)),
    )


def _is_this_machine(host: str) -> bool:
    """Tell whether a host is this one for certain: a name that only begins so may be anywhere."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == _THIS_MACHINE


def _tls(options: SourceOptions, environment: Mapping[str, str]) -> TlsFacts:
    """Read conssl.cfg, in the folder etc of the client kit that the driver belongs to."""
    if options.transport == SQLI:
        files = (options.tls_ca_file, options.tls_certificate_file, options.tls_key_file)
        return TlsFacts(
            path="",
            authorities=options.tls_ca_file or _SYSTEM,
            entries={},
            missing_files=_unreadable(filter(None, files)),
        )
    home, variable = environment.get(options.dialect.home, ""), f"${options.dialect.home}"
    if not home:
        try:
            home = str(installation_of(find_driver(options.driver, environment, options.dialect)) or "")
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
    """Read lines of the form `PARAMETER value # comment`."""
    lines = (line.partition("#")[0].split(maxsplit=1) for line in text.splitlines())
    return {words[0].upper(): words[1].strip() for words in lines if len(words) > 1}


def _secrets(options: SourceOptions) -> Iterator[tuple[str, str]]:
    """Yield the files that hold a secret, and in words which."""
    yield options.password_file, "the password"
    # without a file of its own the key lies beside the certificate
    yield options.tls_key_file or options.tls_certificate_file, "the key of this client's certificate"


def _is_open_to_all(path: str) -> bool:
    try:
        return bool(path and Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:  # that it cannot be read is told where it is needed
        return False
