"""Split a script of SQL statements, and find the tables whose definition it changes.

Rule: values in, values out. A statement that cannot be followed by its text is refused: those of
procedures contain semicolons, and a transaction would undo statements that count as run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from informix_capture_client.errors import BadOption
from informix_capture_client.sql_names import read_paths

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|(?<![tT])(?<![tT]\ )\{[^}]*\}|/\*.*?\*/)|(?P<end>;)
    |(?P<open>(?<![tT])(?<![tT]\ )\{|/\*)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|[^'"{;/-]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_PATH = r'((?:"[^"]*+"|[\w$:.]++)++)'
_SHOWN = 60  # how much of a text that makes no sense an error quotes
_DATABASE = re.compile(r"\A\w+:")
_CHANGES = (
    rf"ALTER\s+TABLE\s+{_PATH}",
    rf"ALTER\s+FRAGMENT\s+ON\s+TABLE\s+{_PATH}",
    rf"RENAME\s+TABLE\s+{_PATH}",
    rf"DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?{_PATH}",
    rf"CREATE\s+(?:STANDARD\s+|RAW\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_PATH}",
)
_RENAMED_COLUMN = re.compile(rf"RENAME\s+COLUMN\s+{_PATH}\s+TO\s", re.IGNORECASE)
_CHANGED = [re.compile(form, re.IGNORECASE) for form in _CHANGES]
_NOT_FOLLOWED = re.compile(
    r"(BEGIN|COMMIT|ROLLBACK|DATABASE|CONNECT|LOAD|UNLOAD|OUTPUT"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:DBA\s+)?(?:PROCEDURE|FUNCTION))\b",
    re.IGNORECASE,
)


def statements_of(script: str) -> tuple[str, ...]:
    r"""Return the statements of a script, without comments.

    Raises:
        BadOption: there are none, or one that cannot be followed.

    >>> statements_of("DROP TABLE a; -- old\nINSERT INTO b VALUES ('x;y')")
    ('DROP TABLE a', "INSERT INTO b VALUES ('x;y')")
    """
    parts: list[list[str]] = [[]]
    for token in _TOKEN.finditer(script):
        if token["open"]:
            raise BadOption("the script has a comment that is not closed.", "Close it by } or */.")
        if token["end"]:
            parts.append([])
        else:
            parts[-1].append(token["text"] or " ")
    statements = tuple(filter(None, ("".join(part).strip() for part in parts)))
    if not statements:
        raise BadOption("there is no statement to run.", "Give a statement, or --file.")
    for number, statement in enumerate(statements, 1):
        if (found := _NOT_FOLLOWED.match(statement)) is not None:
            raise BadOption(
                f"statement {number} is {found[1].upper()}, which alter does not run.",
                "Run the script with dbaccess between `informix-cdc alter --begin` and `--end`.",
            )
    return statements


def changed_table(statement: str) -> Sequence[str]:
    """Return the path of the table whose definition a statement changes, such as owner and name.

    An empty path: it changes no definition of a table.

    Raises:
        BadOption: the table has no valid name.

    >>> changed_table("RENAME COLUMN shop:informix.orders.note TO remark")
    ('informix', 'orders')
    """
    if (found := _RENAMED_COLUMN.match(statement)) is not None:
        return _path(found[1])[:-1]
    matches = (form.match(statement) for form in _CHANGED)
    return next((_path(found[1]) for found in matches if found is not None), ())


def changed_tables(statements: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the tables of a stream whose definition statements change, in order, as owner.table.

    Args:
        statements: of a script.
        known: the tables of the stream.

    Raises:
        BadOption: they change none of them, or a name fits several owners.

    >>> changed_tables(["ALTER TABLE orders ADD (n INTEGER)"], ["informix.orders", "informix.items"])
    ('informix.orders',)
    """
    found: dict[str, None] = {}
    for path in filter(None, map(changed_table, statements)):
        *owner, name = path
        fits = [
            each
            for each in known
            if (of := _path(each))[-1] == name and (not owner or of[0] == owner[-1])
        ]
        if len(fits) > 1:
            raise BadOption(
                f"{'.'.join(path)} may be each of {', '.join(fits)}.",
                "Name the table with its owner, as the stream does.",
            )
        found.update(dict.fromkeys(fits))
    if not found:
        raise BadOption(
            "the statements change the definition of none of the tables that the stream captures:"
            f" {', '.join(known)}.",
            "Run them without informix-cdc. A view or synonym stands for a table that must be named.",
        )
    return tuple(found)


def _path(text: str) -> tuple[str, ...]:
    try:
        (path,) = read_paths(_DATABASE.sub("", text))
    except ValueError:
        raise BadOption(
            f"{text[:_SHOWN]} is not the name of a table.", "Name it as owner.table."
        ) from None
    return path
