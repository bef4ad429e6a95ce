"""Masks of columns: what replaces their values before anything is stored or delivered.

Rule: values only, without Arrow. A key is neither printed nor pickled. `values.masked` applies masks.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn, get_args

from informix_capture_client.sql_names import NamePath, read_paths

MaskKind = Literal["hash", "null", "last4"]

MASK_KINDS: tuple[MaskKind, ...] = get_args(MaskKind)
# `""` within quotes ends one text and begins the next, so that there is one way to read it.
_ENTRY = re.compile(r"""((?:"[^"]*+"|[^",=]++)++)=\s*+(\w++)\s*+(?:,|$)""")
_GRAMMAR = f"must be table.column=KIND, separated by commas, with KIND one of {', '.join(MASK_KINDS)}"
_MOST_PARTS = 3  # owner.table.column


class MaskedName(NamedTuple):
    """An entry of option mask: a column, and the kind of its mask."""

    path: NamePath
    kind: MaskKind


class MaskKey:
    """The key of hashes; equal if their bytes are."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.fingerprint = self.derived("fingerprint").hex()[:16]

    def digest(self, value: bytes | memoryview) -> str:
        """Return the HMAC-SHA-256 of a value in hexadecimal digits."""
        return hmac.digest(self._key, value, hashlib.sha256).hex()

    def derived(self, purpose: str) -> bytes:
        """Return a key of 32 bytes for another purpose, which does not reveal this one.

        This is HKDF-Extract (RFC 5869, 2.2) with the purpose as salt. The arguments are not in the
        order of `digest`, which would deliver the derived key as the hash of a text: the purpose.
        """
        return hmac.digest(f"informix-cdc: {purpose}".encode(), self._key, hashlib.sha256)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaskKey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the key of masks stays in its process")


@dataclass(frozen=True, slots=True)
class Mask:
    """What replaces the values of a column; NULL stays NULL.

    Attributes:
        kind: hash (HMAC-SHA-256 of the value's text, in hexadecimal digits), null, or last4 (asterisks
            but for the last four characters).
        key: of hash.
        is_of_content: whether it replaces the content of a large object, not what the log has of it.
    """

    kind: MaskKind
    key: MaskKey | None = None
    is_of_content: bool = False

    @property
    def fingerprint(self) -> str:
        """The kind, and a digest that changes with the key."""
        return self.kind if self.key is None else f"{self.kind} {self.key.fingerprint}"


def parse_masks(text: str) -> tuple[MaskedName, ...]:
    """Parse option mask.

    Raises:
        ValueError: it is not a list of columns with their kinds, or lists a column twice.

    >>> [entry.path for entry in parse_masks('customers.ssn=hash, "Odd, Table".phone=last4')]
    [('customers', 'ssn'), ('Odd, Table', 'phone')]
    """
    found: list[MaskedName] = []
    at = 0
    while at < len(text):
        match = _ENTRY.match(text, at)
        kind = next((kind for kind in MASK_KINDS if match and kind == match[2]), None)
        if match is None or kind is None:
            raise ValueError(_GRAMMAR)
        paths = tuple(read_paths(match[1]))
        if len(paths) != 1 or len(paths[0]) > _MOST_PARTS:
            raise ValueError(_GRAMMAR)
        found.append(MaskedName(paths[0], kind))
        at = match.end()
    names = [entry.path for entry in found]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"{_GRAMMAR}, each column once")
    return tuple(found)
