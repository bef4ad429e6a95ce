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


def shell_words(words: Iterable[str], encoding: str = "utf-8") -> list[str]:
    """Return each word as a shell reads it back, in characters that an encoding has."""
    return [_quoted(word, encoding) for word in words]


def table_argument(name: TableName) -> str:
    """Return `owner.table`, as commands take it.

    >>> table_argument(TableName("stores", "informix", "Mixed Case"))
    'informix."Mixed Case"'
    """
    return f"{quoted(name.owner)}.{quoted(name.table)}"


def _quoted(word: str, encoding: str) -> str:
    if all(_is_shown(character, encoding) for character in word):
        return shlex.quote(word)
    # It would be shown in other characters than it has, so that its bytes are spelt out.
    return "$'" + "".join(_spelt(character, encoding) for character in word) + "'"


def _is_shown(character: str, encoding: str) -> bool:
    if character == "\n" or printable(character) != character:
        return False
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _spelt(character: str, encoding: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if _is_shown(character, encoding):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
