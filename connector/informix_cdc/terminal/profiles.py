"""Profiles: named connections in a file of the user.

    [stores]
    host = "db1"
    server = "ids1"
    database = "stores"
    passwordFile = "/run/secrets/informix"

Rule: a profile has options of the source under their own names, and no password. A user who can write
or replace the file controls where a password is sent, so only this user and root may be able to.
"""

from __future__ import annotations

import difflib
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from informix_capture_client.errors import BadOption
from informix_capture_client.shell_commands import shell_word
from informix_cdc.options import PASSWORD_VARIABLE, option_readers, option_rows

_ROOT = 0
_MOST_BYTES = 1 << 20
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NO_PASSWORD = (
    "Write it to a file that only you can read, and set passwordFile to its path; or set"
    f" {PASSWORD_VARIABLE} in the environment."
)


def profiles_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of this user's profiles, according to the XDG base directory specification."""
    folder = environment.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "informix-cdc" / "profiles.toml"


def read_profile(name: str, path: Path) -> dict[str, str]:
    """Return the options of a profile as texts, by their declared names.

    Raises:
        BadOption: the profile does not exist, others can write the file, or the profile contains a
            password, an unknown option or an invalid value.
    """
    profiles = read_profiles(path)
    if name not in profiles:
        known = f"It has {', '.join(profiles)}." if profiles else "It has no profiles."
        raise BadOption(f"{path} has no profile {name!r}.", known)
    return _options(name, profiles[name], path)


def read_profiles(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return all profiles, not validated.

    Raises:
        BadOption: the file cannot be read, others can write it, or it is not a table of tables.
    """
    try:
        with path.open("rb") as file:
            _require_own(os.fstat(file.fileno()), path)
            for folder in {path.parent, path.resolve().parent}:  # of a symbolic link, and of its target
                _require_own(folder.stat(), folder)
            found = _parsed(file, path)
    except OSError as reason:
        raise BadOption(
            f"the profiles file {path} cannot be read: {reason.strerror}.",
            'Create it: a line [NAME], followed by options of the source such as host = "db1".',
        ) from None
    if strays := [key for key, value in found.items() if not isinstance(value, dict)]:
        raise BadOption(f"{path}: {strays[0]} is outside of a profile.", "Put it below a line [NAME].")
    return found


def _parsed(file: BinaryIO, path: Path) -> dict[str, Any]:
    text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise BadOption(
            f"{path} has more than {_MOST_BYTES:,} bytes.", "Remove everything but profiles from it."
        )
    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError):  # the error's text may quote the file
        raise BadOption(f"{path} is not TOML.", 'Write host = "db1" below a line [NAME].') from None


def _require_own(found: os.stat_result, path: Path) -> None:
    """Refuse a file or folder that others than this user and root can change, as ssh does."""
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise BadOption(
            f"{path} belongs to another user (id {found.st_uid}), who could change where your"
            " password is sent.",
            "Create your own file, with profiles that you have checked.",
        )
    is_sticky = (
        stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    )  # others cannot replace files
    if found.st_mode & _OTHERS_MAY_WRITE and not is_sticky:
        raise BadOption(
            f"other users can write {path}, and could change where your password is sent.",
            f"chmod go-w {shell_word(str(path))}",
        )


def _options(profile: str, given: Mapping[str, Any], path: Path) -> dict[str, str]:
    names = {name.lower(): name for name, _, _ in option_rows()}
    readers, options = option_readers(), {}
    for key, value in given.items():
        where = f"{path}: profile {profile}"
        if key.lower() == "password":
            raise BadOption(
                f"{where} contains a password. Profiles must not contain one.", _NO_PASSWORD
            )
        if key.lower() not in names:
            near = difflib.get_close_matches(key.lower(), names, n=1)
            remedy = f"Did you mean {names[near[0]]}?" if near else "Use an option of the source."
            raise BadOption(f"{where} has {key}, which is not an option.", remedy)
        name = names[key.lower()]
        options[name] = text = _text(value, f"{where}: {key}")
        try:  # options that this command does not use are validated too
            if text:
                readers[name](text)
        except ValueError as reason:  # without the value: it may be a misplaced password
            raise BadOption(f"{where}: {key} {reason}.", option=name) from None
    return options


def _text(value: object, where: str) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise BadOption(f"{where} must be a string, an integer, true or false.")
