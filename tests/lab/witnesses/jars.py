"""Jars of other people's clients, fetched from Maven Central when a test needs them.

Rule: a jar is what its checksum in `jars.lock` says, or it is not used. They lie under .witnesses/,
which git ignores: IBM's are run as black boxes, and never become part of this project.

    jars.lock: sha256, the set that the jar belongs to, its path in the repository
"""

from __future__ import annotations

import functools
import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

HOME = Path(__file__).parents[3] / ".witnesses"
# A mirror may stand here; the checksums are the same.
CENTRAL = os.environ.get("MAVEN_CENTRAL", "https://repo1.maven.org/maven2")
_LOCK = Path(__file__).with_name("jars.lock")
_SECONDS = 60


class NotHere(Exception):
    """Something that a witness needs and this machine does not have."""


def classpath(*names: str) -> str:
    """Return the class path of sets of jars, fetching what is missing."""
    paths = dict.fromkeys(fetched(path, digest) for name in names for path, digest in jars_of(name))
    return os.pathsep.join(map(str, paths))


def jars_of(name: str) -> list[tuple[str, str]]:
    """Return paths and checksums of a set's jars."""
    return _sets()[name]


def fetched(path: str, digest: str) -> Path:
    """Return a jar's file; NotHere if the repository cannot be reached."""
    file = HOME / "jars" / path
    if not file.exists():
        content = _download(path)
        _require(hashlib.sha256(content).hexdigest() == digest, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".part")
        partial.write_bytes(content)
        partial.replace(file)
    return file


def _download(path: str) -> bytes:
    try:
        with urllib.request.urlopen(f"{CENTRAL}/{path}", timeout=_SECONDS) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, TimeoutError) as error:
        raise NotHere(f"{path} cannot be fetched from {CENTRAL}: {error}") from error


def _require(is_right: bool, path: str) -> None:
    if not is_right:
        raise ValueError(
            f"{path} from {CENTRAL} is not the file that {_LOCK.name} names by its SHA-256: "
            "look at where it came from before you change the list"
        )


@functools.cache
def _sets() -> dict[str, list[tuple[str, str]]]:
    sets: dict[str, list[tuple[str, str]]] = {}
    for line in _LOCK.read_text().splitlines():
        digest, name, path = line.split()
        sets.setdefault(name, []).append((path, digest))
    return sets
