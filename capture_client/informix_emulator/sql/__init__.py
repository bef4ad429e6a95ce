"""SQL on the emulated server: user tables that are written and read, and the system tables.

Rule: a statement is understood by our own grammar, typed, and only then said in SQLite's words, which
holds the rows; what Informix would not take, or is not modelled, is refused with -201 and logged.
Whatever is written is in the logical log with whole images. Nothing here knows the wire.

    session     a client's statements and transaction     language/   pieces, types, values, expressions
    queries     SELECT                                     sources     what a table's name leads to
    changes     INSERT, UPDATE, DELETE, TRUNCATE           work        undo, locks, the log
    definitions CREATE, DROP, ALTER                        storage     the rows, in SQLite
    scans       one table, step by step                    held_locks  what sysmaster shows
    row_images  loaded rows as a wire has them
"""

from __future__ import annotations

from .engine import keep_rows, load_rows, open_session, pack_rows

__all__ = ["keep_rows", "load_rows", "open_session", "pack_rows"]
