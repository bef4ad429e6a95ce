"""One file for each kind of statement: its syntax and its effect.

Parsing a statement changes nothing; it returns a plan, which the session runs. Queries to SQLite go
through the session's `Reading`. Sessions import from the files.
"""

from __future__ import annotations

__all__: list[str] = []
