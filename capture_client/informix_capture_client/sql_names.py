"""SQL names as users write them and as the server wants them: plain, or delimited by double quotes.

Rule: a plain name means its lower-case form, as in Informix's SQL; a delimited one is as it is
written, and `""` in it is one quote.

    name := letter {letter | digit | _ | $}  |  " any characters "
    path := name {. name}
    list := path {, path}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from informix_capture_client.errors import BadOption

_NAME = r'"(?:[^"]|"")+"|[^\W\d][\w$]*'
_STEP = re.compile(rf"\s*({_NAME})\s*(\.|,|$)")
_PLAIN = re.compile(r"[^\W\d][\w$]*")
_TABLE = re.compile(r'(?:(\w+):)?(?:("(?:[^"]|"")+"|\w+)\.)?("(?:[^"]|"")+"|\w+)')
_PATTERN = re.compile(r"(?:(\w+):)?([\w$*]+)\.([\w$*]+)")
_OF_PATTERNS = re.compile(r"[*%?|()\[\]\\^+]")
_SHOWN = 60  # how much of a text that makes no sense an error quotes

NamePath = tuple[str, ...]


def read_paths(text: str) -> Iterator[NamePath]:
    """Yield the paths of a list.

    Raises:
        ValueError: the text is no list of names.

    >>> list(read_paths('orders.id, orders."Ship, Date"'))
    [('orders', 'id'), ('orders', 'Ship, Date')]
    """
    at = 0
    path: NamePath = ()
    while at < len(text) or path:
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"{text[at : at + _SHOWN]!r} is no name")
        at, path = step.end(), (*path, unquoted(step[1]))
        if step[2] != ".":
            yield path
            path = ()


def unquoted(name: str) -> str:
    """Return what a name means."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def quoted(name: str) -> str:
    """Return a name as people and CDC functions spell it: delimited only where it has to be.

    >>> quoted("order_num"), quoted("Ship Date")
    ('order_num', '"Ship Date"')
    """
    is_plain = _PLAIN.fullmatch(name) and name == name.lower()
    return name if is_plain else delimited(name)


def delimited(name: str) -> str:
    """Return a name for a statement, in quotes: it may be a word of SQL, such as order or select.

    Every connection is opened with DELIMIDENT.

    >>> delimited("select")
    '"select"'
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """`database:owner.table`, the form in which every CDC function wants it.

    The owner is empty where the user left it out: no table has such a name, and the catalog says which
    ones may be meant.
    """

    database: str
    owner: str
    table: str

    def __str__(self) -> str:
        owner = f"{quoted(self.owner)}." if self.owner else ""
        return f"{self.database}:{owner}{quoted(self.table)}"

    @property
    def in_statements(self) -> str:
        """Owner and table for a statement: an ANSI database reads a plain owner in capitals."""
        return f"{delimited(self.owner)}.{delimited(self.table)}"

    @classmethod
    def parse(cls, text: str, database: str) -> TableName:
        """Read `owner.table`, optionally with the database in front; odd names in double quotes.

        Args:
            text: the name; without an owner it is read, and found in no catalog.
            database: the one that is captured; empty where that is not known.

        Raises:
            BadOption: it is no name, or the table lies in another database.
        """
        found = _TABLE.fullmatch(text.strip())
        if not found:
            raise BadOption(f"table {text.strip()!r} is not owner.table.", _how_to_write(text))
        if database and found[1] not in (None, database):
            raise BadOption(
                f"table {text.strip()!r} is not in database {database!r}.",
                "One stream captures one database.",
            )
        return cls(database, _meant(found[2] or ""), _meant(found[3]))


@dataclass(frozen=True, slots=True)
class TablePattern:
    """`owner.ord*`: tables of a database by the beginning, the end or any part of their names."""

    database: str
    owner: str
    table: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.table}"

    @classmethod
    def parse(cls, text: str, database: str) -> TablePattern:
        """Read `owner.table` with stars in it, each of which stands for any characters.

        Raises:
            BadOption: it is something else, or of another database.
        """
        found = _PATTERN.fullmatch(text.strip())
        if not found or found[1] not in (None, database):
            raise BadOption(
                f"{text.strip()!r} is not a pattern of tables of database {database!r}.",
                "Write owner.name with * for any characters, such as informix.* or informix.ord*.",
            )
        return cls(database, found[2], found[3])

    def matches(self, name: TableName) -> bool:
        """Tell whether a table is one of these."""
        return fnmatchcase(name.owner, self.owner) and fnmatchcase(name.table, self.table)


def _how_to_write(text: str) -> str:
    if ";" in text:
        return "Separate tables by commas: owner.table,owner.table."
    if _OF_PATTERNS.search(text):
        return (
            "Of patterns only * is known, and no list in brackets: name each table, owner.table, with"
            " commas between them, or write a pattern such as informix.ord*."
        )
    return 'Write a name that is not plain in double quotes: owner."Table Name".'


def _meant(name: str) -> str:
    """Return a name as the catalog has it; unlike SQL, a plain one keeps its case."""
    return unquoted(name) if name.startswith('"') else name
