"""Informix's SQL below the statement: pieces, types, values, expressions.

Rule: nothing here knows a table or a transaction; what an expression asks of the server comes through
`Surroundings`. Statements import from the files.
"""

from __future__ import annotations

__all__: list[str] = []
