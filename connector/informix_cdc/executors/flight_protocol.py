"""The protocol between both ends of the Flight connection: address, certificates, token, ticket.

Rule: values and texts only; `pyarrow.flight` takes 35 ms to load and is imported by client and server.

    ticket := JSON of the fields of a SegmentRange, with the name of a file instead of its path, and
              whole_updates of `stored_range`; for the server of a shared capture also the stream's id
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.spool import SegmentRange

TOKEN_HEADER = "authorization"
_BEARER = "Bearer "
SERVER_NAME = "informix-cdc"  # in the server's certificate, independent of its address
_STREAM = re.compile(r"[0-9a-f]{16}")
_SEGMENT_NAME = re.compile(r"[0-9A-Za-z-]+\.arrow")  # no slash and a single dot: stays in the folder


_WHOLE_NUMBERS = ("first", "end", "rows", "size_bytes", "checksum")


_PEMS = ("authority", "certificate", "key")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The certificate of one end, and the one that it trusts: texts in PEM."""

    authority: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class FlightAddress:
    """The address of a Flight server, with the credentials and token for it.

    Attributes:
        stream: whose segments are asked for; empty if the server has one only.
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
        known = json.loads(text)
        names = ("reader", "token", *_PEMS)
        if not isinstance(known, dict) or not all(isinstance(known.get(n), str) for n in names):
            raise ValueError("it is not the file of a reader")
        return cls(known["reader"], known["token"], Credentials(*(known[n].encode() for n in _PEMS)))


def bearer(token: str) -> bytes:
    """Return the value of the token's header."""
    return f"{_BEARER}{token}".encode()


def token_of(headers: Mapping[str, Sequence[str | bytes]]) -> str:
    """Return the token in the headers of a call; empty unless there is exactly one."""
    given = headers.get(TOKEN_HEADER, ())
    only = given[0] if len(given) == 1 else ""
    return only.removeprefix(_BEARER) if isinstance(only, str) else ""


def ticket_of(wanted: SegmentRange, stream: str = "", *, whole_updates: bool = False) -> bytes:
    """Return the ticket with which a client requests a range, as `stored_range` returns it."""
    fields = {name: getattr(wanted, name) for name in wanted.__slots__}
    named = {"stream": stream} if stream else {}
    how = {"path": wanted.file, "whole_updates": whole_updates}
    return json.dumps({**fields, **how, **named}).encode()


def stream_of(ticket: bytes) -> str:
    """Return the stream that a ticket names.

    Raises:
        AccessRefused: it names none.
    """
    try:
        stream = json.loads(ticket)["stream"]
        if isinstance(stream, str) and _STREAM.fullmatch(stream):
            return stream
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise no_rows_named()


def range_of(ticket: bytes, folder: Path) -> tuple[SegmentRange, bool]:
    """Return the range that a ticket names, always of a segment in this folder, and `whole_updates`.

    Raises:
        AccessRefused: the ticket is invalid.
    """
    try:
        given: dict[str, Any] = json.loads(ticket)
        fields = {name: value for name, value in given.items() if name != "stream"}
        if type(whole_updates := fields.pop("whole_updates")) is not bool:
            raise ValueError
        if not _SEGMENT_NAME.fullmatch(fields["path"]):
            raise ValueError
        if any(type(fields[name]) is not int for name in _WHOLE_NUMBERS):
            raise ValueError
        wanted = SegmentRange(**{**fields, "path": str(folder / fields["path"])})
        if not 0 <= wanted.first < wanted.end <= wanted.rows:
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise no_rows_named() from None
    return wanted, whole_updates


def no_rows_named() -> AccessRefused:
    """Return the error for an invalid ticket; it contains nothing about the driver."""
    return AccessRefused("the request names no rows of a segment.")


def location_of(host: str, port: int) -> str:
    """Return the location of a server as a Flight URI."""
    return f"grpc+tls://[{host}]:{port}" if ":" in host else f"grpc+tls://{host}:{port}"
