"""The names of readers of a shared capture; also names of files."""

from __future__ import annotations

import re

from informix_capture_client.errors import BadOption

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def require_reader_name(name: str) -> str:
    """Return the name of a reader.

    Raises:
        BadOption: it is not one.
    """
    if not _NAME.fullmatch(name):
        raise BadOption(
            "option 'reader' must be a name of up to 64 letters, digits, dots, hyphens and underscores,"
            " beginning with a letter or digit.",
            "Use one name for each query, and keep it as long as the query's checkpoint.",
            option="reader",
        )
    return name
