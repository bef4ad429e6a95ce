"""The receipt of an altered table: facts from `release` and `acquire` for the query.

Rule: a small file of facts, which is checked against the offset that the query resumes from. A receipt
that was edited, or is of another stream, is rejected.

    release   the streams that had delivered all changes of the table, their commits, and its digest
    acquire   where full row logging is on again, where delivery resumes, and its new digest
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from informix_capture_client.errors import AccessRefused, BadOption
from informix_checkpoints.json_values import mapping, number, text
from informix_checkpoints.spool import create_file, new_file

VERSION = 1
_WHAT = "valid content of a receipt"
_OPTION = "schemaChange"
_MOST_BYTES = 16 << 20  # of a receipt; thousands of tables take one


@dataclass(frozen=True, slots=True)
class Acquired:
    """The facts recorded once full row logging is on again.

    Attributes:
        place: every later record is at or above it.
        since: transactions open at that time ended below it; writers were allowed again above it.
        still_open: the transactions open at that time.
        digests: of the altered tables, by owner.table.
    """

    place: int
    since: int
    still_open: tuple[int, ...]
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The facts from `release`, and from `acquire` if it has run.

    Attributes:
        source: the digest of server and database.
        delivered: by stream, the commit up to which everything of the tables was delivered.
        digests: of the tables before the ALTER, by owner.table.
        table_ids: their `systables.tabid`, which ALTER keeps and DROP and CREATE change.
    """

    source: str
    delivered: Mapping[str, int]
    digests: Mapping[str, str]
    table_ids: Mapping[str, int]
    acquired: Acquired | None = None

    def to_json(self) -> dict[str, object]:
        """Return the content of the file, without its checksum."""
        known: dict[str, object] = {
            "version": VERSION,
            "source": self.source,
            "delivered": dict(sorted(self.delivered.items())),
            "tables": dict(sorted(self.digests.items())),
            "table_ids": dict(sorted(self.table_ids.items())),
        }
        if (acquired := self.acquired) is not None:
            known["acquired"] = {
                "place": acquired.place,
                "since": acquired.since,
                "still_open": list(acquired.still_open),
                "tables": dict(sorted(acquired.digests.items())),
            }
        return known

    @classmethod
    def from_json(cls, given: Mapping[str, object]) -> Receipt:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        if given.get("version") != VERSION or given.keys() - {*_KEYS, "acquired"}:
            raise ValueError("its version is unknown")
        acquired = given.get("acquired")
        return cls(
            text(given.get("source")),
            _numbers(given.get("delivered")),
            _digests(given.get("tables")),
            _numbers(given.get("table_ids")),
            None if acquired is None else _acquired(mapping(acquired, _WHAT)),
        )


_KEYS = ("version", "source", "delivered", "tables", "table_ids")


def save_receipt(receipt: Receipt, path: Path, *, is_new: bool) -> None:
    """Write a receipt that only this user can open; a new receipt does not replace a file.

    Raises:
        AccessRefused: the file cannot be written, exists already, or is a link.
    """
    content = receipt.to_json()
    text = json.dumps({**content, "checksum": _checksum(content)}, indent=1) + "\n"
    try:
        if is_new:
            _write(create_file(path), text)
            return
        if path.is_symlink():
            raise AccessRefused(
                f"the receipt {path} is a link.", "Name the file that the link points to."
            )
        draft = path.with_name(f"{path.name}.new")
        _write(new_file(draft), text)
        draft.replace(path)
    except OSError as reason:
        raise AccessRefused(
            f"the receipt {path} cannot be written: {reason.strerror}.",
            "Name a new file in a folder that you can write to.",
        ) from None


def _write(file: BinaryIO, text: str) -> None:
    with file:
        file.write(text.encode())


def load_receipt(path: Path) -> Receipt:
    """Return the receipt in a file. Errors never quote the file's content, which may be secret.

    Raises:
        AccessRefused: the file cannot be read.
        BadOption: it is not a receipt, or was edited.
    """
    try:
        return Receipt.from_json(_checked(_content(path)))
    except OSError as reason:
        raise AccessRefused(
            f"the receipt {path} cannot be read: {reason.strerror}.",
            "Name the file that informix-cdc release --receipt wrote, at a path that Spark's driver can"
            " read.",
        ) from None
    except (ValueError, RecursionError) as reason:
        raise BadOption(
            f"{path} is not a receipt of informix-cdc release, or was changed: {reason}.",
            "Use the file that release and acquire wrote, unchanged.",
            option=_OPTION,
        ) from None


def _content(path: Path) -> bytes:
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # for the writer of a pipe


def _checked(content: bytes) -> Mapping[str, object]:
    """Return a receipt's content after checking its checksum."""
    try:
        found = json.loads(content)
    except ValueError:
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    known = {name: value for name, value in found.items() if name != "checksum"}
    if found.get("checksum") != _checksum(known):
        raise ValueError("its checksum does not match its content")
    return known


def _checksum(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _acquired(given: Mapping[str, object]) -> Acquired:
    still_open = given.get("still_open")
    if given.keys() != {"place", "since", "still_open", "tables"} or not isinstance(still_open, list):
        raise ValueError(f"{given!r} is not a result of acquire")
    return Acquired(
        number(given["place"]),
        number(given["since"]),
        tuple(map(number, still_open)),
        _digests(given["tables"]),
    )


def _numbers(given: object) -> dict[str, int]:
    return {text(name): number(value) for name, value in mapping(given, _WHAT).items()}


def _digests(given: object) -> dict[str, str]:
    return {text(name): text(digest) for name, digest in mapping(given, _WHAT).items()}
