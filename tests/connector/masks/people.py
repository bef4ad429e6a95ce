"""A table whose values must be found nowhere, and where to look for them."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND, quick_clock
from informix_emulator import EmulatedServer, ListeningServer, keep_rows, load_rows

TABLE = f"{DATABASE}:informix.people"
COLUMNS = (
    "ssn CHAR(20) NOT NULL, id INTEGER NOT NULL, name VARCHAR(40), phone LVARCHAR(60),"
    " salary DECIMAL(14,2), born DATE, town VARCHAR(40), picture BLOB, letter CLOB,"
    " PRIMARY KEY (ssn, id)"
)
MASK = (
    "people.ssn=hash,people.name=null,people.phone=last4,people.salary=hash,informix.people.born=hash,"
    "people.picture=hash,people.letter=null"
)
KEY = b"0123456789abcdef0123456789abcdef"
CLEAR = "CLEAR-VALUE"  # is in each value of a masked column of text


def hashed(text: str | bytes) -> str:
    """Return a value as another program with the key computes it."""
    return hmac.new(KEY, text.encode() if isinstance(text, str) else text, "sha256").hexdigest()


@dataclass
class People:
    """The table of a server, with a file that holds the key."""

    server: EmulatedServer
    port: int
    options: dict[str, str]
    _objects: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def row(self, number: int) -> dict[str, Any]:
        """Return a row as the server stores it."""
        if number not in self._objects:
            picture = self.server.sbspace.create(f"{CLEAR} {number}".encode())
            self._objects[number] = picture, self.server.sbspace.create(CLEAR.encode())
        picture, letter = self._objects[number]
        return {
            "ssn": f"{CLEAR}-{number:03}",
            "id": number,
            "name": f"{CLEAR} Zoë",
            "phone": f"{CLEAR} {number:04}",
            "salary": f"{987654321 + number}.25",
            "born": "1987-06-05",
            "town": f"town {number}",
            "picture": picture,
            "letter": letter,
        }

    def insert(self, *numbers: int) -> int:
        transaction = self.server.begin()
        for number in numbers:
            transaction.insert(TABLE, self.row(number))
        return transaction.commit()

    def existing(self, *numbers: int) -> None:
        """Store rows from before the capture."""
        load_rows(self.server, TABLE, [self.row(number) for number in numbers])


@contextmanager
def people(folder: Path, **options: str) -> Iterator[People]:
    key_file = folder / "mask.key"
    key_file.write_bytes(KEY + b"\n")
    server = EmulatedServer(
        "informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND, clock=quick_clock()
    )
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    server.create_table(TABLE, COLUMNS)
    keep_rows(server)
    given = {
        "table": "informix.people",
        "lobs": "content",
        "mask": MASK,
        "maskKeyFile": str(key_file),
        "spoolPath": str(folder / "spool"),
        **options,
    }
    with ListeningServer(server) as listening:
        yield People(server, listening.port, given)


def clear_values(*numbers: int) -> list[str]:
    """Return texts that only clear values of masked columns contain."""
    return [CLEAR, "1987-06-05", *(f"{987654321 + number}" for number in numbers)]


def files_with(folder: Path, texts: list[str]) -> list[Path]:
    """Return the files below a folder that contain one of the texts, as characters of any code set."""
    needles = [text.encode(encoding) for text in texts for encoding in ("utf-8", "utf-16-le")]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(needle in path.read_bytes() for needle in needles)]
