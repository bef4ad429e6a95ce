"""Configuration files: TOML with settings, and a table [source] with options of the format.

    into = "/lake/stores"              # settings of a mirror, or of a capture; none for other commands
    checkpoint = "/lake/checkpoints/stores"

    [source]
    host = "${DB_HOST}"                # of the environment
    passwordFile = "/run/secrets/informix"

Rule: options have the names of the Spark source, and a file has no password. Errors do not quote
values, which may be misplaced passwords.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.shell_commands import shell_word
from informix_cdc.options import PASSWORD_VARIABLE, option_readers, option_rows

_MOST_BYTES = 1 << 20
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_VARIABLE = re.compile(r"(\$?)\$\{(\w+)\}")
_NO_PASSWORD = (
    "Write it to a file that only you can read, and set passwordFile to its path; or set"
    f" {PASSWORD_VARIABLE} in the environment."
)


def read_source_file(path: Path, settings: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a file outside of [source], and the options in [source], not checked.

    Variables of the environment are replaced: ${NAME}. A literal one is written $${NAME}.

    Args:
        path: of the file.
        settings: names of settings, which belong above [source].

    Raises:
        BadOption: it cannot be read, is not TOML, has a password or an unset variable, or others can
            change the command that it runs.
    """
    known = _with_variables(path, _parsed(path))
    source = known.pop("source", {})
    require_flat(path, "source", source, lists=True)
    if misplaced := [name for name in source if name in settings]:
        is_one = len(misplaced) == 1
        raise BadOption(
            f"{path}: {' and '.join(misplaced)} {'belongs' if is_one else 'belong'} above [source].",
            f"Move {'it' if is_one else 'them'} to the top of the file.",
        )
    names = {name.lower() for name in source}
    if "password" in names:
        raise BadOption(f"{path}: [source] contains a password.", _NO_PASSWORD)
    if "passwordcommand" in names and path.stat().st_mode & _OTHERS_MAY_WRITE:
        raise BadOption(
            f"{path} has a passwordCommand, and other users can write the file.",
            f"chmod go-w {shell_word(str(path))}",
        )
    return known, {name: _text(value) for name, value in source.items()}


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as reason:
        raise BadOption(f"{path} cannot be read: {reason.strerror}.", "Check its name.") from None
    if len(text) > _MOST_BYTES:
        raise BadOption(f"{path} has more than {_MOST_BYTES:,} bytes.", "Split it.")
    try:
        return tomllib.loads(text.decode())
    except tomllib.TOMLDecodeError as reason:  # names line and column, not the text
        raise BadOption(f"{path} is not TOML: {reason}.", "Correct the file.") from None
    except (ValueError, RecursionError):  # the text of these may quote the file
        raise BadOption(f"{path} is not TOML.", "Correct the file.") from None


def _with_variables(path: Path, value: Any) -> Any:  # noqa: ANN401 - any value of TOML
    """Return a value with the variables in its texts replaced."""
    if isinstance(value, dict):
        return {name: _with_variables(path, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_variables(path, each) for each in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        if found[1]:
            return found[0][1:]
        if (text := os.environ.get(found[2])) is None:
            raise BadOption(
                f"{path}: the environment has no variable {found[2]}.",
                "Set it; or write $${...} if the text itself is meant.",
            )
        return text

    return _VARIABLE.sub(replaced, value)


def require_flat(path: Path, name: str, values: object, *, lists: bool) -> None:
    """Require a table of single values; `lists` of strings stand for comma-separated text."""
    if not isinstance(values, dict):
        raise BadOption(f"{path}: {name} must be a table: [{name}].", "Correct it.")
    for key, value in values.items():
        is_texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
        is_single = isinstance(value, str | int | float) or (lists and is_texts)
        if not is_single:
            raise BadOption(
                f"{path}: {key} in [{name}] must be a single value.",
                "Quote names that contain a dot or other special characters."
                + (" To give several values, use one string with commas." if lists else ""),
            )


def checked_options(path: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return options under their declared names; also those are checked that a command does not use.

    Raises:
        BadOption: lists those that do not exist or are not valid, without their values.
    """
    names = {name.lower(): name for name, _, _ in option_rows()}
    readers, options, problems = option_readers(), dict[str, str](), list[str]()
    for key, text in given.items():
        if key.lower() not in names:
            near = difflib.get_close_matches(key.lower(), names, n=1)
            hint = f"; did you mean {names[near[0]]}?" if near else "."
            problems.append(f"[source] has {key}, which is not an option{hint}")
            continue
        name = names[key.lower()]
        options[name] = text
        try:
            if text:
                readers[name](text)
        except ValueError as reason:
            problems.append(f"{name} {reason}.")
        except BadOption as reason:
            problems.append(f"{reason.message} {reason.remedy}")
    if problems:
        raise BadOption(f"{path}: {' '.join(problems)}", "The options: docs/options.md.")
    return options


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
