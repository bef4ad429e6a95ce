"""Bytes that real clients were seen to send, and a conversation that is fed with bytes.

The login and the requests are those of IBM's JDBC driver 4.50.11, process number and folder changed.
"""

from __future__ import annotations

import struct

from emulator.sqli.told import Told
from informix_emulator.sqli.conversation import Conversation
from informix_emulator.sqli.login import Greeting
from informix_emulator.sqli.reading import take_from
from informix_emulator.sqli.requests import read_request

OFFER_JDBC_4 = "fffc7ffc3c8caa97"
OFFER_JDBC_15 = "fffc7ffc3c8caa9706"
OFFER_GBASE = "fffc7ffc3c8caa9715"
OFFER_NMAP = "fffc7ffc3c8c8a"
EOT = "000c"
CURSOR = "0003 0012 5f69667863 30303030303030303030303030"
OPEN_STORES = "0024 0006 73746f726573 0000 000c"


def packed(*parts: str | bytes) -> bytes:
    """Join bytes and texts of hexadecimal digits, blanks between fields."""
    return b"".join(part if isinstance(part, bytes) else bytes.fromhex(part) for part in parts)


def char(text: str) -> bytes:
    data = text.encode("latin-1")
    return struct.pack(">H", len(data)) + data + b"\0" * (len(data) & 1)


def sql(text: str, marks: int = 0, code: int = 2) -> bytes:
    """A statement in the wide layout, with what asks for its description after it."""
    data = text.encode("latin-1")
    head = struct.pack(">HHI", code, marks, len(data)) + data + b"\0" * (len(data) & 1)
    return head + packed("0016 0031" if code == 2 else "0016 0007 000b", EOT)


def asc(text: str) -> bytes:
    return struct.pack(">H", len(text) + 1) + text.encode() + b"\0"


def login_body(
    user: str = "informix",
    password: str | None = "in4mix",
    server: str = "ol_informix1410",
    environment: dict[str, str] | None = None,
) -> bytes:
    """What IBM's driver sends to log in, without the header."""
    given = environment if environment is not None else {"CLIENT_LOCALE": "en_US.8859-1"}
    return packed(
        *("0064 0065 0000003d 0006 494545454d00 006c 73716c657865630000000000", asc("9.280")),
        *(asc("RDS#R000000"), asc("sqli"), "0000013c 00000000 00000000 0001", asc(user)),
        *("0000" if password is None else asc(password), "6f6c000000000000 0000003d"),
        *("746c697463700000 00000001 0068 000b 00000003", asc(server), "0000" * 5, "006a"),
        *(struct.pack(">H", len(given)), *(asc(k) + asc(v) for k, v in given.items())),
        *("006b 00000000 00004a16 00000001", asc("vm"), "0000", asc("/tmp/sqli"), "0074 0011"),
        *("00000000 00000000", asc("javapp"), "007f"),
    )


def login_packet(**fields: object) -> bytes:
    body = login_body(**fields)  # type: ignore[arg-type]
    return struct.pack(">HBBH", len(body) + 6, 1, 60, 0) + body


class Spoken:
    """A conversation, and the server it is with; `say` returns the answer in hexadecimal digits."""

    def __init__(self, offer: str = OFFER_JDBC_4, greeting: Greeting | None = None) -> None:
        self.told = Told()
        self.conversation = Conversation(greeting or Greeting(), lambda _: self.told, lambda: None)
        if offer:
            self.agreed = self.say("007e", char(bytes.fromhex(offer).decode("latin-1")), EOT)

    def say(self, *parts: str | bytes) -> str:
        request = read_request(take_from(packed(*parts)), self.conversation.dialect)
        return self.conversation.respond(request).hex()

    def open(self) -> Spoken:
        self.say(OPEN_STORES)
        return self


def hexed(text: str) -> str:
    """Take the blanks out of an expected answer."""
    return text.replace(" ", "")
