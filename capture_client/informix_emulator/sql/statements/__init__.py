"""A file for each kind of statement: how it is read, and what it does.

Rule: reading a statement changes nothing; it returns a plan, which the session runs. What SQLite is
asked goes through the session's `Reading`. Sessions import from the files.
"""

from __future__ import annotations

__all__: list[str] = []
