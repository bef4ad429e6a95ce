"""SQL names as users write them and as the server wants them: plain, or delimited by double quotes.

Rule: a plain name means its lower-case form, as in Informix's SQL; a delimited one is as it is
written, and `""` in it is one quote.

    name := letter {letter | digit | _ | $}  |  " any characters "
    path := name {. name}
    list := path {, path}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
        ValueError: the text is not a list of names.

    >>> list(read_paths('orders.id, orders."Ship, Date"'))
    [('orders', 'id'), ('orders', 'Ship, Date')]
    """
    at = 0
    path: list[str] = []
    while at < len(text) or path:
        step = _STEP.match(text, at)
        if step is None:
            raise ValueError(f"{text[at : at + _SHOWN]!r} is not a name")
        at = step.end()
        path.append(unquoted(step[1]))
        if step[2] != ".":
            yield tuple(path)
            path = []


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


ALIAS = "t"  # of the table that a statement reads; its columns are written with it
# They are written without parentheses, so that an unqualified column of such a name is the function
# (Guide to SQL: Syntax, "Constant Expressions").
BUILT_IN_FUNCTIONS = frozenset(
    ("user", "current_user", "current_role", "default_role", "today", "current", "sysdate", "sitename")
) | {"dbservername"}
_NAMES_IN_CONDITION = re.compile(
    r"""'(?:[^']|'')*'|(?P<dot>\.\s*)?(?P<name>"(?:[^"]|"")+"|[^\W\d]\w*)"""
)


def delimited(name: str) -> str:
    """Return a name in double quotes for a statement, because it may be an SQL keyword.

    Every connection is opened with DELIMIDENT. Write a column with `column_of`.

    >>> delimited("select")
    '"select"'
    """
    return '"' + name.replace('"', '""') + '"'


def column_of(name: str) -> str:
    """Return a column in an expression: delimited, and qualified by the alias of its table.

    Unqualified, a column named like a built-in function without parentheses is that function, also in
    double quotes (measured by others on Informix 15.0.1.0.3; docs/assumptions.md, row 111).

    >>> column_of("user")
    't."user"'
    """
    return f"{ALIAS}.{delimited(name)}"


def columns_read_as_functions(condition: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that a condition names unqualified and a server reads as built-in functions.

    A column that it also names qualified is left out: there the function may be meant.

    >>> columns_read_as_functions("user = 'x' AND t.today < TODAY", ["user", "today", "n"])
    ['user']
    """
    found = [each for each in _NAMES_IN_CONDITION.finditer(condition) if each["name"]]
    qualified = {unquoted(each["name"]).lower() for each in found if each["dot"]}
    unqualified = {unquoted(each["name"]).lower() for each in found if not each["dot"]}
    hidden = (unqualified & BUILT_IN_FUNCTIONS) - qualified
    return [name for name in columns if name.lower() in hidden]


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """`database:owner.table`, the form that every CDC function expects.

    The owner is empty if the user omitted it. No table matches such a name; the catalog then suggests
    tables with the same name.
    """

    database: str
    owner: str
    table: str

    def __str__(self) -> str:
        owner = f"{quoted(self.owner)}." if self.owner else ""
        return f"{self.database}:{owner}{quoted(self.table)}"

    @property
    def in_statements(self) -> str:
        """Quoted owner and table: an ANSI database folds an unquoted owner to upper case."""
        return f"{delimited(self.owner)}.{delimited(self.table)}"

    @property
    def aliased(self) -> str:
        """The table in a FROM clause or an UPDATE, with the alias that `column_of` writes."""
        return f"{self.in_statements} {ALIAS}"

    @classmethod
    def parse(cls, text: str, database: str) -> TableName:
        """Parse `owner.table` with an optional database; names that are not plain in double quotes.

        Args:
            text: the name; a name without an owner is accepted, but no table in the catalog matches it.
            database: the captured database; empty if unknown.

        Raises:
            BadOption: the text is not a table name, or the table is in another database.
        """
        found = _TABLE.fullmatch(text.strip())
        if not found:
            raise BadOption(f"table {text.strip()!r} is not owner.table.", _how_to_write(text))
        if database and found[1] not in (None, database):
            raise BadOption(
                f"table {text.strip()!r} is not in database {database!r}.",
                "A stream captures one database: remove the table, or start another query for it.",
            )
        return cls(database, _meant(found[2] or ""), _meant(found[3]))


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A pattern such as `owner.ord*` that matches tables of a database by their names."""

    database: str
    owner: str
    table: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.table}"

    @classmethod
    def parse(cls, text: str, database: str) -> TablePattern:
        """Parse a pattern `owner.table`, in which `*` matches any characters.

        Raises:
            BadOption: the text is not a pattern, or names another database.
        """
        found = _PATTERN.fullmatch(text.strip())
        if not found or found[1] not in (None, database):
            raise BadOption(
                f"{text.strip()!r} is not a table pattern for database {database!r}.",
                "Write owner.name, where * matches any characters: informix.* or informix.ord*.",
            )
        return cls(database, found[2], found[3])

    def matches(self, name: TableName) -> bool:
        """Return whether a table matches the pattern."""
        return fnmatchcase(name.owner, self.owner) and fnmatchcase(name.table, self.table)


def _how_to_write(text: str) -> str:
    if ";" in text:
        return "Separate tables by commas: owner.table,owner.table."
    if _OF_PATTERNS.search(text):
        return (
            "Patterns support only *, and no lists in brackets: separate table names by commas, as in"
            " owner.table,owner.table, or write a pattern such as informix.ord*."
        )
    return 'Write names with spaces or special characters in double quotes: owner."Table Name".'


def _meant(name: str) -> str:
    """Return a name as the catalog stores it; unlike in SQL, an unquoted name keeps its case."""
    return unquoted(name) if name.startswith('"') else name
