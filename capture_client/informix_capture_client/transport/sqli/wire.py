"""A socket to a server, with a deadline for every wait, and an optional trace.

Rule: transfers bytes without interpreting them. Over TLS the server's certificate and host name are
always verified; this cannot be turned off. Any failure in the middle of a message, including a
deadline, closes the connection, because later bytes could not be interpreted.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
import ssl
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.base import SLOWEST_BYTES_PER_SECOND, TLS, ConnectionSettings
from informix_capture_client.transport.errors import Diagnostic, OdbcFailure
from informix_capture_client.transport.sqli.incoming import EndOfBytes, Incoming
from informix_capture_client.transport.sqli.messages import Message, name_of
from informix_capture_client.transport.sqli.trace import ConnectionTrace

# A connection may wait for minutes, and firewalls forget one that is idle: the kernel asks the other
# end now and then, which keeps it known, and ends one that nobody answers after two minutes.
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}  # where the system has them
_URGENT = b"B"  # what IBM's driver sends out of band to interrupt a statement
_END = Message.SQ_EOT.to_bytes(2)

# What a driver says in these cases; through the same door as a driver's own words.
BROKEN = Diagnostic("08S01", -25582, "Network connection is broken", "")
SILENT = Diagnostic("HYT00", -11094, "Time-out expired", "")


class Wire:
    """A connected socket.

    Args:
        address: of the server.
        settings: of encryption and timeouts.
        trace: records the messages.
        not_after: the deadline of the login, in seconds of the monotonic clock.

    Raises:
        OdbcFailure: no server answers.
        AccessRefused, BadOption: TLS is not possible.
    """

    def __init__(
        self,
        address: tuple[str, int],
        settings: ConnectionSettings,
        trace: ConnectionTrace | None,
        not_after: float,
    ) -> None:
        self._trace = trace
        self._not_after: float | None = not_after
        self._socket: socket.socket | None = None
        self._is_encrypted = settings.encryption == TLS
        self._seconds: float | None = settings.connect_timeout_seconds
        self._deadline: float | None = None
        self._socket = _reach(address, settings, not_after)
        self.is_loopback = _is_loopback(self._socket)
        self.wait_at_most(settings.connect_timeout_seconds)
        self.incoming = Incoming(self._receive_into, trace.received if trace else None)

    def __repr__(self) -> str:
        return "Wire()"

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._socket is not None

    @property
    def most_seconds(self) -> float | None:
        """The timeout for a response."""
        return self._seconds

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the timeout for responses, and restart the current wait."""
        self._seconds = seconds
        if self._socket is not None:
            self._socket.settimeout(seconds)
        self._begin_wait()

    def end_login(self) -> None:
        """End the deadline of the login: from now on each response has its own."""
        self._not_after = None
        self.wait_at_most(self._seconds)

    def send(self, request: Sequence[bytes]) -> None:
        """Send messages and the end of the request; the wait for a response starts."""
        if self._trace is not None:
            for message in (*request, _END):
                self._trace.sent(name_of(int.from_bytes(message[:2])), message)
        self._send_all(b"".join((*request, _END)))

    def send_alone(self, content: bytes, shown: bytes | None = None, name: str = "") -> None:
        """Send bytes without an end of the request; `shown` are the bytes for the trace."""
        if self._trace is not None:
            self._trace.sent(name or name_of(int.from_bytes(content[:2])), shown or content)
        self._send_all(content)

    def _send_all(self, content: bytes) -> None:
        if self._socket is None:
            raise OdbcFailure([BROKEN])
        try:
            self._socket.sendall(content)
        except OSError as reason:
            raise self._lost(reason) from None
        self._begin_wait()

    def interrupt(self) -> None:
        """Interrupt the server's current request; over TLS, close the connection."""
        opened = self._socket
        if opened is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._is_encrypted:
                opened.shutdown(socket.SHUT_RDWR)
            else:
                opened.send(_URGENT, socket.MSG_OOB)

    def cut(self) -> None:
        """Shut down the connection while another thread waits; the server ends its request."""
        opened = self._socket
        self.interrupt()
        if opened is not None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self.incoming.trace_rest()

    def _begin_wait(self) -> None:
        self._deadline = None if self._seconds is None else time.monotonic() + self._seconds

    def _receive_into(self, target: memoryview) -> int:
        if self._socket is None:
            raise OdbcFailure([BROKEN])
        try:
            if self._not_after is not None:  # no byte that arrives puts off the end of a login
                most = math.inf if self._seconds is None else self._seconds
                self._socket.settimeout(_left_seconds(most, self._not_after))
            count = self._socket.recv_into(target)
            if self._deadline is not None:
                self._deadline += count / SLOWEST_BYTES_PER_SECOND
                if time.monotonic() > self._deadline:
                    raise TimeoutError
        except OSError as reason:
            raise self._lost(reason) from None
        if not count:
            raise self._lost(EndOfBytes())
        return count

    def _lost(self, reason: Exception) -> OdbcFailure:
        is_silence = isinstance(reason, TimeoutError)
        if is_silence:
            self.interrupt()  # a server that is only late need not continue
        self.hang_up()
        return OdbcFailure([SILENT if is_silence else BROKEN])


