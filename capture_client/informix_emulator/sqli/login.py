"""The two packets of a login: the client's description of itself, and the answer.

Only these have a header with a length: u16 length with itself, u8 type, u8 60, u16 options. The order
of fields is that of IBM's JDBC driver, which gbase8sdb and nmap's scripts share.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from ..poses import POSES
from .pam import Prompt
from .reading import Malformed, RequestReader, take_from

HEADER = struct.Struct(">HBBH")
REQUEST, ACCEPT, REFUSE, REDIRECT = 1, 2, 3, 13
_PROTOCOL = 60
_ENVIRONMENT, _PROCESS, _PROGRAM, _END = 106, 107, 116, 127
_STATUS, _REDIRECTION = 102, 103
_CAPABILITIES = struct.pack(">III", 0x13C, 0, 0)
_MAX_VARIABLES = 1000


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a client meets before its first statement.

    Args:
        name: DBSERVERNAME.
        version: the product's version, which IBM's JDBC driver takes from the login's answer.
        protocols: the feature bits that the server knows.
        redirect_to: `server=host|port` that a client is sent to; empty: it stays.
        prompts: what PAM asks; empty: the password of the login counts.
        names_refusals: whether a refused login has an error number; live 14.10.13.10 sent 0 (libsqli).
    """

    name: str = "informix"
    version: str = ""
    protocols: bytes = POSES["informix"].protocols
    redirect_to: str = ""
    prompts: tuple[Prompt, ...] = ()
    names_refusals: bool = True


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """Who a client says it is, which server it means, and its environment.

    `floats` names the client's floating point numbers: IEEEM big-endian, IEEEI little-endian.
    """

    user: str | None
    password: str | None = field(repr=False)
    server: str
    environment: dict[str, str]
    floats: str = "IEEEM"

    def attributes(self) -> dict[str, str]:
        """Return what admits a client, as a connection string would name it.

        A login without a password is one of a trusted host: it names neither user nor password.
        """
        given = {"SERVER": self.server, "FLOATS": self.floats}
        if self.password is not None:
            given |= {"UID": self.user or "", "PWD": self.password}
        return {**self.environment, **given}


def parse_login(body: bytes) -> ClientLogin:
    """Read a login packet without its header; Malformed if it is none."""
    reader = RequestReader(take_from(body))
    try:
        return _login(reader)
    except EOFError:
        raise Malformed(f"the login ends after {len(reader.seen)} bytes") from None


def _login(reader: RequestReader) -> ClientLogin:
    reader.octets(8, "begin of the association")
    floats = reader.asc("floating point form") or ""
    reader.octets(2 + 12, "kind of client")
    for what in ("version", "serial number", "application"):
        reader.asc(what)
    reader.octets(12 + 2, "capabilities")
    user, password = reader.asc("user"), reader.asc("password")
    reader.octets(24 + 8, "network")
    server = reader.asc("server") or ""
    for what in ("database", "first reserve", "second reserve", "third reserve", "fourth reserve"):
        reader.asc(what)
    return ClientLogin(user, password, server, _environment(reader), floats)


def _environment(reader: RequestReader) -> dict[str, str]:
    """Read the blocks that follow; all but the environment is passed over."""
    environment: dict[str, str] = {}
    while (block := reader.u16("block")) != _END:
        if block == _ENVIRONMENT:
            environment |= _variables(reader)
        elif block == _PROCESS:
            reader.octets(12, "process")
            for what in ("host", "terminal", "folder"):
                reader.asc(what)
        elif block == _PROGRAM:
            reader.octets(reader.u16("program"), "program")
        else:
            raise Malformed(f"a login has no block {block}")
    return environment


def _variables(reader: RequestReader) -> dict[str, str]:
    count = reader.u16("number of variables")
    if count > _MAX_VARIABLES:
        raise Malformed(f"an environment of {count} variables")
    return {reader.asc("name") or "": reader.asc("value") or "" for _ in range(count)}


def accepted(greeting: Greeting) -> bytes:
    """Build the packet that lets a client in."""
    return _packet(ACCEPT, _body(greeting) + _status(0))


def refused(greeting: Greeting, native: int) -> bytes:
    """Build the packet that does not, with the error's number or 0."""
    return _packet(REFUSE, _body(greeting) + _status(native if greeting.names_refusals else 0))


def redirected(greeting: Greeting) -> bytes:
    """Build the packet that sends a client to another port, where it logs in anew."""
    tail = struct.pack(">HH", _REDIRECTION, 0) + asc(greeting.redirect_to) + struct.pack(">H", _END)
    return _packet(REDIRECT, _body(greeting) + tail)


def asc(text: str) -> bytes:
    """Write a text of the login."""
    data = text.encode() + b"\0"
    return struct.pack(">H", len(data)) + data


def _body(greeting: Greeting) -> bytes:
    parts = [
        struct.pack(">HHI", 100, 101, 61),
        asc("IEEEI"),
        struct.pack(">H12s", 108, b"srvinfx"),
        asc(greeting.version),
        asc("RDS#N000000"),
        asc(greeting.name),
        _CAPABILITIES + bytes(6),
        struct.pack(">8sI8sI", b"on", 61, b"soctcp", 1),
    ]
    return b"".join(parts)


def _status(native: int) -> bytes:
    """Service error, operating system's error, warnings: client's view is the first alone."""
    return struct.pack(">HHIhhHH", _STATUS, 0, 0, native, 0, 0, _END)


def _packet(kind: int, body: bytes) -> bytes:
    return HEADER.pack(HEADER.size + len(body), kind, _PROTOCOL, 0) + body
