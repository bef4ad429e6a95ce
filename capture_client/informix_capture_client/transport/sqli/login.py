"""The packets of a login: the request, and its response: accepted, refused or redirected.

Rule: settings in, bytes out; bytes in, a value out. A response is read within its stated length, and
unknown blocks are skipped.

    u16 length of all | u8 kind: 1 request, 2 accepted, 3 refused, 13 redirect | u8 60 | u16 options

Sources: the request as IBM's JDBC driver 4.50.11 sends it; answers as that driver, gbase8sdb 1.1.1 and
nmap's informix.lua read them.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field

from informix_capture_client.errors import AccessRefused, BadOption, ProtocolViolation
from informix_capture_client.transport.sqli.incoming import EndOfBytes, Incoming
from informix_capture_client.transport.sqli.messages import ended, u16, u32

_REQUEST, _ACCEPTED, _REFUSED, _REDIRECT = 1, 2, 3, 13
_SESSION_LAYER = 60  # in the second half of the header's third word, whoever sends it
_HEADER_BYTES = 6
_MOST_BYTES = 0xFFFF
_CAPABILITIES = 0x13C
_ERRORS, _ELSEWHERE, _END = 102, 103, 127  # blocks of an answer's body
_NOT_SQLI = "There is no SQLI listener at this address"
_REMEDIES = {
    b"\x15\x03": "It uses TLS: set encryption=tls, or option port to a listener with onsoctcp.",
    b"HT": "It is a web server: set option port to an SQLI listener (onsoctcp, onsocssl).",
}
_DRDA = 0xD0  # the third byte of a DDM header (DRDA, volume 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The user, and the client's environment that is sent to the server."""

    user: bytes
    password: bytes = field(repr=False)
    server: bytes
    environment: tuple[tuple[bytes, bytes], ...]
    process_id: int
    thread_id: int
    host: bytes
    folder: bytes
    program: bytes

    def packet(self) -> bytes:
        """Return the request."""
        body = self._before_password() + _password(self.password) + self._after_password()
        size = len(body) + _HEADER_BYTES
        if size > _MOST_BYTES:
            raise BadOption(
                f"User, password and names make a login of {size} bytes; SQLI allows {_MOST_BYTES}.",
                "Shorten them.",
            )
        return u16(size, _REQUEST << 8 | _SESSION_LAYER, 0) + body

    def _before_password(self) -> bytes:
        return (
            u16(100, 101)
            + u32(61)
            + ended(b"IEEEM")  # how this client stores floating point numbers
            + u16(108)
            + b"sqlexec".ljust(12, b"\0")
            + ended(b"9.280")  # versions, serial number and capabilities that IBM's driver states
            + ended(b"RDS#R000000")
            + ended(b"sqli")
            + u32(_CAPABILITIES, 0, 0)
            + u16(1)
            + ended(self.user)
        )

    def _after_password(self) -> bytes:
        variables = b"".join(ended(name) + ended(value) for name, value in self.environment)
        program = ended(self.program)
        return (
            b"ol".ljust(8, b"\0")
            + u32(61)
            + b"tlitcp".ljust(8, b"\0")
            + u32(1)
            + u16(104, 11)
            + u32(3)
            + ended(self.server)
            + u16(0, 0, 0, 0, 0)  # no database: that is opened later
            + u16(106, len(self.environment))
            + variables
            + u16(107)
            + u32(0, self.process_id, self.thread_id)
            + ended(self.host)
            + u16(0)  # no terminal
            + ended(self.folder)
            + u16(116, 8 + len(program))
            + u32(0, 0)  # user and group: not told
            + program
            + u16(_END)
        )


def _password(password: bytes) -> bytes:
    """Return the password field; empty without a password, as for a trusted host."""
    return ended(password) if password else u16(0)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server accepted the login."""

    version: str
    server: str


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """The server refused the login, with its error and the operating system's; 0 means none."""

    service_error: int
    system_error: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """The server redirected the login to another address."""

    host: str
    port: int
    server: str


def read_login_answer(incoming: Incoming) -> Accepted | LoginRefused | Redirect:
    """Read the response to a login.

    Raises:
        AccessRefused: the peer uses another protocol.
        ProtocolViolation: the response is truncated.
    """
    head = incoming.take(_HEADER_BYTES)
    size, kind = int.from_bytes(head[:2]), head[2]
    if kind not in (_ACCEPTED, _REFUSED, _REDIRECT) or size < _HEADER_BYTES:
        raise _no_listener(head)
    content = incoming.take(size - _HEADER_BYTES)
    incoming.trace_message("login answer")
    try:
        return _read_body(kind, Incoming(io.BytesIO(content).readinto))
    except EndOfBytes:
        raise ProtocolViolation(
            f"The server's response to the login is truncated: {(head + content)[:64].hex()}.",
            "Record the messages with --trace-wire FILE and report them.",
        ) from None


def _no_listener(head: bytes) -> AccessRefused:
    if head[2] == _DRDA:
        remedy = "It uses DRDA: set option port to a listener with protocol onsoctcp or onsocssl."
    else:
        remedy = _REMEDIES.get(head[:2], "Check host and port.")
    return AccessRefused(f"{_NOT_SQLI}: the response to a login begins with {head.hex()}.", remedy)


def _read_body(kind: int, body: Incoming) -> Accepted | LoginRefused | Redirect:
    body.take(8)  # 100, 101, 61
    body.ended()  # how the server stores floating point numbers
    body.take(2 + 12)
    version, _serial, server = (_text(body.ended()) for _ in range(3))
    body.take(12 + 6 + 8 + 4 + 8 + 4)  # capabilities, three words, its protocol and transport
    if kind == _ACCEPTED:
        return Accepted(version, server)
    block = body.u16()
    if kind == _REDIRECT:
        return _redirect(block, body)
    if block != _ERRORS:
        return LoginRefused(0, 0)
    body.take(6)
    return LoginRefused(body.i16(), body.i16())


def _redirect(block: int, body: Incoming) -> Redirect:
    """Parse `server=host|port`, the only form that IBM's driver accepts."""
    if block == _ELSEWHERE:
        body.take(2)
        target = _text(body.ended())
        server, _, place = target.partition("=")
        host, _, port = place.rpartition("|")
        if host and port.isdigit() and port.isascii() and 0 < int(port) < 1 << 16:
            return Redirect(host, int(port), server)
        body.refuse(f"a redirection to {target[:200]!r}")
    body.refuse(f"a redirection with block {block}")


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")
