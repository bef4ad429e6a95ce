"""What an expression asks of whoever reads the statement it stands in.

Rule: expressions know neither queries nor functions; a reader of whole statements names who does.
"""

from __future__ import annotations

from typing import Protocol

from .scopes import Expression


class Nested(Protocol):
    """Reads what may stand inside of an expression."""

    def subquery(self) -> Expression:
        """Read a query that stands in parentheses, the first of which is read."""
        ...

    def rows_of_subquery(self) -> Expression:
        """Read a query of one column in parentheses."""
        ...

    def exists(self) -> str:
        """Read a query in parentheses of which only counts whether it finds anything."""
        ...

    def condition(self) -> str:
        """Read a condition."""
        ...

    def function(self, name: str) -> Expression:
        """Read a call, behind its name."""
        ...

    def word_function(self, name: str) -> Expression | None:
        """Return what a word such as TODAY stands for."""
        ...
