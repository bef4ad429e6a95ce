"""The protocol between both ends of the Flight connection: address, certificates, token, ticket.

Rule: values and texts only; `pyarrow.flight` takes 35 ms to load and is imported by client and server.

    ticket := JSON of the fields of a SegmentRange, with the name of a file instead of its path, the
              id of its stream, and whole_updates of `stored_range`
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_checkpoints.shared_captures import PublishedError
from informix_checkpoints.spool import SegmentRange

TOKEN_HEADER = "authorization"
_BEARER = "Bearer "
SERVER_NAME = "informix-cdc"  # in the server's certificate, independent of its address
_SEGMENT_NAME = re.compile(r"[0-9A-Za-z-]+\.arrow")  # no slash and a single dot: stays in the folder


_WHOLE_NUMBERS = ("first", "end", "rows", "size_bytes", "checksum")
_MOST_TICKET_BYTES = 4096
_PEMS = ("authority", "certificate", "key")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The certificate of one end, and those that it trusts: texts in PEM."""

    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


class AdmittedReader(NamedTuple):
    """What a server knows of a reader: its certificate in PEM, and the digest of its token."""

    certificate: bytes
    token_digest: str


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """The address of a Flight server, with the credentials and token for it.

    Attributes:
        stream: whose segments are asked for; empty for calls.
    """

    host: str
    port: int
    token: str = field(repr=False)
    credentials: Credentials = field(repr=False)
    stream: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ReaderAccess:
    """What a reader of a shared capture needs to be admitted: the content of its file.

    Attributes:
        reader: its name.
    """

    reader: str
    token: str = field(repr=False)
    credentials: Credentials = field(repr=False)

    def to_text(self) -> str:
        """Return the content of the file."""
        known = {name: getattr(self.credentials, name).decode() for name in _PEMS}
        return json.dumps({"reader": self.reader, "token": self.token, **known}, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str) -> ReaderAccess:
        """Read what `to_text` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            known = json.loads(text)
        except RecursionError:
            known = None
        names = ("reader", "token", *_PEMS)
        if not isinstance(known, dict) or not all(isinstance(known.get(n), str) for n in names):
            raise ValueError("it is not the file of a reader")
        return cls(known["reader"], known["token"], Credentials(*(known[n].encode() for n in _PEMS)))


def digest_of(token: str) -> str:
    """Return what is stored of a token, which has 256 random bits: a slow digest would add nothing."""
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(token: str) -> bytes:
    """Return the value of the token's header."""
    return f"{_BEARER}{token}".encode()


def token_of(headers: Mapping[str, Sequence[str | bytes]]) -> str:
    """Return the token in the headers of a call; empty unless there is exactly one."""
    given = headers.get(TOKEN_HEADER, ())
    only = given[0] if len(given) == 1 else ""
    return only.removeprefix(_BEARER) if isinstance(only, str) else ""


def ticket_of(wanted: SegmentRange, stream: str, *, whole_updates: bool = False) -> bytes:
    """Return the ticket with which a client requests a range, as `stored_range` returns it."""
    fields = {name: getattr(wanted, name) for name in wanted.__slots__}
    how = {"path": wanted.file, "stream": stream, "whole_updates": whole_updates}
    return json.dumps({**fields, **how}).encode()


def range_of(ticket: bytes, folder_of: Callable[[str], Path]) -> tuple[SegmentRange, bool]:
    """Return the range that a ticket names, and `whole_updates`.

    Args:
        ticket: of a client.
        folder_of: returns the folder of a stream: the range is always of a segment in it.

    Raises:
        AccessRefused: the ticket is invalid, or there is no such stream.
    """
    try:
        if len(ticket) > _MOST_TICKET_BYTES:
            raise ValueError
        fields: dict[str, Any] = json.loads(ticket)
        stream, whole_updates = fields.pop("stream"), fields.pop("whole_updates")
        if type(stream) is not str or type(whole_updates) is not bool:
            raise ValueError
        if not _SEGMENT_NAME.fullmatch(fields["path"]):
            raise ValueError
        if any(type(fields[name]) is not int for name in _WHOLE_NUMBERS):
            raise ValueError
        wanted = SegmentRange(**fields)
        if not 0 <= wanted.first < wanted.end <= wanted.rows:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise no_rows_named() from None
    return replace(wanted, path=str(folder_of(stream) / wanted.path)), whole_updates


def no_rows_named() -> AccessRefused:
    """Return the error for an invalid ticket; it contains nothing about the driver."""
    return AccessRefused("the request names no rows of a segment.")


def error_to_json(error: InformixCdcError) -> bytes:
    """Return an error for the details of a failed call."""
    known = {"code": error.code, "message": error.message, "remedy": error.remedy}
    return json.dumps(known).encode()


def error_from_json(content: bytes) -> InformixCdcError | None:
    """Return the error in the details of a failed call; None if there is none."""
    try:
        known = json.loads(content)
        return PublishedError(str(known["code"]), str(known["message"]), str(known["remedy"])).raised()
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def location_of(host: str, port: int) -> str:
    """Return the location of a server as a Flight URI."""
    return f"grpc+tls://[{host}]:{port}" if ":" in host else f"grpc+tls://{host}:{port}"