def _reach(address: tuple[str, int], settings: ConnectionSettings, not_after: float) -> socket.socket:
    """Open the socket, or raise the failure that a driver would report."""
    opened: socket.socket | None = None
    try:
        opened = _connected(address, settings.connect_timeout_seconds, not_after)
        # a request is small and its answer is waited for: Nagle only adds delay
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(opened)
        opened.settimeout(_left_seconds(settings.connect_timeout_seconds, not_after))
        return _encrypted(opened, address[0], settings) if settings.encryption == TLS else opened
    except (OSError, UnicodeError) as reason:
        if opened is not None:
            opened.close()
        said = Diagnostic(
            *("08001", -908, _why(address, reason), ""),
            is_without_tls=opened is not None,
            is_unknown_host=isinstance(reason, socket.gaierror),
        )
        raise OdbcFailure([said]) from None
    except BaseException:
        if opened is not None:
            opened.close()
        raise


def _connected(address: tuple[str, int], seconds_each: float, not_after: float) -> socket.socket:
    """Connect to the first address of a host that answers.

    Raises:
        OSError: none answers, or the deadline of the login has passed.
    """
    failed = OSError("the host has no address")
    for family, kind, protocol, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        left_seconds = _left_seconds(seconds_each, not_after)
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(left_seconds)
            opened.connect(place)
        except OSError as reason:
            opened.close()
            failed = reason
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failed


def _left_seconds(most: float, not_after: float) -> float:
    """Return the remaining time to wait.

    Raises:
        TimeoutError: the deadline of the login has passed.
    """
    left_seconds = not_after - time.monotonic()
    if left_seconds <= 0:
        raise TimeoutError("timed out")
    return min(most, left_seconds)


def _keep_alive(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _why(address: tuple[str, int], reason: Exception) -> str:
    what = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return f"Attempt to connect to {address[0]}:{address[1]} failed: {what}"


def _is_loopback(opened: socket.socket) -> bool:
    try:
        found = ipaddress.ip_address(str(opened.getpeername()[0]).partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None)  # which Python 3.11 does not look into
        return (mapped or found).is_loopback
    except (OSError, ValueError):
        return False


def _encrypted(opened: socket.socket, host: str, settings: ConnectionSettings) -> ssl.SSLSocket:
    """Return a socket with TLS from the first byte, as for a listener with onsocssl.

    Raises:
        AccessRefused: the server's certificate is not trusted for this host.
        BadOption: a file is not a valid PEM file.
        OSError: the connection breaks, or the peer does not use TLS.
    """
    context = _context(settings)
    try:
        return context.wrap_socket(opened, server_hostname=host)
    except ssl.SSLCertVerificationError as reason:
        raise AccessRefused(
            f"The certificate of {host} is not trusted: {reason.verify_message}.",
            "Set option tlsCaFile to the file of the authority that signed it, and option host to a"
            " name in the certificate's subjectAltName; a common name (CN) is not enough.",
        ) from None


def _context(settings: ConnectionSettings) -> ssl.SSLContext:
    for name, path in (
        ("tlsCaFile", settings.tls_ca_file),
        ("tlsCertificateFile", settings.tls_certificate_file),
    ):
        if path and not Path(path).is_file():
            raise _no_pem(name, "does not exist")
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca_file or None)
    except (ssl.SSLError, OSError):
        raise _no_pem("tlsCaFile", "does not contain a certificate") from None
    context.hostname_checks_common_name = False  # RFC 9525; decision 0033
    if settings.tls_certificate_file:
        _load_own(context, settings)
    return context


def _load_own(context: ssl.SSLContext, settings: ConnectionSettings) -> None:
    try:
        context.load_cert_chain(settings.tls_certificate_file, password=_refuse_passphrase)
    except (ssl.SSLError, OSError):
        raise _no_pem("tlsCertificateFile", "does not contain a certificate with its key") from None


def _refuse_passphrase() -> NoReturn:
    raise _no_pem("tlsCertificateFile", "contains a key with a passphrase, which is not supported")


def _no_pem(option: str, what: str) -> BadOption:
    return BadOption(
        f"option {option!r}: the file {what}.",
        "Set it to a PEM file: authorities, or a certificate and its key without a passphrase.",
        option=option,
    )
