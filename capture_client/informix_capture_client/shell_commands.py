"""Commands as they are shown to a person, who pastes them into a shell.

Rule: the one place that quotes. A name of a table, user, locale or file is somebody else's text: each
word is quoted, so that the shell hands on what is meant and runs none of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from informix_capture_client.printable import printable
from informix_capture_client.sql_names import TableName, quoted
from informix_capture_client.statements import CDC_DATABASE

PROGRAM = "informix-cdc"


def command(*words: str) -> str:
    r"""Return a command of informix-cdc, ready to be pasted.

    >>> command("release", 'informix."$(ls) Case"', "--no-checkpoint")
    'informix-cdc release \'informix."$(ls) Case"\' --no-checkpoint'
    """
    return " ".join(shell_words((PROGRAM, *words)))


def command_for_log(*words: str) -> str:
    r"""Return a command without the words that need quotes, and without the flags before them.

    A line of the log escapes quotes and backslashes, and so would make another command of them.

    >>> command_for_log("release", 'informix."$(ls)"', "--host", "db 1", "--server", "ids1")
    'informix-cdc release --server ids1'
    """
    kept = [PROGRAM]
    for word in words:
        if shell_word(word) == word:
            kept.append(word)
        elif kept[-1].startswith("--"):
            kept.pop()
    return " ".join(kept)


def dbaccess_command(statement: str, database: str) -> str:
    """Return a command that runs an SQL statement on the server's host.

    >>> dbaccess_command("GRANT CONNECT TO joe", "stores")
    "echo 'GRANT CONNECT TO joe' | dbaccess stores -"
    """
    return f"echo {shell_word(statement)} | dbaccess {shell_word(database)} -"


def command_granting_capture(user: str) -> str:
    """Return the command that makes a user a DBA of the CDC database.

    >>> command_granting_capture("joe")
    "echo 'GRANT DBA TO joe' | dbaccess syscdcv1 -"
    """
    return dbaccess_command(f"GRANT DBA TO {quoted(user)}", CDC_DATABASE)


def shell_words(words: Iterable[str], encoding: str = "utf-8") -> list[str]:
    """Return each word as a shell reads it back, in characters that an encoding has."""
    return [shell_word(word, encoding) for word in words]


def with_tables(arguments: Sequence[str], *tables: str) -> list[str]:
    """Return arguments of a command with tables behind its FILE.toml, if any, and before its flags.

    >>> with_tables(["shop.toml", "--user", "x"], "informix.orders")
    ['shop.toml', 'informix.orders', '--user', 'x']
    """
    files = [each for each in arguments[:1] if each.endswith(".toml")]
    return [*files, *tables, *arguments[len(files) :]]


def table_argument(name: TableName) -> str:
    """Return `owner.table`, as commands take it.

    >>> table_argument(TableName("stores", "informix", "Mixed Case"))
    'informix."Mixed Case"'
    """
    return f"{quoted(name.owner)}.{quoted(name.table)}"


def shell_word(word: str, encoding: str = "utf-8") -> str:
    """Return one word, a path for instance, as a shell reads it back.

    >>> shell_word("/run/my secrets")
    "'/run/my secrets'"
    """
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
    return "".join(f"\\x{byte:02x}" for byte in _bytes_of(character))


def _bytes_of(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")  # a byte of a path that is not UTF-8
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")
