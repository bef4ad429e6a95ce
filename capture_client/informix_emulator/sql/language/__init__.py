"""Informix's SQL below the level of statements: tokens, types, values, expressions.

Nothing here knows a table or a transaction; expressions ask the server through `Surroundings`.
Statements import from the files.
"""

from __future__ import annotations

__all__: list[str] = []
