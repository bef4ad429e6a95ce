"""SQL on the emulated server: user tables that clients read and write, and the system tables.

Statements are parsed by our own grammar, typed, and translated to SQLite, which stores the rows.
Statements that Informix would reject, or that are not modelled, are refused with -201 and logged. Every
change is in the logical log with whole images. Nothing here knows the protocol.

    session     a client's statements and transaction     language/   tokens, types, values, expressions
    queries     SELECT                                     sources     resolves table names
    changes     INSERT, UPDATE, DELETE, TRUNCATE           work        undo, locks, the log
    definitions CREATE, DROP, ALTER                        storage     the rows, in SQLite
    scans       one table, step by step                    held_locks  what sysmaster shows
    row_images  loaded rows in the form of the protocol
"""

from __future__ import annotations

from .engine import keep_rows, load_rows, open_session, pack_rows, row_as_stored

__all__ = ["keep_rows", "load_rows", "open_session", "pack_rows", "row_as_stored"]
