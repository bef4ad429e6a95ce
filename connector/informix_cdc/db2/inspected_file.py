"""Report the Db2 format of a file, from its bytes.

Rule: read-only; the report contains no values of rows, so it can be sent to us.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from informix_db2 import recognised


@dataclass(frozen=True)
class Report:
    """A report; `print` shows it as lines."""

    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__


def inspect(path: str | Path, max_bytes: int = 64 << 20) -> Report:
    """Return the format of a file, and which interpretation fits where the format is ambiguous.

    Args:
        path: a local file.
        max_bytes: maximum number of bytes to inspect.

    Raises:
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        data = file.read(max_bytes + 1)
    is_cut = len(data) > max_bytes
    head = f"{path}: {len(data)} bytes" if not is_cut else f"{path}: its first {max_bytes} bytes"
    return Report((head, *recognised(data[:max_bytes])))
