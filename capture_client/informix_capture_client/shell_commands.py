"""Commands of `informix-cdc` as they are shown to a person, who pastes them into a shell.

Rule: the one place that makes them. A table's name is somebody else's text: each word is quoted, so
that the shell hands on what is meant and runs none of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from informix_capture_client.printable import printable
from informix_capture_client.sql_names import TableName, quoted

PROGRAM = "informix-cdc"


def command(*words: str) -> str:
    r"""Return a command of informix-cdc, ready to be pasted.

    >>> command("release", 'informix."$(ls) Case"', "--no-checkpoint")
    'informix-cdc release \'informix."$(ls) Case"\' --no-checkpoint'
    """
    return " ".join(shell_words((PROGRAM, *words)))


def shell_words(words: Iterable[str]) -> list[str]:
    """Return each word as a shell reads it back."""
    return [_quoted(word) for word in words]


def table_argument(name: TableName) -> str:
    """Return `owner.table`, as commands take it.

    >>> table_argument(TableName("stores", "informix", "Mixed Case"))
    'informix."Mixed Case"'
    """
    return f"{quoted(name.owner)}.{quoted(name.table)}"


def _quoted(word: str) -> str:
    if "\n" not in word and printable(word) == word:
        return shlex.quote(word)
    # A control character would be shown in other characters than it has, so its bytes are spelt out.
    return "$'" + "".join(map(_spelt, word)) + "'"


def _spelt(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character != "\n" and printable(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
