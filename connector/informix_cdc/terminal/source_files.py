"""Read a TOML file with settings and a table [source] of options of the format."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from informix_capture_client.errors import BadOption


def read_source_file(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a file outside of [source], and the options in [source].

    Raises:
        BadOption: it cannot be read, is not TOML, or contains a password.
    """
    try:
        known: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as reason:
        raise BadOption(f"{path} cannot be read: {reason}.", "Correct the file.") from None
    source = known.pop("source", {})
    require_flat(path, "source", source, lists=True)
    if any(name.lower() == "password" for name in source):
        raise BadOption(
            f"{path}: [source] contains a password.",
            "Write the password to a file that only you can read, and set passwordFile to its path.",
        )
    return known, {name: _as_text(value) for name, value in source.items()}


def require_flat(path: Path, name: str, values: object, *, lists: bool) -> None:
    """Require a table of single values; `lists` of strings stand for comma-separated text."""
    if not isinstance(values, dict):
        raise BadOption(f"{path}: {name} must be a table: [{name}].", "Correct it.")
    for key, value in values.items():
        is_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if isinstance(value, dict) or (isinstance(value, list) and not (lists and is_texts)):
            raise BadOption(
                f"{path}: {key} in [{name}] must be a single value.",
                "Quote names that contain a dot or other special characters."
                + (" To give several values, use one string with commas." if lists else ""),
            )


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
