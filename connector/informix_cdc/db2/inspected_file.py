"""What a file of Db2's formats is, as far as its bytes say.

Rule: it reads, and changes nothing; no value of a row is shown, so that the report can be sent to us.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from informix_db2 import recognised


@dataclass(frozen=True)
class Report:
    """A report; it prints as lines."""

    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def inspect(path: str | Path, max_bytes: int = 64 << 20) -> Report:
    """Say which format a file has, and which reading of what is ambiguous fits.

    Args:
        path: a local file.
        max_bytes: how much of it is looked at.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        data = file.read(max_bytes + 1)
    is_cut = len(data) > max_bytes
    head = f"{path}: {len(data)} bytes" if not is_cut else f"{path}: its first {max_bytes} bytes"
    return Report((head, *recognised(data[:max_bytes])))
